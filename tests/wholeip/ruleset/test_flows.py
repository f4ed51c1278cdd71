"""Which flows a change of the rules no longer allows; what the kernel says of them."""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholeip.mappings.mapping import Mapping, OpenPort
from wholeip.ruleset.flows import (
    DONE,
    ERROR,
    Flow,
    format_dump,
    format_end,
    is_ended,
    parse_answer,
    parse_flows,
    relevant_addresses,
)
from wholeip.ruleset.ruleset import Ruleset, make_ruleset

CLIENT, ADDRESS, SECOND, POD, OTHER_POD = "198.51.100.9", "192.0.2.1", "192.0.2.2", "10.0.0.1", "10.0.0.2"


def mapping(address: str = ADDRESS, pod: str = POD, *ports: int, **options: Any) -> Mapping:
    opened = frozenset(OpenPort("tcp", port) for port in ports) if ports or options.pop("closed", False) else None
    values = {"icmp": False, "egress": True, **options}
    return Mapping("default/vm", ip_address(address), ip_address(pod), opened, **values)


def incoming(address: str = ADDRESS, pod: str = POD, protocol: int = 6, port: int = 80, source: str = CLIENT) -> Flow:
    return Flow(source, address, protocol, port, pod, source, b"")


def outgoing(pod: str = POD, address: str = ADDRESS) -> Flow:
    return Flow(pod, CLIENT, 6, 443, CLIENT, address, b"")


WHOLE = [mapping()]
MOVED = [mapping(pod=OTHER_POD)]


@pytest.mark.parametrize(
    ("flow", "before", "after", "expected"),
    [
        pytest.param(incoming(), WHOLE, WHOLE, False, id="nothing changed"),
        pytest.param(incoming(), None, WHOLE, False, id="nothing is wrong, before is unknown"),
        pytest.param(incoming(), WHOLE, [mapping(ADDRESS, POD, 80)], False, id="the port is still listed"),
        pytest.param(incoming(port=81), WHOLE, [mapping(ADDRESS, POD, 80)], True, id="the port is not listed"),
        pytest.param(incoming(protocol=17), WHOLE, [mapping(ADDRESS, POD, 80)], True, id="the protocol is not listed"),
        pytest.param(incoming(protocol=47, port=0), WHOLE, [mapping(ADDRESS, POD, 80)], True, id="it has no ports"),
        pytest.param(incoming(protocol=47, port=0), WHOLE, WHOLE, False, id="it needs none"),
        pytest.param(incoming(protocol=1, port=0), WHOLE, [mapping(closed=True)], True, id="ping is not allowed"),
        pytest.param(
            incoming(protocol=1, port=0), WHOLE, [mapping(closed=True, icmp=True)], False, id="ping is allowed"
        ),
        pytest.param(incoming(), WHOLE, MOVED, True, id="the address moved"),
        pytest.param(incoming(), None, MOVED, True, id="the address moved before we knew"),
        pytest.param(incoming(pod=OTHER_POD), WHOLE, MOVED, False, id="it is with the new pod already"),
        pytest.param(incoming(), WHOLE, [], True, id="the address is gone"),
        pytest.param(incoming(), None, [], False, id="an address that we know nothing of"),
        pytest.param(incoming(pod="10.0.0.77"), WHOLE, [], False, id="somebody else has it"),
        pytest.param(incoming(pod=ADDRESS), [], WHOLE, True, id="it goes past an address that is ours now"),
        pytest.param(incoming(pod=ADDRESS), WHOLE, [], False, id="it goes past one that was ours"),
        pytest.param(incoming(CLIENT, CLIENT), WHOLE, MOVED, False, id="a flow of others"),
        pytest.param(outgoing(), WHOLE, WHOLE, False, id="the way out is the same"),
        pytest.param(outgoing(), WHOLE, MOVED, True, id="it leaves with the address of another pod"),
        pytest.param(outgoing(), None, MOVED, True, id="it leaves with another's, before is unknown"),
        pytest.param(outgoing(), WHOLE, [], True, id="it leaves with an address that is not its own any more"),
        pytest.param(outgoing(), None, [], False, id="it leaves with an address that is nobody's that we know"),
        pytest.param(outgoing(), WHOLE, [mapping(SECOND)], True, id="it leaves with another address now"),
        pytest.param(outgoing(address="198.51.100.1"), [], WHOLE, False, id="begun with the address of the node"),
        pytest.param(outgoing(address=POD), [], WHOLE, False, id="begun with its own address"),
        pytest.param(incoming(source=POD), WHOLE, WHOLE, False, id="a pod to itself"),
        pytest.param(
            Flow(POD, ADDRESS, 6, 80, POD, ADDRESS, b""), WHOLE, WHOLE, False, id="a pod to itself by its address"
        ),
        pytest.param(Flow(POD, ADDRESS, 6, 80, POD, ADDRESS, b""), WHOLE, MOVED, True, id="itself, and then another"),
    ],
)
def test_a_flow_ends_where_it_is_ours_and_wrong(
    flow: Flow, before: list[Mapping] | None, after: list[Mapping], expected: bool
) -> None:
    assert is_ended(flow, None if before is None else make_ruleset(before), make_ruleset(after)) is expected


def test_addresses_of_before_and_after_are_looked_at() -> None:
    before, after = make_ruleset([mapping()]), make_ruleset([mapping("2001:db8::1", "fd00::1")])
    packed = {ip_address(text).packed for text in (ADDRESS, "2001:db8::1")}
    assert relevant_addresses(before, after) == packed
    assert relevant_addresses(None, make_ruleset([])) == frozenset()


def test_a_table_of_another_version_has_no_flows_of_ours() -> None:
    assert not is_ended(incoming(), Ruleset("x", {}, frozenset()), Ruleset("x", {}, frozenset()))


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


@given(st.binary(max_size=100))
def test_what_is_no_flow_is_refused_in_two_ways_alone(body: bytes) -> None:
    datagram = message(body)
    with contextlib.suppress(struct.error, KeyError):
        assert list(parse_flows(datagram, OURS)) == []
