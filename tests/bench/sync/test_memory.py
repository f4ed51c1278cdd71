from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.bench.sync.memory import Memory, parse_memory, parse_proportional, read_memory, read_proportional, sampled

STATUS = "Name:\tpython\nVmPeak:\t  900000 kB\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\nThreads:\t1\n"


def test_resident_and_most_resident_are_in_mebibytes() -> None:
    assert parse_memory(STATUS) == Memory(resident=100, peak=200)


@pytest.mark.parametrize("text", ["", "Name:\tpython\nState:\tZ (zombie)\n"], ids=["empty", "a zombie"])
def test_a_process_without_memory_is_gone(text: str) -> None:
    with pytest.raises(ProcessLookupError):
        parse_memory(text)
    with pytest.raises(ProcessLookupError):
        parse_proportional(text)


def test_a_shared_page_counts_in_part() -> None:
    text = "55d0-7ffd ---p 00000000 00:00 0   [rollup]\nRss:   102400 kB\nPss:   51200 kB\nPss_Dirty:   100 kB\n"
    assert parse_proportional(text) == 50
    assert 0 < read_proportional(os.getpid()) <= read_memory(os.getpid()).resident * 1.1


def test_our_own_memory_can_be_read() -> None:
    found = read_memory(os.getpid())
    assert 0 < found.resident <= found.peak


def test_samples_are_taken_until_the_block_ends() -> None:
    with sampled(os.getpid(), every=0.001) as found:
        while len(found) < 5:
            pass
    taken = len(found)
    assert all(one.resident > 0 for one in found)
    assert len(found) == taken


def test_the_end_of_the_process_ends_the_samples() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with sampled(process.pid, every=0.001) as found:
        pass
    assert found == []
