"""Look-ups end in addresses or in a fault, whatever the server does."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import dnslib
import pytest
import trio
from trio.testing import MockClock

from dnsproxy.doctor.collect import lookups
from dnsproxy.doctor.collect.bounded_work import TOGETHER
from dnsproxy.doctor.collect.lookups import GIVE_UP, NO_ANSWER, look_up, look_up_all, public_server
from dnsproxy.doctor.facts.model import ReadFailure
from dnsproxy.doctor.facts.probes import Lookup
from sidecar.values.endpoints import Endpoint

Answering = Callable[[dnslib.DNSRecord], bytes]


@asynccontextmanager
async def server(answer: Answering) -> AsyncIterator[Endpoint]:
    """A UDP server that answers with the result of a function; an empty result is not sent."""
    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        await sock.bind(("127.0.0.1", 0))

        async def serve() -> None:
            while True:
                octets, client = await sock.recvfrom(4096)
                reply = answer(dnslib.DNSRecord.parse(octets))
                if reply:
                    await sock.sendto(reply, client)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            yield Endpoint("127.0.0.1", sock.getsockname()[1])
            nursery.cancel_scope.cancel()


def records(*lines: str, rcode: int = 0) -> Answering:
    def answer(query: dnslib.DNSRecord) -> bytes:
        reply = query.reply()
        reply.header.rcode = rcode
        kind = dnslib.QTYPE[query.q.qtype]
        for line in lines:
            for record in dnslib.RR.fromZone(line):
                if dnslib.QTYPE[record.rtype] in (kind, "CNAME"):
                    reply.add_answer(record)
        return bytes(reply.pack())

    return answer


BOTH = records("a.example.org 5 A 192.0.2.1", "a.example.org 5 A 192.0.2.2", "a.example.org 5 AAAA 2001:db8::1")


@pytest.mark.parametrize(
    ("answer", "addresses", "aliases", "fault"),
    [
        (BOTH, ("192.0.2.1", "192.0.2.2", "2001:db8::1"), (), ""),
        (records("a.example.org 5 CNAME LB.example.net", "lb.example.net 5 A 192.0.2.1"),
         ("192.0.2.1",), ("lb.example.net",), ""),
        (records(), (), (), ""),
        (records(rcode=3), (), (), ""),
        (records(rcode=2), (), (), "SERVFAIL"),
        (records(rcode=5), (), (), "REFUSED"),
    ],
    ids=["both families", "an alias", "no record", "NXDOMAIN", "SERVFAIL", "REFUSED"],
)  # fmt: skip
async def test_a_reply_is_addresses_or_a_fault(
    answer: Answering, addresses: tuple[str, ...], aliases: tuple[str, ...], fault: str
) -> None:
    async with server(answer) as endpoint:
        found = await look_up("a.example.org", "cluster", endpoint)
    assert (found.addresses, found.aliases, found.fault) == (addresses, aliases, fault)
    assert found.endpoint == str(endpoint)


def silent_about(rtype: str, answer: Answering) -> Answering:
    return lambda query: b"" if dnslib.QTYPE[query.q.qtype] == rtype else answer(query)


def failing_for(rtype: str, answer: Answering) -> Answering:
    fail = records(rcode=2)
    return lambda query: (fail if dnslib.QTYPE[query.q.qtype] == rtype else answer)(query)


def garbled_for(rtype: str, answer: Answering) -> Answering:
    return lambda query: b"\0" * 600 if dnslib.QTYPE[query.q.qtype] == rtype else answer(query)


@pytest.mark.parametrize(
    ("answer", "addresses", "fault", "partial"),
    [
        (BOTH, ("192.0.2.1", "192.0.2.2", "2001:db8::1"), "", ""),
        (silent_about("AAAA", BOTH), ("192.0.2.1", "192.0.2.2"), "", "AAAA: no answer"),
        (silent_about("A", BOTH), ("2001:db8::1",), "", "A: no answer"),
        (failing_for("AAAA", BOTH), ("192.0.2.1", "192.0.2.2"), "", "AAAA: SERVFAIL"),
        (failing_for("A", BOTH), ("2001:db8::1",), "", "A: SERVFAIL"),
        (silent_about("AAAA", records()), (), "no answer", "AAAA: no answer"),
        (failing_for("A", records(rcode=3)), (), "SERVFAIL", "A: SERVFAIL"),
        (silent_about("A", records(rcode=2)), (), {"no answer", "SERVFAIL"}, ""),
        (lambda _: b"", (), "no answer", ""),
        (records(rcode=5), (), "REFUSED", ""),
    ],
    ids=["both", "AAAA is dropped", "A is dropped", "AAAA fails", "A fails", "no record and AAAA is dropped",
         "no such name and A fails", "neither, in two ways", "neither", "neither, in one way"],
)  # fmt: skip
async def test_an_answer_of_one_type_counts_without_the_other(
    clock: MockClock, answer: Answering, addresses: tuple[str, ...], fault: str | set[str], partial: str
) -> None:
    async with server(answer) as endpoint:
        found = await look_up("a.example.org", "cluster", endpoint, seconds=2.0)
    assert (found.addresses, found.partial) == (addresses, partial)
    assert (found.fault if isinstance(fault, str) else set(found.fault.split(", "))) == fault


async def test_a_garbled_reply_is_no_answer(clock: MockClock) -> None:
    async with server(garbled_for("AAAA", BOTH)) as endpoint:
        found = await look_up("a.example.org", "cluster", endpoint, seconds=2.0)
    assert found.addresses == ("192.0.2.1", "192.0.2.2")
    assert found.partial.startswith("AAAA: ")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda _: b"", id="nothing"),
        pytest.param(lambda _: b"garbage", id="garbage"),
        pytest.param(lambda _: b"\0" * 600, id="zeros"),
    ],
)
async def test_a_broken_server_is_given_up_in_time(answer: Answering) -> None:
    async with server(answer) as endpoint:
        found = await look_up("a.example.org", "cluster", endpoint, seconds=0.3)
    assert not found.addresses
    assert found.fault


async def test_a_name_that_does_not_fit_into_a_query_is_a_fault() -> None:
    found = await look_up("a" * 70 + ".example.org", "cluster", Endpoint("127.0.0.1", 9))
    assert found.fault


async def test_a_wildcard_is_queried_by_a_name_below_it() -> None:
    asked: list[str] = []

    def answer(query: dnslib.DNSRecord) -> bytes:
        asked.append(str(query.q.qname))
        return BOTH(query)

    async with server(answer) as endpoint:
        found = await look_up("*.example.org", "cluster", endpoint)
    assert set(asked) == {"switchback-doctor.example.org."}
    assert found.hostname == "*.example.org"


async def test_a_lost_datagram_costs_no_record(clock: MockClock) -> None:
    lost: set[int] = set()

    def answer(query: dnslib.DNSRecord) -> bytes:
        if query.q.qtype not in lost:
            lost.add(query.q.qtype)
            return b""
        return BOTH(query)

    async with server(answer) as endpoint:
        found = await look_up("a.example.org", "cluster", endpoint, seconds=1)
    assert found.addresses == ("192.0.2.1", "192.0.2.2", "2001:db8::1")
    assert (found.fault, found.partial) == ("", "")


async def test_a_server_that_never_answers_is_not_asked_for_every_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()

    async def unanswered(hostname: str, server: str, endpoint: Endpoint) -> Lookup:
        asked.add(hostname)
        await trio.lowlevel.checkpoint()
        return Lookup(hostname, server, str(endpoint), fault=NO_ANSWER)

    monkeypatch.setattr(lookups, "look_up", unanswered)
    names = [f"h{number}.example.org" for number in range(300)]
    found = await look_up_all(names, {"cluster": Endpoint("192.0.2.53", 53)})
    assert GIVE_UP <= len(asked) <= GIVE_UP + TOGETHER
    assert len(found.results) == len(names)
    assert {one.fault for one in found.results} == {NO_ANSWER, f"no answer to {GIVE_UP} other names"}


async def test_a_dead_server_takes_no_time_from_the_other_one(clock: MockClock) -> None:
    async with server(lambda _: b"") as dead, server(BOTH) as living:
        names = [f"{number}.example.org" for number in range(TOGETHER + 10)]
        looked_up = await look_up_all(names, {"cluster": dead, "public": living}, seconds=1)
    assert [(one.hostname, one.server) for one in looked_up.results] == [
        (name, "public") for name in names[: TOGETHER - 1]
    ]
    (failure,) = looked_up.failures("look up the names", "look-ups")
    assert failure == ReadFailure("look up the names", "53 of 84 look-ups did not finish within 1 s")


async def test_the_names_are_in_their_order_and_counted() -> None:
    told: list[int] = []
    async with server(BOTH) as one, server(records(rcode=3)) as other:
        servers = {"cluster": one, "public": other}
        looked_up = await look_up_all(["b.example.org", "a.example.org"], servers, told.append)
    assert [(one.hostname, one.server, one.endpoint) for one in looked_up.results] == [
        (name, server, str(servers[server]))
        for name in ("b.example.org", "a.example.org")
        for server in ("cluster", "public")
    ]
    assert told == [1, 2, 3, 4]
    assert looked_up.failures("look up the names", "look-ups") == ()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("nameserver 192.0.2.53\n", "192.0.2.53:53"),
        ("nameserver 10.96.0.10\n", None),
        ("nameserver 10.96.0.10\nnameserver 192.0.2.53\n", "192.0.2.53:53"),
        ("search example.org\n", None),
        ("nameserver garbage\n", None),
        ("", None),
    ],
)
def test_public_dns_is_a_nameserver_that_is_not_the_clusters(
    tmp_path: Path, content: str, expected: str | None
) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text(content)
    found = public_server(["10.96.0.10"], path)
    assert (str(found) if found else None) == expected
    assert public_server([], tmp_path / "none") is None
