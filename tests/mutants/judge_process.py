"""`python -P judge_process.py FOLDER`: runs pytest many times; each run is one JSON line on stdin and one on stdout.

The law: what every run imports is imported once, and each run is a fork of that; the project's own modules are never
imported here. A run is limited in processor time, because a mutant may loop for ever, and ends with all its processes.

In: {"arguments": [for pytest, ...], "seconds": of processor time}.
Out: {"ended": "passed", "failed", "timeout" or "none" if no test was selected, "failed": [test, ...],
"running": the last test that began or an empty text, "seconds": of processor time}.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
from pathlib import Path
from typing import IO, Any, Final, NoReturn

import click  # noqa: F401
import hypothesis
import msgspec  # noqa: F401
import pytest
import pytest_trio  # type: ignore[import-untyped]  # noqa: F401
import structlog  # noqa: F401
import trio  # noqa: F401
import yaml  # noqa: F401

WALL_SECONDS: Final = 1800
"""The limit of a run that waits instead of computing. A test has its own, lower deadline: tests/conftest.py."""
MEMORY: Final = 4 << 30
"""Bytes; a mutant that appends for ever ends here, not with the machine's memory."""


class Recorder:
    """A plugin of pytest: writes down which test begins and which fails, and makes hypothesis repeatable."""

    def __init__(self, log: IO[str]) -> None:
        self._log = log

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """After tests/conftest.py, which loads a profile of its own. A failure needs no smallest example here."""
        hypothesis.settings.register_profile(
            "mutants",
            deadline=None,
            derandomize=True,
            database=None,
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        )
        hypothesis.settings.load_profile("mutants")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write("begin", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._write("fail", report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write("fail", report.nodeid)

    def _write(self, event: str, nodeid: str) -> None:
        self._log.write(json.dumps([event, nodeid]) + "\n")
        self._log.flush()


def main(folder: Path) -> None:
    for line in sys.stdin:
        print(json.dumps(run(folder, json.loads(line))), flush=True)  # noqa: T201


def run(folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    """One run of pytest, in a fork."""
    events = folder / "events"
    events.write_text("", encoding="utf-8")
    child = os.fork()
    if child == 0:
        run_pytest(folder, events, request)
    handle = os.pidfd_open(child)
    in_time = bool(select.select([handle], [], [], WALL_SECONDS)[0])
    os.close(handle)
    end_processes(child)
    _, status, usage = os.wait4(child, 0)
    reap()
    lines = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    failed = list(dict.fromkeys(nodeid for event, nodeid in lines if event == "fail"))
    timeout = not in_time or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in {signal.SIGXCPU, signal.SIGKILL})
    ended = "timeout" if timeout else {0: "passed", 5: "none"}.get(os.waitstatus_to_exitcode(status), "failed")
    return {
        "ended": ended,
        "failed": failed,
        "running": next((nodeid for event, nodeid in reversed(lines) if event == "begin"), ""),
        "seconds": round(usage.ru_utime + usage.ru_stime, 2),
    }


def run_pytest(folder: Path, events: Path, request: dict[str, Any]) -> NoReturn:
    """In the fork. Its processor time is its own; each process that it starts has the same limits."""
    os.setsid()
    seconds = request["seconds"]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    status = 3
    try:
        with events.open("a", encoding="utf-8") as log:
            status = int(pytest.main(request["arguments"], plugins=[Recorder(log)]))
    finally:
        # Only the judge goes on after a run.
        os._exit(status)


def end_processes(child: int) -> None:
    """End what a run left behind: as the first process of a namespace all others, otherwise those of its session."""
    try:
        if os.getpid() == 1:
            os.kill(-1, signal.SIGKILL)
        else:
            os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    main(Path(sys.argv[1]))
