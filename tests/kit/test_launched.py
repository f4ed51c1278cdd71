from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests.bench.kit.clock import read_clock
from tests.kit.launched import launched

# One write for each process: print() writes the number and the line end apart if stdout is unbuffered.
FORKS = "import os, time; os.write(1, b'%d\\n' % os.fork()); time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def wait_lines(log: Path, count: int) -> list[str]:
    deadline = time.monotonic() + 30
    while len(lines := log.read_text().splitlines()) < count:
        assert time.monotonic() < deadline, lines
        time.sleep(0.01)
    return lines


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_ended(pid: int) -> None:
    deadline = time.monotonic() + 30
    while is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_end_takes_along_what_was_forked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with launched([sys.executable, "-c", FORKS], log=log, cpus=os.sched_getaffinity(0)) as process:
        child = max(map(int, wait_lines(log, 2)))
        assert os.getsid(child) == process.pid
    assert process.returncode is not None
    wait_ended(child)


def test_a_process_that_will_not_end_is_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with launched([sys.executable, "-c", STUBBORN], log=log, cpus=os.sched_getaffinity(0)) as process:
        wait_lines(log, 1)
    assert process.returncode == -9


def test_it_ends_when_the_block_fails(tmp_path: Path) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        launched(["sleep", "60"], log=tmp_path / "log", cpus=os.sched_getaffinity(0)) as process,
    ):
        raise KeyboardInterrupt
    assert process.returncode == -15


def test_the_limit_of_open_files_is_there_from_the_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    with launched([sys.executable, "-c", code], log=log, cpus=os.sched_getaffinity(0), open_files=64) as process:
        process.wait(30)
    assert log.read_text() == "64\n"


def test_the_clock_of_a_launched_process_is_its_own(tmp_path: Path) -> None:
    code = "import time\nwhile time.process_time() < 0.1: pass\nprint('done', flush=True); time.sleep(60)"
    log = tmp_path / "log"
    with launched([sys.executable, "-c", code], log=log, cpus=os.sched_getaffinity(0)) as process:
        wait_lines(log, 1)
        assert 0.08 <= read_clock(process.pid).total < 10
