"""Probes of real sockets: dnsproxy, other DNS servers, and servers that fail in every way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dnsproxy.answers.decide import Answer, decide
from dnsproxy.answers.table import HostTable
from dnsproxy.cluster_dns.exchange import Patience
from dnsproxy.cluster_dns.probe_results import Presence
from dnsproxy.cluster_dns.probing import ask, ask_all
from dnsproxy.dns import probe
from sidecar.values.endpoints import Endpoint
from tests.kit import upstream_replies
from tests.kit.faulty_upstream import (
    Close,
    Elsewhere,
    Part,
    Reset,
    Step,
    faulty_upstream,
    refusing_upstream,
    silence,
)
from tests.kit.upstream_replies import NXDOMAIN, SERVFAIL

BRISK = Patience(times=3, datagrams=(0.2, 0.2))
CALM = Patience(times=3)


def dnsproxy(asked: bytes) -> list[Step]:
    outcome = decide(asked, HostTable(), stream=False)
    assert isinstance(outcome, Answer)
    return [outcome.message]


def with_rcode(rcode: int) -> upstream_replies.right:  # type: ignore[valid-type]
    return lambda asked: [upstream_replies.right(asked, rcode=rcode, answers=0)]


async def test_dnsproxy_is_known_by_its_answer() -> None:
    async with faulty_upstream(dnsproxy) as server:
        asked = await ask(server.endpoint, "example.org.", CALM)
        assert (asked.state, asked.said) == (Presence.YES, "3 of 3 dnsproxy")
        names = {one.message[12:-4] for one in server.asked_datagrams}
        assert len(names) == 3
        assert all(probe.is_probe(name) and name.endswith(b"\x07example\x03org\0") for name in names)
        assert len({one.source for one in server.asked_datagrams}) == 3


@pytest.mark.parametrize(("rcode", "said"), [(0, "NOERROR"), (SERVFAIL, "SERVFAIL"), (NXDOMAIN, "NXDOMAIN")])
async def test_a_reply_of_another_server_is_reported_by_its_code(rcode: int, said: str) -> None:
    async with faulty_upstream(with_rcode(rcode)) as server:
        asked = await ask(server.endpoint, ".", CALM)
        assert (asked.state, asked.said) == (Presence.NO, f"3 of 3 {said}")


async def test_a_datagram_that_is_lost_is_sent_again() -> None:
    seen: set[bytes] = set()

    def lossy(asked: bytes) -> list[Step]:
        first = asked not in seen
        seen.add(asked)
        return [] if first else dnsproxy(asked)

    async with faulty_upstream(lossy, silence) as server:
        assert (await ask(server.endpoint, ".", Patience(times=3, datagrams=(0.2, 30.0)))).state is Presence.YES


async def test_where_udp_is_silent_tcp_is_asked() -> None:
    async with faulty_upstream(silence, dnsproxy) as server:
        asked = await ask(server.endpoint, ".", Patience(times=3, datagrams=(0.1,), stream=30.0))
        assert asked.state is Presence.YES
        assert len(server.asked_streams) == 3


async def test_the_end_of_a_port_forward_which_takes_tcp_alone_is_asked() -> None:
    def refused(asked: bytes) -> list[Step]:
        return dnsproxy(asked)

    async with faulty_upstream(silence, refused) as server:
        asked = await ask(server.endpoint, ".", Patience(times=1, datagrams=(0.1,), stream=30.0))
        assert asked.state is Presence.YES


@pytest.mark.parametrize(
    "junk",
    [
        [b""],
        [b"\0" * 12],
        [b"junk" * 100],
        [Elsewhere(b"\0" * 40)],
    ],
    ids=["empty", "a header", "junk", "from another port"],
)
async def test_junk_before_the_reply_is_passed_over(junk: list[Step]) -> None:
    async with faulty_upstream(lambda asked: [*junk, *dnsproxy(asked)]) as server:
        assert (await ask(server.endpoint, ".", CALM)).state is Presence.YES


@pytest.mark.parametrize(
    ("streams", "said"),
    [
        (silence, "no answer"),
        (lambda _asked: [Close()], "the connection was closed"),
        (lambda _asked: [Part(b"\0"), Close()], "the connection was closed"),
        (lambda _asked: [Part(b"\0\x40abc"), Close()], "the connection was closed"),
        (lambda _asked: [b"HTTP/1.1 400 Bad Request"], "the reply is not from a DNS server"),
        (lambda _asked: [Part(b"\0\0")], "the reply is not from a DNS server"),
        (lambda _asked: [Reset()], "the connection broke"),
    ],
    ids=["silence", "FIN", "half a length", "half a message", "HTTP", "nothing", "RST"],
)
async def test_a_server_that_gives_no_answer_is_silent_and_says_how(streams: object, said: str) -> None:
    async with faulty_upstream(silence, streams) as server:  # type: ignore[arg-type]
        asked = await ask(server.endpoint, ".", replace(BRISK, stream=0.3 if said == "no answer" else 30.0))
        assert (asked.state, asked.said) == (Presence.SILENT, f"3 of 3 {said}")


async def test_an_address_that_refuses_is_silent_at_once() -> None:
    with refusing_upstream() as endpoint:
        asked = await ask(endpoint, ".", Patience(times=2, datagrams=(20.0,), stream=20.0))
    assert (asked.state, asked.said) == (Presence.SILENT, "2 of 2 Connection refused")


async def test_an_address_that_cannot_be_reached_is_silent_at_once() -> None:
    asked = await ask(Endpoint("fe80::1%nowhere0", 53), ".", CALM)
    assert asked.state is Presence.SILENT
    assert "3 of 3 " in asked.said


async def test_a_zone_without_room_for_a_probe_is_not_asked_for() -> None:
    async with faulty_upstream(dnsproxy) as server:
        for zone in (".".join(["a" * 63] * 4), "\u00e9.example.org."):
            asked = await ask(server.endpoint, zone, CALM)
            assert asked.state is Presence.SILENT
        assert server.asked_datagrams == []


async def test_several_servers_and_zones_are_asked_each() -> None:
    async with faulty_upstream(dnsproxy) as ours, faulty_upstream(with_rcode(NXDOMAIN)) as other:
        asked = await ask_all([ours.endpoint, other.endpoint], [".", "example.org"], CALM)
        assert [(one.endpoint, one.zone, one.state) for one in asked] == [
            (ours.endpoint, ".", Presence.YES),
            (ours.endpoint, "example.org", Presence.YES),
            (other.endpoint, ".", Presence.NO),
            (other.endpoint, "example.org", Presence.NO),
        ]
    assert await ask_all([], ["."], CALM) == ()
