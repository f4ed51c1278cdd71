"""The end of a server: not ready at once, queries answered for the lame duck's time, then pending ones (O12)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import MutableMapping
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, wait_all_tasks_blocked

from dnsproxy.serve.program import run_serve, serve
from dnsproxy.serve.service import Bound
from dnsproxy.serve.settings import ServeSettings
from dnsproxy.server.dns_server import DnsServer
from tests.kit import messages
from tests.kit.dns_server import REPLY_SECONDS, read_message
from tests.kit.serve_inside import LOOPBACK, addresses_in, ask, ask_stream, get, settings
from tests.kit.upstream_replies import framed

NAME, ADDRESSES = "app.example.org", ["192.0.2.10"]


class Ending:
    """A server that can be asked to stop, and whether it has."""

    def __init__(self) -> None:
        self.stopping = trio.Event()
        self.ended = trio.Event()

    async def run(self, wanted: ServeSettings, *, task_status: trio.TaskStatus[Bound]) -> None:
        await serve(wanted, stopping=self.stopping, task_status=task_status)
        self.ended.set()


async def assert_answering(bound: Bound) -> None:
    assert addresses_in(await ask(bound.dns[0], NAME)) == ADDRESSES
    assert addresses_in(await ask_stream(bound.dns[0], NAME)) == ADDRESSES
    assert (await get(bound.admin, "/healthz"))[0] == 200


async def test_a_lame_duck_answers_all_and_is_not_ready(nursery: trio.Nursery, mock_clock: MockClock) -> None:
    server = Ending()
    bound = await nursery.start(server.run, settings(lameduck=30))
    assert (await get(bound.admin, "/readyz"))[0] == 200
    server.stopping.set()
    assert await get(bound.admin, "/readyz") == (503, "stopping\n")
    await assert_answering(bound)
    mock_clock.jump(29)
    await assert_answering(bound)
    assert await get(bound.admin, "/readyz") == (503, "stopping\n")
    assert not server.ended.is_set()
    mock_clock.jump(1)
    await server.ended.wait()


async def test_a_connection_is_served_until_the_time_is_over_and_then_ended_with_fin(
    nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    server = Ending()
    bound = await nursery.start(server.run, settings(lameduck=9))
    async with await trio.open_tcp_stream(bound.dns[0].host, bound.dns[0].port) as stream:
        server.stopping.set()
        await wait_all_tasks_blocked()
        await stream.send_all(framed(messages.query(NAME)))
        assert addresses_in(await read_message(stream)) == ADDRESSES
        mock_clock.jump(9)
        assert await read_message(stream) == b""
    await server.ended.wait()


async def test_without_a_lame_duck_s_time_the_end_comes_at_once(nursery: trio.Nursery, mock_clock: MockClock) -> None:
    server = Ending()
    bound = await nursery.start(server.run, settings(lameduck=0))
    started = mock_clock.current_time()
    server.stopping.set()
    await server.ended.wait()
    assert mock_clock.current_time() == started
    with pytest.raises(OSError, match="all attempts to connect"):
        await trio.open_tcp_stream(bound.dns[0].host, bound.dns[0].port)


class Signalled:
    """`run_serve` in this process, which can be signalled; its log shows its progress."""

    def __init__(self, logs: list[MutableMapping[str, Any]]) -> None:
        self.statuses: list[int] = []
        self._logs = logs

    async def run(self, wanted: ServeSettings) -> None:
        self.statuses.append(await run_serve(wanted))

    async def wait_for_log(self, event: str) -> None:
        """Only the log shows this; the test's clock stands still, so the limit is in real time."""
        give_up = time.monotonic() + REPLY_SECONDS
        while not any(line["event"].startswith(event) for line in self._logs):
            assert time.monotonic() < give_up, self._logs
            await trio.lowlevel.checkpoint()


async def test_the_drain_has_its_own_time_after_that_of_the_lame_duck(
    nursery: trio.Nursery, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    draining = trio.Event()

    async def drain(_: DnsServer) -> None:
        draining.set()
        await trio.sleep_forever()

    monkeypatch.setattr(DnsServer, "drain", drain)
    with capture_logs() as logs:
        server = Signalled(logs)
        nursery.start_soon(server.run, settings(listen=(LOOPBACK,), admin=None, lameduck=30, drain=20))
        await server.wait_for_log("serving")
        os.kill(os.getpid(), signal.SIGTERM)
        await server.wait_for_log("not ready any more")
        mock_clock.jump(29)
        await wait_all_tasks_blocked()
        assert not draining.is_set()
        mock_clock.jump(1)
        await draining.wait()
        mock_clock.jump(19)
        await wait_all_tasks_blocked()
        assert server.statuses == []
        mock_clock.jump(1)
        await server.wait_for_log("stopping now")
        await wait_all_tasks_blocked()
    assert server.statuses == [0]


@pytest.mark.parametrize(("first", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
async def test_a_second_signal_ends_a_lame_duck_at_once(
    nursery: trio.Nursery, mock_clock: MockClock, first: signal.Signals, status: int
) -> None:
    ended = trio.Event()

    async def run() -> None:
        await server.run(settings(admin=None, lameduck=3600))
        ended.set()

    with capture_logs() as logs:
        server = Signalled(logs)
        nursery.start_soon(run)
        await server.wait_for_log("serving")
        started = mock_clock.current_time()
        os.kill(os.getpid(), first)
        await server.wait_for_log("not ready any more")
        os.kill(os.getpid(), signal.SIGTERM)
        await ended.wait()
    assert server.statuses == [status]
    assert mock_clock.current_time() == started
