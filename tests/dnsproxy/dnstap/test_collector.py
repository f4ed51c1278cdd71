"""Scripted collectors: good ones, and every fault of a bad one. connection.py is tested here, too."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from dnsproxy.dnstap import collector, connection
from dnsproxy.dnstap.collector import FIRST_PAUSE, LONGEST_PAUSE, pause_after, run_dnstap
from dnsproxy.dnstap.frames import CONTENT_TYPE, Control, ControlReader, Kind, format_control, format_data
from dnsproxy.dnstap.messages import MessageWriter
from dnsproxy.dnstap.numbers import DnstapNumbers
from dnsproxy.dnstap.settings import Collector, DnstapSettings
from dnsproxy.tap.hub import QUEUE, Tap
from dnsproxy.tap.seen import Outcome
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.dnstap.protobuf import fields_of
from tests.kit import messages
from tests.kit.dns_server import REPLY_SECONDS, wait_until

CLIENT: Final = (None, ("192.0.2.7", 5353))
ACCEPT: Final = format_control(Control(Kind.ACCEPT, (CONTENT_TYPE,)))
FINISH: Final = format_control(Control(Kind.FINISH))
FINISH_SECONDS: Final = 1.0

Script = Callable[[trio.SocketStream], Awaitable[None]]


def note(tap: Tap, name: str = "app.example.org", *, reply: bytes = b"") -> None:
    tap.note(CLIENT, messages.query(name), reply, Outcome.DROPPED, seconds=0.001)


class Good:
    """A collector as it should be; `frames` are the payloads that it got."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.ends: list[str] = []
        """How each connection ended: with STOP, or without."""

    async def __call__(self, stream: trio.SocketStream) -> None:
        reader = ControlReader()
        assert await read_control(stream, reader) == Control(Kind.READY, (CONTENT_TYPE,))
        await stream.send_all(ACCEPT)
        assert await read_control(stream, reader) == Control(Kind.START, (CONTENT_TYPE,))
        self.ends.append(await self._read_frames(stream))
        if self.ends[-1] == "STOP":
            await stream.send_all(FINISH)

    async def _read_frames(self, stream: trio.SocketStream) -> str:
        while size := int.from_bytes(await read_exactly(stream, 4) or b"\xff", "big"):
            if size == 0xFF:
                return "cut"
            self.frames.append(await read_exactly(stream, size))
        assert await read_exactly(stream, 8) == format_control(Control(Kind.STOP))[4:]
        return "STOP"


async def read_control(stream: trio.SocketStream, reader: ControlReader) -> Control:
    while (found := reader.next_control()) is None:
        # One octet at a time: nothing after the control frame is taken.
        reader.feed(await read_exactly(stream, 1))
    return found


