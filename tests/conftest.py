"""What every test gets: a deadline for async tests, and peers that are found, skipped with a reason, or demanded."""

from __future__ import annotations

import functools
import inspect
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog
import trio

from tests.kit.laws import is_test_of_pure_module
from tests.kit.one_worker import OneWorkerEach, shared_server
from tests.kit.programs import GUARD, ProgramGuard, find_program

DEADLINE_SECONDS = 60
"""A test that waits longer has hung; failing inside trio shows where it waits."""
_NOTED = pytest.StashKey[frozenset[str]]()
_OTHER_OUTCOMES = ("failed", "error", "skipped", "xfailed", "xpassed")
CLOCKS = frozenset({"autojump_clock", "mock_clock", "clock"})

# Nothing is timed in a test: an example that was slow met a busy machine.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=10)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def logging_restored() -> Iterator[None]:
    """A command that a test runs in its process sets up logging: later tests would miss events below its level."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    configuration = structlog.get_config()
    yield
    structlog.configure(**configuration)
    root.handlers[:] = handlers
    root.setLevel(level)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pure", action="store_true", help="only the tests of pure modules, found by their names")
    parser.addoption("--note-passed", metavar="FILE", type=Path, help="write the names of the tests that passed")
    parser.addoption("--not-in", metavar="FILE", type=Path, help="leave out the tests that another run noted")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What has no test to run is not even imported: None leaves the decision to pytest."""
    if collection_path.suffix != ".py":
        return None
    if config.getoption("--pure") and not is_test_of_pure_module(collection_path):
        return True
    # Files are noted beside tests, below.
    return True if collection_path.relative_to(config.rootpath).as_posix() in noted_by_another(config) else None


def pytest_configure(config: pytest.Config) -> None:
    """With --pure, a law that sets no number of examples of its own is tried with fewer.

    A shell without job control starts what runs in its background with SIGINT ignored, and programs inherit that. A
    make that a test runs would take the variables of `make test ARGS=...` for its own.
    """
    for name in ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "ARGS", "WORKERS"):
        os.environ.pop(name, None)
    if config.getoption("--pure"):
        hypothesis.settings.load_profile("quick")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[GUARD] = ProgramGuard()
    sys.addaudithook(config.stash[GUARD].audit)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """While a test runs, with its fixtures, only the programs that its marker names may be started."""
    guard = item.config.stash[GUARD]
    guard.peers = peers_of(item)
    try:
        return (yield)
    finally:
        guard.peers = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """A test that caught the guard's error fails here."""
    try:
        return (yield)
    finally:
        refused = item.config.stash[GUARD].refused
        messages = "\n".join(refused)
        refused.clear()
        assert not messages, messages


def pytest_itemcollected(item: pytest.Item) -> None:
    for marker in item.iter_markers("usefixtures"):
        # pytest-trio takes its clock from a test's arguments alone: this test would wait in real time.
        if CLOCKS.intersection(marker.args):
            raise pytest.UsageError(f"{item.nodeid}: its clock must be an argument")
    if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
        item.obj = with_deadline(item.obj)


def with_deadline(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def run(*arguments: Any, **keywords: Any) -> None:
        with trio.fail_after(DEADLINE_SECONDS):
            await test(*arguments, **keywords)

    return run


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Decided here and not in the test: pytest-trio loses the reason of a skip inside an async test."""
    for marker in item.iter_markers("peer"):
        missing = [program for program in marker.args if find_program(program) is None]
        if missing:
            refuse(f"missing peer: {', '.join(missing)} (`make peers` brings it)")


def refuse(reason: str) -> None:
    """Skip, except where peers are demanded (REQUIRE_PEERS=1), and there fail."""
    if os.environ.get("REQUIRE_PEERS") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneWorkerEach | None:
    """For `--dist=loadfile`, as in the Makefile; None leaves the decision to xdist."""
    return OneWorkerEach(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if passed := noted_by_another(config):
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in passed])
        items[:] = [item for item in items if item.nodeid not in passed]
    _put_long_files_first(items)


def noted_by_another(config: pytest.Config) -> frozenset[str]:
    """The names of the tests that another run noted, and of the files in which nothing else happened."""
    if _NOTED not in config.stash:
        noted: Path | None = config.getoption("--not-in")
        config.stash[_NOTED] = frozenset(noted.read_text(encoding="utf-8").splitlines() if noted is not None else ())
    return config.stash[_NOTED]


def _put_long_files_first(items: list[pytest.Item]) -> None:
    """A long one at the end would run alone. Those that share a server are the longest: one worker takes them all."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    ordered = sorted(files.values(), key=_expected_length, reverse=True)
    items[:] = chain.from_iterable(ordered)


def _expected_length(items: Sequence[pytest.Item]) -> tuple[bool, float, int, int]:
    """Whether they share a server, how long one may take, how many real programs it needs, and how many they are."""
    markers = (item.get_closest_marker("timeout") for item in items)
    longest = max(float(marker.args[0]) if marker else 0.0 for marker in markers)
    return shared_server(items[0].path) is not None, longest, max(len(peers_of(item)) for item in items), len(items)


def peers_of(item: pytest.Item) -> frozenset[str]:
    """The real programs that a test's markers name."""
    return frozenset(str(name) for marker in item.iter_markers("peer") for name in marker.args)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: pytest.ExitCode, config: pytest.Config
) -> None:
    noted: Path | None = config.getoption("--note-passed")
    if noted is None:
        return
    stats = terminalreporter.stats
    names = {report.nodeid for report in stats.get("passed", ())}
    # A run that was interrupted did not begin some tests, and has no report of them.
    if exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        others = [report.nodeid for kind in _OTHER_OUTCOMES for report in stats.get(kind, ())]
        names |= {file_of(name) for name in names} - {file_of(name) for name in others}
    noted.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")


def file_of(name: str) -> str:
    """The file of a test, as in its name."""
    return name.partition("::")[0]
