"""One of our programs that has its imports behind it and forks for each run: they are most of what a short run takes.

The law: each run is a process of its own, with its own arguments, environment and output; only what it imports is
there already. It runs where the preparation was begun: in that network, as that user. What a run imports, later runs
find there. Not for a command that starts processes of its own: they would hold what it reports.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NoReturn

import click
import trio

from tests.kit.launched import ROOT
from tests.kit.processes import end_process

OURS: Final = ("dnsproxy", "proxy", "sidecar", "wholeip")


class PreparedProgram:
    """Runs `python -m PROGRAM`, one run at a time."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._one_at_a_time = threading.Lock()
        self._output = folder / "stdout", folder / "stderr"

    def run(self, *arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """As subprocess.run with text, and no input."""
        asked = [arguments, dict(environment), list(map(str, self._output))]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._one_at_a_time:
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
            status = int(self._process.stdout.readline())
            output, errors = (one.read_text(encoding="utf-8") for one in self._output)
        return subprocess.CompletedProcess(arguments, status, output, errors)


def play(command: Sequence[str], environment: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
    """Run `[sys.executable, "-m", PROGRAM, ...]` in the shared one."""
    assert list(command[:2]) == [sys.executable, "-m"]
    return shared(command[2]).run(*command[3:], environment=environment)


@functools.cache
def shared(program: str) -> PreparedProgram:
    """One for all tests of this process, to its end, in the network and as the user that all tests have."""
    stack = ExitStack()
    atexit.register(stack.close)
    folder = stack.enter_context(TemporaryDirectory())
    return stack.enter_context(prepared_program(Path(folder), program))


async def run_shared(program: str, *arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """The same beside a server of the test, which answers meanwhile."""
    return await trio.to_thread.run_sync(partial(shared(program).run, *arguments, environment=environment))


@contextmanager
def prepared_program(folder: Path, program: str, *modules: str) -> Iterator[PreparedProgram]:
    """`program` has a `cli` whose `main` is the command; `modules` are what it imports besides, in each run."""
    command = [sys.executable, "-m", "tests.kit.prepared_program", program, *modules]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as process:
        try:
            yield PreparedProgram(process, folder)
        finally:
            end_process(process)


def main(program: str, *modules: str) -> None:
    """Answer each line with the exit status of its run."""
    command = import_module(f"{program}.cli").main
    for module in modules:
        import_module(module)
    for line in sys.stdin:
        gc.freeze()
        arguments, environment, output = json.loads(line)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            _report_modules(writer)
            _run(command, [f"python -m {program}", *arguments], environment, output)
        os.close(writer)
        with open(reader, encoding="utf-8") as reported:  # a descriptor
            imported = reported.read().split()
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201  # the answer
        # The next run finds them here.
        for module in imported:
            import_module(module)


def _report_modules(descriptor: int) -> None:
    """At the end of a run, the modules of ours that it has imported."""
    before = set(sys.modules)

    def report() -> None:
        mine = (name for name in sys.modules if name not in before and name.split(".")[0] in OURS)
        os.write(descriptor, " ".join(mine).encode())

    atexit.register(report)


def _run(
    command: click.Command, words: Sequence[str], environment: Mapping[str, str], output: Sequence[str]
) -> NoReturn:
    """In the fork, to its end."""
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, path in enumerate(output, start=1):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, descriptor)
        os.close(opened)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    # Its exit, and the traceback of a fault, leave this process as they leave every program.
    command.main(args=list(words[1:]), prog_name=words[0])
    raise SystemExit


if __name__ == "__main__":
    main(*sys.argv[1:])
