"""Look-ups end in addresses or in a fault, whatever the server does."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import dnslib
import pytest
import trio

from dnsproxy.doctor.collect import lookups
from dnsproxy.doctor.collect.lookups import look_up, look_up_all, public_server
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


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda _: b"", id="nothing"),
        pytest.param(lambda _: b"garbage", id="garbage"),
        pytest.param(lambda _: b"\0" * 600, id="zeros"),
    ],
)
async def test_a_broken_server_is_given_up_in_time(answer: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "SECONDS", 0.3)
    async with server(answer) as endpoint:
        found = await look_up("a.example.org", "cluster", endpoint)
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


async def test_all_look_ups_together_take_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "ALL_SECONDS", 0.2)
    async with server(lambda _: b"") as endpoint:
        found = await look_up_all(["a.example.org"], {"public": endpoint})
    assert found == ()


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
