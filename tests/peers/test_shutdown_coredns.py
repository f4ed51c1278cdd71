"""The end and the restart of a server, behind a real CoreDNS with the installed stanza.

The contract (O12, I6): while our processes end, crash, hang and return, every question gets an answer within CoreDNS's
timeout for one server. Names outside the table are not affected; names of the table get our answer or, if no dnsproxy
runs, that of the original resolver.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
import trio

from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.corefile.shapes import NEWEST, installed
from tests.kit.coredns import CoreDns, answering, running_coredns
from tests.kit.ports import free_port
from tests.kit.scraping import scrape
from tests.kit.serve_process import Serving, serving
from tests.peers.steady import TABLE_SUFFIX, Tally, answered_at_once_with, answered_with, asking

pytestmark = pytest.mark.peer("coredns")

FIRST, SECOND, THIRD = "192.0.2.81", "192.0.2.82", "192.0.2.83"
"""The answers of our processes, one each, so that a reply identifies its process."""
PUBLIC = "198.51.100.7"
"""The original resolver's answer for every name."""

SHORT_LAME_DUCK = {"DNSPROXY_LAMEDUCK": "2"}
"""Longer than CoreDNS's retry interval, and short enough for a test."""

Entered = TypeVar("Entered")


@dataclass
class Scene:
    """A CoreDNS whose stanza names some ports of ours, and the original resolver after them."""

    front: CoreDns
    ports: tuple[int, ...]
    upstream: CoreDns
    folder: Path
    stack: ExitStack

    async def start(self, address: str, *, port: int) -> Serving:
        """A ready dnsproxy; it ends with the scene."""
        table = ("--host", f"*.{TABLE_SUFFIX}={address}")
        upstream = ("--upstream", f"127.0.0.1:{self.upstream.port}")
        started = serving(self.folder, *table, *upstream, port=port, environment=SHORT_LAME_DUCK)
        return await self._enter(started)

    async def _enter(self, block: AbstractContextManager[Entered]) -> Entered:
        # In a thread, because it waits: the questions must be sent on time.
        return await trio.to_thread.run_sync(self.stack.enter_context, block)


@asynccontextmanager
async def scene(folder: Path, *, ports: int = 1) -> AsyncIterator[Scene]:
    """CoreDNS and the original resolver; no dnsproxy runs yet."""
    with ExitStack() as stack:
        upstream = stack.enter_context(running_coredns(folder, answering(PUBLIC)))
        ours = tuple(free_port() for _ in range(ports))
        stock = f". {{\n bind 127.0.0.1\n errors\n forward . 127.0.0.1:{upstream.port}\n}}\n"
        stanza = installed(stock, *(str(Endpoint("127.0.0.1", port)) for port in ours), version=NEWEST)
        front = stack.enter_context(running_coredns(folder, stanza.new))
        yield Scene(front, ours, upstream, folder, stack)


def check(tally: Tally, *, answers: set[str]) -> None:
    """Nothing lost, nothing late, nothing wrong; `answers` are the correct ones for names of the table."""
    print(tally)  # noqa: T201  # the count of failures, to be seen with -rP
    assert set(tally.said(in_table=True)) == answers
    assert set(tally.said(in_table=False)) == {PUBLIC}
    assert tally.late() == []


async def test_sigterm_under_load_costs_no_answer_and_ends_with_0(tmp_path: Path) -> None:
    async with scene(tmp_path) as road:
        ours = await road.start(FIRST, port=road.ports[0])
        async with asking(road.front.port) as tally:
            await tally.wait_for(50, answered_with(FIRST))
            assert await trio.to_thread.run_sync(ours.terminate) == 0
            await tally.wait_for(50, answered_with(PUBLIC))
            await road.start(SECOND, port=road.ports[0])
            await tally.wait_for(50, answered_with(SECOND))
        check(tally, answers={FIRST, PUBLIC, SECOND})


async def test_a_rolling_restart_costs_no_answer_of_the_table(tmp_path: Path) -> None:
    """The new process is ready before the old one ends, so that the original resolver is never asked for our names."""
    async with scene(tmp_path, ports=2) as road:
        first = await road.start(FIRST, port=road.ports[0])
        async with asking(road.front.port) as tally:
            await tally.wait_for(50, answered_with(FIRST))
            second = await road.start(SECOND, port=road.ports[1])
            assert await trio.to_thread.run_sync(first.terminate) == 0
            await tally.wait_for(50, answered_with(SECOND))
            await road.start(THIRD, port=road.ports[0])
            await tally.wait_for(50, answered_with(THIRD))
            assert await trio.to_thread.run_sync(second.terminate) == 0
            await tally.wait_for(50, answered_with(THIRD))
        check(tally, answers={FIRST, SECOND, THIRD})


async def test_a_crash_under_load_costs_no_answer_and_the_next_one_is_found(tmp_path: Path) -> None:
    async with scene(tmp_path) as road:
        ours = await road.start(FIRST, port=road.ports[0])
        async with asking(road.front.port) as tally:
            await tally.wait_for(50, answered_with(FIRST))
            await trio.to_thread.run_sync(ours.kill)
            await tally.wait_for(100, answered_with(PUBLIC))
            await road.start(SECOND, port=road.ports[0])
            await tally.wait_for(50, answered_with(SECOND))
        check(tally, answers={FIRST, PUBLIC, SECOND})


async def test_a_server_that_hangs_costs_no_answer_and_is_asked_again_when_it_goes_on(tmp_path: Path) -> None:
    async with scene(tmp_path) as road:
        ours = await road.start(FIRST, port=road.ports[0])
        async with asking(road.front.port) as tally:
            await tally.wait_for(50, answered_with(FIRST))
            await trio.to_thread.run_sync(ours.hang)
            await tally.wait_for(200, answered_at_once_with(PUBLIC))
            ours.resume()
            await tally.wait_for(50, answered_at_once_with(FIRST))
            # CoreDNS asked the original resolver meanwhile: a burst of the queued queries could fill its socket.
            samples = await trio.to_thread.run_sync(scrape, str(ours.admin_endpoint))
            assert samples["dnsproxy_forward_stale_total"] > 0
        check(tally, answers={FIRST, PUBLIC})


async def test_a_server_that_hangs_again_and_again_costs_no_answer(tmp_path: Path) -> None:
    async with scene(tmp_path) as road:
        ours = await road.start(FIRST, port=road.ports[0])
        async with asking(road.front.port) as tally:
            for _ in range(3):
                await tally.wait_for(50, answered_with(FIRST))
                await trio.to_thread.run_sync(ours.hang)
                await tally.wait_for(1, answered_with(PUBLIC))
                ours.resume()
        check(tally, answers={FIRST, PUBLIC})


async def test_without_dnsproxy_from_the_start_every_name_resolves(tmp_path: Path) -> None:
    async with scene(tmp_path) as road:
        async with asking(road.front.port) as tally:
            await tally.wait_for(100, answered_with(PUBLIC))
            await road.start(FIRST, port=road.ports[0])
            await tally.wait_for(50, answered_with(FIRST))
        check(tally, answers={FIRST, PUBLIC})
