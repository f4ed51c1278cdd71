"""A query and its end in the words of dnstap.proto; tests/peers/test_dnstap.py has the real program read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dnstap.messages import MessageWriter, Peer, Protocol, parse_peer, varint
from dnsproxy.tap.seen import Exchange, Outcome, Seen
from tests.dnsproxy.dnstap.protobuf import fields_of, varint_of

QUERY, REPLY = b"\x12\x34question", b"\x12\x34answer"
EXCHANGE = Exchange("192.0.2.53:53", True, 0.25, b"\x56\x78question", b"\x56\x78answer")
TABLE = Seen(1_700_000_000.5, 0.5, True, "192.0.2.7", 5353, QUERY, REPLY, Outcome.TABLE)
FORWARDED = msgspec.structs.replace(TABLE, outcome=Outcome.UPSTREAM, exchange=EXCHANGE)
WRITER = MessageWriter(identity="pod-7", version="switchback 0.1.0")


@dataclass(frozen=True)
class Read:
    """What a collector reads; the numbers are those of dnstap.proto."""

    kind: int
    family: int
    protocol: int
    addresses: tuple[str | None, str | None]
    ports: tuple[int | None, int | None]
    query: tuple[Any, ...]
    """Seconds, nanoseconds, octets."""
    response: tuple[Any, ...]


def read(octets: bytes) -> Read:
    outer = fields_of(octets)
    assert outer[15] == 1
    inner: dict[int, Any] = fields_of(outer[14])  # type: ignore[arg-type]
    source, target = (str(ip_address(inner[field])) if field in inner else None for field in (4, 5))
    return Read(
        inner[1],
        inner[2],
        inner[3],
        (source, target),
        (inner.get(6), inner.get(7)),
        tuple(inner.get(field) for field in (8, 9, 10)),
        tuple(inner.get(field) for field in (12, 13, 14)),
    )


def read_all(seen: Seen) -> list[Read]:
    return [read(one) for one in WRITER.messages_of(seen)]


def changed(**parts: Any) -> Seen:
    return msgspec.structs.replace(TABLE, **parts)


NOTHING = (None, None, None)
ASKED = (1_700_000_000, 0)


def test_an_answer_of_the_table_is_a_query_and_a_response_of_its_client() -> None:
    client = partial(Read, family=1, protocol=1, addresses=("192.0.2.7", None), ports=(5353, None))
    assert read_all(TABLE) == [
        client(5, query=(*ASKED, QUERY), response=NOTHING),
        client(6, query=(*ASKED, None), response=(1_700_000_000, 500_000_000, REPLY)),
    ]


def test_an_exchange_is_between_them() -> None:
    upstream = partial(Read, family=1, protocol=1, addresses=(None, "192.0.2.53"), ports=(None, 53))
    before, asked, answered, after = read_all(FORWARDED)
    assert [before, after] == read_all(TABLE)
    assert asked == upstream(7, query=(1_700_000_000, 250_000_000, EXCHANGE.query), response=NOTHING)
    assert answered == upstream(
        8,
        query=(1_700_000_000, 250_000_000, None),
        response=(1_700_000_000, 500_000_000, EXCHANGE.reply),
    )


@pytest.mark.parametrize(
    ("seen", "kinds"),
    [
        pytest.param(changed(reply=b"", outcome=Outcome.DROPPED), [5], id="nothing was sent"),
        pytest.param(changed(exchange=Exchange("192.0.2.53:53", True, 0.25)), [5, 6], id="a shared exchange"),
        pytest.param(changed(outcome=Outcome.FAILED), [5, 6], id="no upstream answered"),
        pytest.param(changed(reply=b"", exchange=EXCHANGE), [5, 7, 8], id="the client was gone"),
        pytest.param(changed(query=b"", reply=b""), [5], id="an empty message"),
    ],
)
def test_what_did_not_happen_has_no_message(seen: Seen, kinds: list[int]) -> None:
    assert [one.kind for one in read_all(seen)] == kinds


@pytest.mark.parametrize(
    ("parts", "family", "address"),
    [
        pytest.param({"client": "2001:db8::7"}, 2, "2001:db8::7", id="IPv6"),
        pytest.param({"client": "::ffff:192.0.2.7"}, 1, "192.0.2.7", id="IPv4 at a socket of both families"),
        pytest.param({"client": "fe80::7%eth0"}, 2, "fe80::7", id="with a scope"),
    ],
)
def test_the_family_is_that_of_the_address(parts: dict[str, Any], family: int, address: str) -> None:
    first = read_all(changed(**parts))[0]
    assert (first.family, first.addresses[0]) == (family, address)


def test_an_unknown_port_is_left_out() -> None:
    assert read_all(changed(port=0))[0].ports == (None, None)


def test_a_client_over_tcp_is_told_as_such() -> None:
    assert [one.protocol for one in read_all(changed(datagram=False))] == [2, 2]


@pytest.mark.parametrize(
    ("upstream", "datagram", "peer"),
    [
        pytest.param("192.0.2.53:53", True, ("192.0.2.53", 53, Protocol.UDP), id="UDP"),
        pytest.param("192.0.2.53:53", False, ("192.0.2.53", 53, Protocol.TCP), id="TCP after truncation"),
        pytest.param("tcp://192.0.2.53:5353", False, ("192.0.2.53", 5353, Protocol.TCP), id="TCP alone"),
        pytest.param("[2001:db8::53]:53", True, ("2001:db8::53", 53, Protocol.UDP), id="IPv6"),
        pytest.param("tls://192.0.2.53:853#dns.example.org", False, ("192.0.2.53", 853, Protocol.DOT), id="TLS"),
        pytest.param(
            "tls://[2001:db8::53]:853#2001:db8::53", False, ("2001:db8::53", 853, Protocol.DOT), id="TLS, IPv6"
        ),
    ],
)
def test_an_upstream_is_told_by_its_endpoint(upstream: str, datagram: bool, peer: tuple[str, int, Protocol]) -> None:
    address, port, protocol = peer
    assert parse_peer(upstream, datagram=datagram) == Peer(ip_address(address).packed, port, protocol)


def test_identity_and_version_are_in_each_message_or_left_out() -> None:
    for one in map(fields_of, WRITER.messages_of(FORWARDED)):
        assert (one[1], one[2]) == (b"pod-7", b"switchback 0.1.0")
    for one in map(fields_of, MessageWriter(identity="", version="").messages_of(TABLE)):
        assert one.keys() == {14, 15}


def test_a_clock_that_was_set_back_puts_no_question_before_the_epoch_or_its_client() -> None:
    early = msgspec.structs.replace(FORWARDED, time=0.1, seconds=0.2)
    assert [one.query[:2] for one in read_all(early)] == [(0, 0)] * 4


@given(st.integers(0, 2**64 - 1))
def test_a_number_is_read_as_written(number: int) -> None:
    assert varint_of(varint(number)) == (number, b"")


@given(
    st.builds(
        Seen,
        st.floats(0, 4e9),
        st.floats(0, 1e5),
        st.booleans(),
        st.ip_addresses().map(str),
        st.integers(0, 65_535),
        st.binary(max_size=70_000),
        st.binary(max_size=300),
        st.sampled_from(Outcome),
        st.just(""),
        st.none() | st.just(EXCHANGE),
    )
)
def test_every_query_is_read_as_it_was_seen(seen: Seen) -> None:
    first, *others = read_all(seen)
    assert first.query[2] == seen.query
    if seen.reply:
        assert others[-1].response[2] == seen.reply
        assert first.query[:2] <= others[-1].response[:2]
