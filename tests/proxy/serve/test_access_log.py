"""The access log on pipes and files: a reader that is slow, gone or a file, and the last lines."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio
import trio.testing

from proxy.serve.access_log import AccessLog
from proxy.tap.ended import Dropped, parse_json
from proxy.tap.tap import QUEUE, Tap
from tests.kit.relaying import until
from tests.proxy.tap.test_ended import event

F_SETPIPE_SZ = 1031
CONNECTIONS = 3 * QUEUE


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """A blocking pipe with room for one page."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, F_SETPIPE_SZ, 4096)
    try:
        yield reading, writing
    finally:
        for descriptor in (reading, writing):
            try:
                os.close(descriptor)
            except OSError:
                continue


def read_now(descriptor: int) -> bytes:
    os.set_blocking(descriptor, False)
    try:
        return os.read(descriptor, 1 << 20)
    except BlockingIOError:
        return b""


async def test_each_connection_is_a_line_as_it_ends() -> None:
    tap = Tap()
    with pipe() as (reading, writing):
        written = AccessLog(tap, writing)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(written.run)
            for port in (1, 2):
                tap.note(event(port=port))
                await trio.testing.wait_all_tasks_blocked(0.01)
                assert parse_json(read_now(reading)) == event(port=port)
            nursery.cancel_scope.cancel()


async def test_a_reader_that_stops_loses_lines_which_are_counted_and_the_relay_goes_on() -> None:
    tap = Tap()
    with pipe() as (reading, writing):
        written = AccessLog(tap, writing)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(written.run)
            for port in range(CONNECTIONS):
                tap.note(event(port=port))
                if not port % 100:
                    await trio.lowlevel.checkpoint()
            assert 0 < written.lost <= CONNECTIONS - QUEUE
            (metric,) = written.collect()
            assert metric.samples[0].value == written.lost
            received = b""
            while not received.endswith(b"\n") or received.count(b"\n") < CONNECTIONS - written.lost + 1:
                received += read_now(reading)
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    lines = [parse_json(line) for line in received.splitlines()]
    dropped = sum(line.dropped for line in lines if isinstance(line, Dropped))
    assert dropped == written.lost
    assert len([line for line in lines if not isinstance(line, Dropped)]) == CONNECTIONS - written.lost


async def test_a_reader_that_has_gone_ends_the_access_log_alone() -> None:
    tap = Tap()
    with pipe() as (reading, writing):
        written = AccessLog(tap, writing)
        os.close(reading)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(written.run)
            tap.note(event())
            await until(lambda: not tap.listening)
        tap.note(event())
        await written.finish()


async def test_a_file_gets_the_lines_that_were_left_at_the_end(tmp_path: Path) -> None:
    tap = Tap()
    with (tmp_path / "log").open("wb") as file:
        written = AccessLog(tap, file.fileno())
        for port in range(1_000):
            tap.note(event(port=port))
        await written.finish()
    lines = [parse_json(line) for line in (tmp_path / "log").read_bytes().splitlines()]
    assert lines == [event(port=port) for port in range(1_000)]
    assert not tap.listening


async def test_the_end_does_not_wait_for_a_reader_for_long(autojump_clock: trio.testing.MockClock) -> None:
    tap = Tap()
    with pipe() as (_, writing):
        written = AccessLog(tap, writing)
        for _ in range(1_000):
            tap.note(event())
        begun = autojump_clock.current_time()
        await written.finish()
        assert autojump_clock.current_time() - begun <= 2
