"""The walk through a message: dnspython's reading of good ones, and a ValueError for all others."""

from __future__ import annotations

import struct

import dns.message
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.zone.walking import walk_records
from tests.kit.messages import A, header, query, question, record, wire_name
from tests.kit.strategies import near_queries

REPLY = 0x8400


def reply(*records: bytes, name: str = "app.example.org") -> bytes:
    return header(REPLY, (1, len(records), 0, 0)) + question(name) + b"".join(records)


def test_names_are_whole_and_in_lower_case() -> None:
    message = reply(record(A, bytes(4)), record(A, bytes(4), owner=b"\x01Q\xc0\x10"), name="APP.example.org")
    assert [one.name for one in walk_records(message)] == [
        wire_name("app.example.org"),
        wire_name("app.example.org"),
        wire_name("q.example.org"),
    ]


def test_a_name_of_as_many_pointers_as_it_may_have_labels_is_read() -> None:
    owners = [record(A, bytes(4), owner=b"\x01a\xc0\x0c")]
    position = len(reply(name="org"))
    for _ in range(100):
        owners.append(record(A, bytes(4), owner=b"\x01a" + struct.pack("!H", 0xC000 | position)))
        position += len(owners[-1])
    *_, last = walk_records(reply(*owners, name="org"))
    assert last.name == b"\x01a" * 101 + wire_name("org")


def chain(hops: int) -> bytes:
    """A record whose data is a chain of pointers, and one whose owner is at its end."""
    start = len(reply()) + 12
    pointers = b"".join(struct.pack("!H", 0xC000 | (start + 2 * max(0, number - 1))) for number in range(hops))
    first = record(99, struct.pack("!H", 0xC00C) + pointers[2:])
    return reply(first, record(A, bytes(4), owner=struct.pack("!H", 0xC000 | (start + 2 * (hops - 1)))))


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(bytes(11), id="shorter than a header"),
        pytest.param(reply()[:-1], id="a question that is cut"),
        pytest.param(reply(record(A, bytes(4)))[:-1], id="data that is cut"),
        pytest.param(reply(record(A, bytes(4)))[:-5], id="a record that is cut"),
        pytest.param(reply() + b"\0", id="octets after the last record"),
        pytest.param(header(REPLY, (1, 1, 0, 0)) + question("app.example.org"), id="a record less than counted"),
        pytest.param(reply(record(A, bytes(4), owner=b"\xc0\xff")), id="a pointer behind the message"),
        pytest.param(reply(record(A, b"", owner=struct.pack("!H", 0xC000 | len(reply())))), id="a pointer to itself"),
        pytest.param(reply(record(A, bytes(4), owner=b"\x40" + bytes(64))), id="a label of 64 octets"),
        pytest.param(
            reply(record(A, bytes(4), owner=b"\x3f" + b"a" * 63 + b"\xc0\x0c"), name="b." * 120), id="256 octets"
        ),
        pytest.param(chain(200), id="200 pointers"),
        pytest.param(chain(8_000), id="more pointers than the stack has room for"),
    ],
)
def test_another_message_is_a_value_error(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        list(walk_records(message))


@given(near_queries() | st.binary(max_size=80))
def test_any_octets_are_records_or_a_value_error(message: bytes) -> None:
    try:
        found = list(walk_records(message))
    except ValueError:
        return
    assert not found or found[-1].end == len(message)


def test_records_are_those_that_dnspython_reads() -> None:
    message = query("app.example.org", A, additional=(record(A, b"\xc0\0\2\1", ttl=7),))
    assert dns.message.from_wire(message).additional[0].ttl == list(walk_records(message))[-1].ttl == 7
