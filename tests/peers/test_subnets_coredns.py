"""The guide's lines with which CoreDNS tells its client: a real CoreDNS before our server, asked with dig."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trio

from dnsproxy.dns.edns_options import client_subnet
from dnsproxy.tap.event import TapEvent, describe
from tests.kit.coredns import running_coredns
from tests.kit.dns_server import OURS, OURS_AT, running
from tests.kit.faulty_upstream import faulty_upstream
from tests.kit.launched import ROOT
from tests.kit.programs import program

pytestmark = pytest.mark.peer("coredns", "dig")

GUIDE = ROOT / "docs" / "pages" / "tap.md"
LINE = "rewrite continue edns0 subnet set 32 128"


def corefile(server: object, *lines: str) -> str:
    inside = "".join(f"    {line}\n" for line in ("bind 127.0.0.1", "errors", *lines, f"forward . {server}"))
    return f". {{\n{inside}}}\n"


async def dig(port: int, name: str, *more: str) -> list[str]:
    command = [program("dig"), "@127.0.0.1", "-p", str(port), "+short", "+tries=1", "+time=6", name, *more]
    return (await trio.run_process(command, capture_stdout=True)).stdout.decode().split()


def test_the_guide_has_the_line_that_is_played_here() -> None:
    assert LINE in GUIDE.read_text()


@pytest.mark.parametrize("more", [pytest.param((), id="dig's own OPT"), pytest.param(("+noedns",), id="no OPT")])
async def test_the_client_of_coredns_is_shown(tmp_path: Path, more: tuple[str, ...]) -> None:
    async with running() as server:
        with (
            running_coredns(tmp_path, corefile(server.endpoint, LINE)) as coredns,
            server.server.tap.subscribe() as listener,
        ):
            assert await dig(coredns.port, OURS, *more) == [OURS_AT]
            events: list[TapEvent] = []
            while not any(event.qname == OURS for event in events):
                events += await listener.receive(describe)
    (event,) = [event for event in events if event.qname == OURS]
    assert (event.subnet, event.outcome, event.rule) == ("127.0.0.1/32", "table", OURS)


async def test_without_the_line_nothing_is_told(tmp_path: Path) -> None:
    async with running() as server:
        with (
            running_coredns(tmp_path, corefile(server.endpoint)) as coredns,
            server.server.tap.subscribe() as listener,
        ):
            assert await dig(coredns.port, OURS) == [OURS_AT]
            events: list[TapEvent] = []
            while not any(event.qname == OURS for event in events):
                events += await listener.receive(describe)
    assert {event.subnet for event in events} == {""}


async def test_the_network_goes_on_to_the_upstream_as_the_guide_warns(tmp_path: Path) -> None:
    async with faulty_upstream() as upstream, running(upstream.endpoint) as server:
        with running_coredns(tmp_path, corefile(server.endpoint, LINE)) as coredns:
            assert await dig(coredns.port, "www.example.net")
        assert {client_subnet(asked.message) for asked in upstream.asked_datagrams} == {"127.0.0.1/32"}
    assert re.search(r"goes on to the upstreams", " ".join(GUIDE.read_text().split()))


async def test_narrower_networks_hide_the_pod(tmp_path: Path) -> None:
    line = "rewrite continue edns0 subnet set 24 56"
    assert line in GUIDE.read_text()
    async with running() as server:
        with (
            running_coredns(tmp_path, corefile(server.endpoint, line)) as coredns,
            server.server.tap.subscribe() as listener,
        ):
            assert await dig(coredns.port, OURS) == [OURS_AT]
            events = await listener.receive(describe)
    assert "127.0.0.0/24" in {event.subnet for event in events}


async def test_the_rewrites_after_the_line_still_work(tmp_path: Path) -> None:
    """Without `continue`, a rewrite that matches ends all that follow in its block."""
    async with running() as server:
        with running_coredns(
            tmp_path, corefile(server.endpoint, LINE, f"rewrite stop name alias.example.net {OURS}")
        ) as coredns:
            assert OURS_AT in await dig(coredns.port, "alias.example.net")
