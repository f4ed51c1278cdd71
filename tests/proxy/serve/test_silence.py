"""When a silent worker counts as hung, and what the supervisor then does. Also tests kill_when_hung."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from structlog.testing import capture_logs

from proxy.serve import silence as rules
from proxy.serve import worker_process
from proxy.serve.silence import (
    HUNG_SECONDS,
    LATE_SECONDS,
    LOOK_SECONDS,
    QUIET_SECONDS,
    START_SECONDS,
    Activity,
    Silence,
    parse_activity,
)
from proxy.serve.worker_process import kill_when_hung

STOPPED, ASLEEP = Activity("T", 3.0), Activity("S", 3.0)
LOOKS = int(HUNG_SECONDS / LOOK_SECONDS)


def reporting() -> Silence:
    silence = Silence()
    silence.end()
    return silence


def look(silence: Silence, times: int, *, elapsed: float = LOOK_SECONDS, activity: Activity | None = ASLEEP) -> None:
    for _ in range(times):
        silence.look(elapsed=elapsed, activity=activity)


@pytest.mark.parametrize("activity", [STOPPED, ASLEEP, Activity("t", 0), Activity("Z", 0), None], ids=str)
def test_a_worker_that_could_report_and_does_not_is_hung_after_some_seconds(activity: Activity | None) -> None:
    silence = reporting()
    look(silence, LOOKS - 1, activity=activity)
    assert silence.is_quiet
    assert not silence.is_hung
    look(silence, 1, activity=activity)
    assert silence.is_hung


def test_a_report_ends_the_silence() -> None:
    silence = reporting()
    for _ in range(50):
        look(silence, LOOKS - 1)
        silence.end()
        assert not silence.is_quiet
        assert not silence.begins


def test_a_silence_of_two_reports_is_nothing_yet() -> None:
    silence = reporting()
    look(silence, int(2 / LOOK_SECONDS))
    assert silence.begins
    assert not silence.is_quiet
    assert QUIET_SECONDS > 2


def test_a_loop_without_an_end_is_hung_as_soon() -> None:
    silence = reporting()
    for number in range(LOOKS + 1):
        silence.look(elapsed=LOOK_SECONDS, activity=Activity("R", number * LOOK_SECONDS))
    assert silence.is_hung


@pytest.mark.parametrize("state", ["R", "D"])
def test_a_worker_that_waits_for_a_processor_or_a_disk_is_not_hung(state: str) -> None:
    silence = reporting()
    look(silence, 1000, activity=Activity(state, 3.0))
    assert not silence.is_quiet


def test_a_slow_machine_delays_the_end_of_a_loop_and_does_not_prevent_it() -> None:
    silence = reporting()
    for number in range(4 * LOOKS):
        silence.look(elapsed=LOOK_SECONDS, activity=Activity("R", number * LOOK_SECONDS / 4))
        assert not silence.is_hung
    look(silence, 2, activity=Activity("R", 100.0))
    assert silence.is_hung


@pytest.mark.parametrize("elapsed", [LATE_SECONDS, 10.0, 86_400.0])
def test_after_a_pause_of_the_supervisor_a_worker_has_its_whole_time_again(elapsed: float) -> None:
    silence = reporting()
    for _ in range(20):
        look(silence, LOOKS - 1)
        silence.look(elapsed=elapsed, activity=STOPPED)
        assert not silence.is_quiet
    look(silence, LOOKS)
    assert silence.is_hung


def test_late_looks_count_as_looks_and_not_as_time() -> None:
    silence = reporting()
    look(silence, LOOKS - 1, elapsed=LATE_SECONDS - 0.1)
    assert not silence.is_hung


def test_before_its_first_report_a_worker_has_longer() -> None:
    silence = Silence()
    look(silence, int(START_SECONDS / LOOK_SECONDS) - 1)
    assert not silence.is_quiet
    assert not silence.is_hung
    look(silence, 1)
    assert silence.is_hung


@pytest.mark.parametrize(
    ("stat", "activity"),
    [
        pytest.param("7 (python) S 1 7 7 0 -1 4194304 1 2 3 4 250 50 0 0 20 0 1 0 9", Activity("S", 3.0), id="usual"),
        pytest.param("7 (a) T (b) R 1 7 7 0 -1 0 1 2 3 4 0 1 0", Activity("R", 0.01), id="a name with parentheses"),
    ],
)
def test_the_activity_of_a_process_is_read(stat: str, activity: Activity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_TICKS_PER_SECOND", 100)
    assert parse_activity(stat) == activity


@pytest.mark.parametrize("stat", ["", "7", "7 (python)", "7 (python) S 1 7", "7 (python) S" + " x" * 20])
def test_a_line_that_is_cut_off_is_an_error(stat: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_activity(stat)


# --- Real processes ---

SPINNING = "while True: pass"
SLEEPING = "import signal; signal.pause()"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of all times."""
    for name in ("LOOK_SECONDS", "QUIET_SECONDS", "HUNG_SECONDS"):
        monkeypatch.setattr(rules, name, getattr(rules, name) / 10)
    monkeypatch.setattr(worker_process, "LOOK_SECONDS", LOOK_SECONDS / 10)


@asynccontextmanager
async def running(code: str) -> AsyncIterator[trio.Process]:
    process = await trio.lowlevel.open_process([sys.executable, "-c", code])
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("code", [SPINNING, SLEEPING], ids=["spins", "sleeps"])
@pytest.mark.parametrize("stopped", [False, True], ids=["runs", "is stopped"])
async def test_a_silent_process_is_killed_and_no_other(code: str, stopped: bool) -> None:
    async with running(SLEEPING) as other, running(code) as process:
        if stopped:
            process.send_signal(signal.SIGSTOP)
        with capture_logs() as logs:
            await kill_when_hung(process, reporting(), number=2)
        assert await process.wait() == -signal.SIGKILL
        assert other.poll() is None
    assert [(entry["event"], entry["worker"], entry["pid"]) for entry in logs] == [
        ("worker silent, killing it", 2, process.pid)
    ]


@pytest.mark.usefixtures("quick")
async def test_a_process_that_gets_no_processor_is_left_alone() -> None:
    async with running(SPINNING) as greedy, running(SPINNING) as starved:
        processor = min(os.sched_getaffinity(0))
        for one in (greedy, starved):
            os.sched_setaffinity(one.pid, {processor})
        os.sched_setscheduler(starved.pid, os.SCHED_IDLE, os.sched_param(0))
        with trio.move_on_after(2 * HUNG_SECONDS / 10):
            await kill_when_hung(starved, reporting(), number=2)
        assert starved.poll() is None
