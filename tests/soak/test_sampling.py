from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.figures import FIGURES
from tests.soak.sampling import Gone, parse_status, pick_metrics, read_process, take_sample

STATUS = "Name:\tpython\nVmPeak:\t  90000 kB\nVmRSS:\t   40960 kB\nRssAnon:\t   1 kB\nThreads:\t3\n"


def test_memory_and_threads_are_read() -> None:
    assert parse_status(STATUS) == {"memory": 40.0, "threads": 3.0}


@pytest.mark.parametrize("text", ["", "Name:\tpython\nState:\tZ (zombie)\nThreads:\t1\n"], ids=["nothing", "zombie"])
def test_a_process_without_memory_is_an_error(text: str) -> None:
    with pytest.raises(OSError, match="no memory"):
        parse_status(text)


def test_we_ourselves_have_memory_descriptors_and_a_thread() -> None:
    sample = read_process(Path("/proc/self"))
    assert sample["memory"] > 1
    assert sample["threads"] >= 1
    with open(os.devnull) as _:
        assert read_process(Path("/proc/self"))["descriptors"] == sample["descriptors"] + 1


def test_an_ended_process_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        # Not reaped yet: its process ID stays reserved.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(OSError, match="no memory"):
            read_process(Path("/proc") / str(process.pid))


def test_without_an_admin_port_a_server_is_gone() -> None:
    with pytest.raises(Gone):
        take_sample(os.getpid(), "127.0.0.1:9")


def test_a_missing_metric_is_no_figure() -> None:
    told = {"dnsproxy_tasks": 12.0, "other": 1.0}
    assert pick_metrics(told) == {"tasks": 12.0}


def test_figures_have_different_names() -> None:
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)
