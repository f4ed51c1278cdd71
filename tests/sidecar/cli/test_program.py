"""From the end of a program to its exit status, in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

START = """
import os, sys, trio
from sidecar.cli.options import StartError, run_program
"""


def run(code: str, *, timeout: float = 30) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START + code], capture_output=True, text=True, timeout=timeout, check=False
    )


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param("pass", 0, id="nothing"),
        pytest.param("return 0", 0, id="0"),
        pytest.param("return 1", 1, id="1"),
    ],
)
def test_the_status_is_what_the_program_gives(body: str, status: int) -> None:
    result = run(f"async def main(): {body}\nrun_program(main)")
    assert (result.returncode, result.stderr) == (status, "")


def test_arguments_are_passed_on() -> None:
    assert run("async def main(one, two): return one + two\nrun_program(main, 3, 4)").returncode == 7


NESTED = """
async def main():
    async with trio.open_nursery() as outer:
        async with trio.open_nursery() as inner:
            inner.start_soon(trio.sleep_forever)
            raise {error}
run_program(main)
"""


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        pytest.param("StartError('--admin: taken')", 2, "Error: --admin: taken\n", id="start error"),
        pytest.param("StartError('no API', status=3)", 3, "Error: no API\n", id="with a status"),
        pytest.param("StartError('a\\nb\\x1b[2J')", 2, "Error: a b\\x1b[2J\n", id="with control characters"),
    ],
)
def test_a_start_error_in_nested_groups_is_one_line(error: str, status: int, line: str) -> None:
    result = run(NESTED.format(error=error))
    assert (result.returncode, result.stderr) == (status, line)


def test_two_start_errors_are_two_lines() -> None:
    result = run("""
async def fail(text): raise StartError(text)
async def main():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail, "one")
        nursery.start_soon(fail, "two")
run_program(main)
""")
    assert result.returncode == 2
    assert sorted(result.stderr.splitlines()) == ["Error: one", "Error: two"]


def test_a_want_of_descriptors_is_one_line_however_many_parts_have_it() -> None:
    result = run("""
async def fail(): raise OSError(24, "Too many open files")
async def main():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail)
        nursery.start_soon(fail)
run_program(main)
""")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: the limit of open files is ")


def test_the_soft_limit_of_descriptors_is_raised_for_every_program() -> None:
    result = run("""
import resource
async def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 0 if soft == hard else 9
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(100, hard), hard))
run_program(main)
""")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    "error", ["ZeroDivisionError", "BrokenPipeError", "ExceptionGroup('', [StartError('x'), ValueError('a bug')])"]
)
def test_a_bug_keeps_its_traceback(error: str) -> None:
    result = run(NESTED.format(error=error))
    assert result.returncode == 1
    assert "Traceback" in result.stderr


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("run_program(main)", id="trio"),
        pytest.param("run_program(main, handlers=4)", id="hosted"),
    ],
)
def test_ctrl_c_exits_130_without_a_traceback(end: str) -> None:
    code = START + f"async def main():\n print('up', flush=True)\n await trio.sleep_forever()\n{end}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read() == b""


def test_a_reader_that_goes_away_ends_the_program_quietly() -> None:
    code = START + "async def main():\n while True: print('x' * 1000, flush=True)\nrun_program(main)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        deadline = time.monotonic() + 30
        assert process.wait(deadline - time.monotonic()) == 0
        assert process.stderr.read() == b""
