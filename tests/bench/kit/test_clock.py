from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.bench.kit.clock import CpuTime, parse_schedstat, parse_stat, read_clock, read_seconds

STAT = "{pid} ({name}) S 1 40 {session} 0 -1 4194560 9 8 7 6 150 50 3 2 20 0 1 0 100 0 0"


@pytest.mark.parametrize("name", ["nsd", "a b", "a) S 1 (b", ")", ""])
def test_a_command_may_hold_blanks_and_parentheses(name: str) -> None:
    assert parse_stat(STAT.format(pid=41, name=name, session=40)) == (40, 150, 50)


def test_time_in_the_queue_is_the_second_number_in_nanoseconds() -> None:
    assert parse_schedstat("7000000000 2500000000 12\n") == 2.5


def test_times_add_up_and_total_leaves_the_queue_out() -> None:
    later, before = CpuTime(3, 2, 9), CpuTime(1, 1, 4)
    assert later - before == CpuTime(2, 1, 5)
    assert sum((before, before), CpuTime()) == CpuTime(2, 2, 8)
    assert later.total == 5


def test_the_clock_of_a_session_goes_on_while_it_works() -> None:
    # A session of its own: in ours others end meanwhile, and take their time with them.
    with subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) as working:
        try:
            deadline = time.monotonic() + 60
            while read_clock(working.pid).total < 0.05:
                assert time.monotonic() < deadline
        finally:
            working.kill()


def test_the_clock_of_a_process_is_its_own() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as working:
        try:
            deadline = time.monotonic() + 60
            while read_seconds(working.pid) < 0.05:
                assert time.monotonic() < deadline
        finally:
            working.kill()
    with pytest.raises(FileNotFoundError):
        read_seconds(working.pid)


def test_a_session_that_does_not_exist_has_used_nothing() -> None:
    assert read_clock(0x7FFFFFFF) == CpuTime()
