"""Accepting while the system has no resources: a pause, one line at the beginning and one at the end."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import errno
from collections.abc import Iterator

import pytest
import structlog
import trio
from trio.testing import MockClock

from sidecar.sockets.accepting import CALM, PAUSE, Shortage, accept_connections


class Listener:
    """A listener whose accept() fails, succeeds (None) or waits, in this order."""

    def __init__(self, *outcomes: int | None) -> None:
        self.outcomes: Iterator[int | None] = iter(outcomes)
        self.calls: list[float] = []

    async def accept(self) -> str:
        self.calls.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        number = next(self.outcomes, "wait")
        if number == "wait":
            await trio.sleep_forever()
        if isinstance(number, int):
            raise OSError(number, "a reason")
        return "a connection"


async def accept(listener: Listener, nursery: trio.Nursery) -> list[object]:
    begun: list[object] = []

    async def run() -> None:
        await accept_connections(listener, begun.append, name="dns")  # type: ignore[arg-type]  # all used members

    nursery.start_soon(run)
    await trio.sleep(10 * CALM)
    return begun


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS], ids=errno.errorcode.get)
async def test_a_shortage_delays_connections_and_is_logged_twice(
    number: int, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    listener = Listener(number, None, number, number, None)
    with structlog.testing.capture_logs() as logs:
        begun = await accept(listener, nursery)
    assert begun == ["a connection"] * 2
    assert [(line["event"], line["port"]) for line in logs] == [
        ("cannot accept connections; they wait", "dns"),
        ("accepting connections again", "dns"),
    ]
    assert (logs[0]["cause"], logs[1]["seconds"]) == ("a reason", pytest.approx(2 * PAUSE))


async def test_attempts_are_spaced(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    listener = Listener(*[errno.EMFILE] * 50)
    await accept(listener, nursery)
    gaps = [later - earlier for earlier, later in zip(listener.calls[:50], listener.calls[1:51], strict=True)]
    assert min(gaps) >= PAUSE * 0.999


async def test_without_a_shortage_nothing_is_logged(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    with structlog.testing.capture_logs() as logs:
        assert len(await accept(Listener(None, None), nursery)) == 2
    assert logs == []


async def test_a_broken_listener_is_an_error() -> None:
    with pytest.raises(OSError, match="a reason"):
        await accept_connections(Listener(errno.EBADF), print, name="dns")  # type: ignore[arg-type]  # as above


def test_a_shortage_that_comes_and_goes_is_one() -> None:
    shortage = Shortage()
    assert shortage.end(0) is None
    assert [shortage.begin(now) for now in (1, 2, 4)] == [True, False, False]
    assert shortage.end(4 + CALM / 2) is None
    assert not shortage.begin(7)
    assert shortage.lasting
    assert shortage.end(7 + CALM) == 6
    assert not shortage.lasting
    assert shortage.end(8 + CALM) is None
    assert shortage.begin(9 + CALM)
