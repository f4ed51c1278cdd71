"""The kernel's messages about tracked flows, and the requests to end them; netlink.py too."""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
from dataclasses import replace
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wholeip.ruleset.test_ended_flows import ADDRESS, incoming, outgoing
from wholeip.ruleset.ctnetlink import Flow, format_dump, format_end, parse_flows
from wholeip.ruleset.netlink import DONE, ERROR, parse_answer


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def endpoints(source: str, target: str, protocol: int, port: int) -> bytes:
    kinds = (3, 4) if ":" in source else (1, 2)
    addresses = b"".join(
        attribute(kind, ip_address(text).packed) for kind, text in zip(kinds, (source, target), strict=True)
    )
    numbers = (
        attribute(1, bytes([protocol])) + attribute(2, struct.pack("!H", 4000)) + attribute(3, struct.pack("!H", port))
    )
    return attribute(0x8001, addresses) + attribute(0x8002, numbers)


def message(body: bytes, kind: int = 0x100) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 1) + body


def tracked(flow: Flow, more: bytes = b"", *, before: bytes = b"") -> bytes:
    original = endpoints(flow.source, flow.target, flow.protocol, flow.port)
    reply = endpoints(flow.reply_source, flow.reply_target, flow.protocol, 4000)
    family = socket.AF_INET6 if ":" in flow.source else socket.AF_INET
    attributes = attribute(0x8001, original) + attribute(0x8002, reply) + attribute(12, b"1234") + more
    return message(struct.pack("=BBH", family, 0, 0) + before + attributes)


OURS = frozenset({ip_address(ADDRESS).packed, ip_address("2001:db8::1").packed})
SIX = Flow("2001:db8:9::9", "2001:db8::1", 17, 53, "fd00::1", "2001:db8:9::9", b"")


@pytest.mark.parametrize(
    "flow", [incoming(), outgoing(), SIX, incoming(protocol=132)], ids=["in", "out", "IPv6", "SCTP"]
)
def test_a_flow_is_read_and_ended_by_what_named_it(flow: Flow) -> None:
    (read,) = parse_flows(tracked(flow), OURS)
    assert replace(read, identity=b"") == flow
    request = format_end(read, socket.AF_INET)
    length, kind, flags, _, _ = struct.unpack_from("=IHHII", request)
    assert (length, kind, flags) == (len(request), 0x102, 0x005)
    assert request.endswith(read.identity)
    original = endpoints(flow.source, flow.target, flow.protocol, flow.port)
    assert read.identity == attribute(0x8001, original) + attribute(12, b"1234")


@pytest.mark.parametrize("flow", [incoming(), outgoing(), SIX], ids=["in", "out", "IPv6"])
def test_a_flow_is_read_also_where_the_kernel_puts_something_before_it(flow: Flow) -> None:
    (read,) = parse_flows(tracked(flow, before=attribute(77, b"new")), OURS)
    assert replace(read, identity=b"") == flow


@pytest.mark.parametrize("before", [b"", attribute(77, b"new")], ids=["at its place", "elsewhere"])
def test_a_flow_from_a_source_that_is_asked_for_is_read_and_one_to_it_is_not(before: bytes) -> None:
    """With the node's address as its source, it is a flow of no address of ours."""
    begun = Flow("10.0.0.1", "198.51.100.9", 17, 53, "198.51.100.9", "198.51.100.1", b"")
    (read,) = parse_flows(tracked(begun, before=before), frozenset(), frozenset({ip_address("10.0.0.1").packed}))
    assert replace(read, identity=b"") == begun
    for other in ("198.51.100.9", "198.51.100.1"):
        assert list(parse_flows(tracked(begun), frozenset(), frozenset({ip_address(other).packed}))) == []


def test_a_protocol_without_ports_has_none() -> None:
    (read,) = parse_flows(tracked(incoming(protocol=47)), OURS)
    assert read.port == 0


@pytest.mark.parametrize(
    "datagram",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(tracked(incoming("192.0.2.77")), id="to another address"),
        pytest.param(tracked(incoming(), more=attribute(18, b"\0\1")), id="of another zone"),
        pytest.param(message(bytes(4), kind=DONE), id="the end"),
        pytest.param(message(bytes(20), kind=0x101), id="another message"),
    ],
)
def test_flows_of_others_are_not_read(datagram: bytes) -> None:
    assert list(parse_flows(datagram, OURS)) == []


@pytest.mark.parametrize(
    ("datagram", "expected"),
    [
        pytest.param(tracked(incoming()), None, id="more is to come"),
        pytest.param(tracked(incoming()) + message(bytes(4), kind=DONE), 0, id="the end"),
        pytest.param(message(struct.pack("=i", 0), kind=ERROR), 0, id="done"),
        pytest.param(message(struct.pack("=i", -errno.ENOENT), kind=ERROR), errno.ENOENT, id="gone already"),
        pytest.param(message(struct.pack("=i", -errno.EPERM), kind=ERROR), errno.EPERM, id="refused"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_an_answer_ends_with_a_number(datagram: bytes, expected: int | None) -> None:
    assert parse_answer(datagram) == expected


def test_all_flows_are_asked_for_by_family() -> None:
    assert struct.unpack("=IHHIIBBH", format_dump(socket.AF_INET6)) == (20, 0x101, 0x301, 1, 0, 10, 0, 0)


def with_tuples(original: bytes, reply: bytes) -> bytes:
    attributes = attribute(0x8001, original) + attribute(0x8002, reply) + attribute(12, b"1234")
    return message(struct.pack("=BBH", socket.AF_INET, 0, 0) + attributes)


def of(source: bytes, target: bytes, number: bytes = b"\6") -> bytes:
    return attribute(0x8001, attribute(1, source) + attribute(2, target)) + attribute(
        0x8002, attribute(1, number) + attribute(3, bytes(2))
    )


@pytest.mark.parametrize(
    "datagram",
    [
        pytest.param(
            with_tuples(of(bytes(4), ip_address(ADDRESS).packed), of(bytes(3), bytes(4))),
            id="an address of three octets",
        ),
        pytest.param(
            with_tuples(of(bytes(4), ip_address(ADDRESS).packed, b""), of(bytes(4), bytes(4))), id="an empty protocol"
        ),
        pytest.param(with_tuples(of(bytes(4), ip_address(ADDRESS).packed), b""), id="no reply"),
    ],
)
def test_what_is_not_wholly_a_flow_is_refused(datagram: bytes) -> None:
    with pytest.raises((struct.error, KeyError)):
        list(parse_flows(datagram, OURS))


@given(st.binary(max_size=100))
def test_what_is_no_flow_is_refused_in_two_ways_alone(body: bytes) -> None:
    datagram = message(body)
    with contextlib.suppress(struct.error, KeyError):
        assert list(parse_flows(datagram, OURS)) == []


@given(
    st.sampled_from([tracked(incoming()), tracked(outgoing()), tracked(SIX, before=attribute(77, b"new"))]),
    st.lists(st.tuples(st.integers(16, 170), st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 19, 255]))),
    st.integers(0, 30),
)
def test_a_flow_with_other_octets_is_refused_in_two_ways_alone(
    datagram: bytes, changes: list[tuple[int, int]], missing: int
) -> None:
    body = bytearray(datagram[16 : len(datagram) - missing])
    for place, octet in changes:
        body[place % len(body)] = octet
    with contextlib.suppress(struct.error, KeyError):
        list(parse_flows(message(bytes(body)), OURS))