async def read_exactly(stream: trio.SocketStream, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = await stream.receive_some(size - len(received))
        if not piece:
            return b""
        received += piece
    return received


class Stage:
    """A tap, its collector and its numbers."""

    def __init__(self, at: Collector, *, finish: float) -> None:
        self.finish = finish
        self.tap = Tap()
        self.asked = 0
        self.numbers = DnstapNumbers(lambda: self.asked)
        self.settings = DnstapSettings(at, "pod-7", "switchback 0.1.0")
        self.logs: list[Any] = []
        self.stop = trio.CancelScope()

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        with self.stop:
            task_status.started()
            await run_dnstap(self.tap, self.settings, self.numbers, finish=self.finish)

    async def connected(self) -> None:
        await wait_until(lambda: self.numbers.connected)

    def told(self, event: str) -> list[str]:
        return [str(one.get("reason", "")) for one in self.logs if event in one["event"]]


@asynccontextmanager
async def stage(
    folder: Path, *scripts: Script, tcp: bool = False, finish: float = FINISH_SECONDS
) -> AsyncIterator[Stage]:
    """`scripts` are those of the connections, in turn; the last one for all that follow."""
    left = list(scripts)

    async def serve(stream: trio.SocketStream) -> None:
        script = left.pop(0) if len(left) > 1 else left[0]
        try:
            await script(stream)
        except (trio.BrokenResourceError, OSError):
            return

    path = folder / "collector.sock"
    family, address = (socket.AF_INET, ("127.0.0.1", 0)) if tcp else (socket.AF_UNIX, str(path))
    bound = trio.socket.socket(family, socket.SOCK_STREAM)
    await bound.bind(address)
    bound.listen(5)
    at = Endpoint(*bound.getsockname()) if tcp else PurePosixPath(path)
    with capture_logs() as logs:
        made = Stage(at, finish=finish)
        made.logs = logs
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(trio.serve_listeners, serve, [trio.SocketListener(bound)]))
            await nursery.start(made.run)
            yield made
            nursery.cancel_scope.cancel()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of hundredths of a second."""
    monkeypatch.setattr(collector, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(collector, "LONGEST_PAUSE", 0.02)


def sends(*octets: bytes) -> Script:
    """A collector that answers READY with these octets, and then waits for the end."""

    async def script(stream: trio.SocketStream) -> None:
        await read_control(stream, ControlReader())
        for piece in octets:
            await stream.send_all(piece)
        await stream.receive_some(65_536)
        await trio.sleep_forever()

    return script


async def close(stream: trio.SocketStream) -> None:
    await stream.aclose()


async def silence(_: trio.SocketStream) -> None:
    await trio.sleep_forever()


@pytest.mark.parametrize("tcp", [pytest.param(False, id="unix"), pytest.param(True, id="tcp")])
async def test_a_query_reaches_the_collector(tmp_path: Path, tcp: bool) -> None:
    good = Good()
    async with stage(tmp_path, good, tcp=tcp) as made:
        await made.connected()
        note(made.tap, reply=b"\x12\x34reply")
        await wait_until(lambda: len(good.frames) == 2)
        await wait_until(lambda: made.numbers.sent == 1)
    assert [fields_of(one)[1] for one in good.frames] == [b"pod-7", b"pod-7"]


async def test_the_end_sends_what_is_left_and_stop(tmp_path: Path) -> None:
    good = Good()
    # All of it is read: on a busy machine that takes longer than a collector gets that says nothing.
    async with stage(tmp_path, good, finish=REPLY_SECONDS) as made:
        await made.connected()
        for _ in range(1000):
            note(made.tap)
        made.stop.cancel()
        await wait_until(lambda: good.ends == ["STOP"])
        await wait_until(lambda: not made.numbers.connected)
        assert made.numbers.sent == len(good.frames) == 1000
        assert made.numbers.dropped == 0
    assert made.told("left") == ["the server ends"]


async def test_the_end_of_a_collector_that_does_not_finish_is_bounded(tmp_path: Path) -> None:
    async with stage(tmp_path, sends(ACCEPT)) as made:
        await made.connected()
        made.stop.cancel()
        await wait_until(lambda: not made.numbers.connected)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        pytest.param(close, "closed the connection|reset|Broken", id="it closes at once"),
        pytest.param(sends(FINISH), "FINISH where ACCEPT belongs", id="FINISH"),
        pytest.param(sends(format_control(Control(Kind.READY))), "READY where ACCEPT belongs", id="READY"),
        pytest.param(sends(format_control(Control(Kind.ACCEPT, (b"other",)))), "accepts b'other'", id="other contents"),
        pytest.param(sends(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "no Frame Streams", id="HTTP"),
        pytest.param(sends(b"\0\0\0\0\xff\xff\xff\xff"), "of 4294967295 octets", id="a huge length"),
        pytest.param(sends(format_data(b"abc")), "a data frame", id="a data frame"),
        pytest.param(sends(ACCEPT[:9]), "too slow", id="half a frame"),
        pytest.param(silence, "too slow", id="nothing"),
    ],
)
@pytest.mark.usefixtures("soon")
async def test_a_bad_handshake_is_told_once_and_tried_again(
    tmp_path: Path, script: Script, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.3)
    good = Good()
    async with stage(tmp_path, script, script, good) as made:
        await made.connected()
        note(made.tap)
        await wait_until(lambda: bool(good.frames))
        (told,) = made.told("not reached")
    assert re.search(reason, told), told


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        pytest.param([ACCEPT, FINISH], "it finished", id="FINISH without STOP"),
        pytest.param([ACCEPT, ACCEPT], "ACCEPT where FINISH belongs", id="ACCEPT again"),
        pytest.param([ACCEPT + b"garbage"], "no Frame Streams", id="garbage"),
        pytest.param([ACCEPT[:5], ACCEPT[5:] + b"\0\0\0\0\0\0\xff\xff"], "of 65535 octets", id="in pieces, too long"),
    ],
)
@pytest.mark.usefixtures("soon")
async def test_a_collector_that_breaks_the_protocol_is_left(
    tmp_path: Path, octets: Sequence[bytes], reason: str
) -> None:
    good = Good()
    async with stage(tmp_path, sends(*octets), good) as made:
        await wait_until(lambda: bool(made.told("left")))
        assert reason in made.told("left")[0]
        await made.connected()


@pytest.mark.usefixtures("soon")
async def test_without_a_collector_nobody_listens_and_queries_count_as_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 60)
    again = trio.Event()

    async def leaves(stream: trio.SocketStream) -> None:
        reader = ControlReader()
        await read_control(stream, reader)
        await stream.send_all(ACCEPT)
        await read_control(stream, reader)
        await again.wait()
        await stream.aclose()

    async with stage(tmp_path, leaves, sends(ACCEPT[:-1])) as made:
        await made.connected()
        assert made.tap.listening
        made.asked = 10
        again.set()
        await wait_until(lambda: not made.numbers.connected)
        assert not made.tap.listening
        made.asked = 17
        assert made.numbers.dropped == 7


async def test_a_collector_that_reads_nothing_costs_one_queue_and_is_counted(tmp_path: Path) -> None:
    async with stage(tmp_path, sends(ACCEPT)) as made:
        await made.connected()
        for _ in range(10):
            for _ in range(QUEUE):
                note(made.tap, reply=bytes(1000))
            await trio.lowlevel.checkpoint()
        await wait_until(lambda: made.numbers.dropped > 8 * QUEUE)
        assert made.numbers.sent < QUEUE
        made.stop.cancel()
        await wait_until(lambda: not made.numbers.connected)
        # Each is counted once, also those that were in the queue and on their way.
        assert made.numbers.sent + made.numbers.dropped == 10 * QUEUE


@pytest.mark.usefixtures("soon")
async def test_a_collector_that_takes_nothing_for_long_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "STALL_SECONDS", 0.05)
    async with stage(tmp_path, sends(ACCEPT)) as made:
        await made.connected()
        for _ in range(QUEUE):
            note(made.tap, reply=bytes(1000))
        await wait_until(lambda: "it was too slow" in made.told("left"))


async def test_a_query_that_cannot_be_written_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = MessageWriter.messages_of
    calls = iter([True])

    def broken(writer: MessageWriter, seen: Any) -> list[bytes]:
        if next(calls, False):
            raise ZeroDivisionError
        return whole(writer, seen)

    monkeypatch.setattr(MessageWriter, "messages_of", broken)
    good = Good()
    async with stage(tmp_path, good) as made:
        await made.connected()
        note(made.tap)
        note(made.tap)
        await wait_until(lambda: len(good.frames) == 1)
    assert made.told("was not written") == [""]


@given(st.integers(0, 100_000), st.floats(0, 1, exclude_max=True))
def test_a_pause_is_within_its_bounds(failures: int, drawn: float) -> None:
    assert FIRST_PAUSE <= pause_after(failures, drawn=drawn) <= LONGEST_PAUSE


def test_pauses_double() -> None:
    assert [pause_after(failures, drawn=0) for failures in range(6)] == [1, 2, 4, 8, 15, 15]
