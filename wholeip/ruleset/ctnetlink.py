"""Reads tracked flows (conntrack) from the kernel's messages, and writes the requests to list and to end them.

The law: a flow is ended by the same octets that described it. The messages are those of ctnetlink
(linux/netfilter/nfnetlink_conntrack.h).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from wholeip.ruleset.netlink import (
    GENERIC_SIZE,
    NESTED,
    TYPE_MASK,
    aligned,
    format_attribute,
    format_message,
    parse_attributes,
    parse_messages,
)

_REQUEST, _ACK, _DUMP = 0x001, 0x004, 0x300  # NLM_F_*
_NEW, _GET, _DELETE = 0x100, 0x101, 0x102  # NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_*
_TUPLE_ORIGINAL, _TUPLE_REPLY, _ID, _ZONE = 1, 2, 12, 18  # CTA_*
_TUPLE_ADDRESSES, _TUPLE_PROTOCOL = 1, 2  # CTA_TUPLE_IP, CTA_TUPLE_PROTO
_SOURCES, _TARGETS = (1, 3), (2, 4)  # CTA_IP_V4_SRC, CTA_IP_V6_SRC; CTA_IP_V4_DST, CTA_IP_V6_DST
_PROTOCOL_NUMBER, _TARGET_PORT = 1, 3  # CTA_PROTO_NUM, CTA_PROTO_DST_PORT
_LAYOUTS: Final = {2: struct.Struct("=HHHHHH4sHH4s"), 10: struct.Struct("=HHHHHH16sHH16s")}
"""By family (AF_INET, AF_INET6), the start of a tuple: three attribute headers, the source, a header, the target."""
_SOURCE: Final = 6
"""The place of the source in a layout."""
_ADDRESSES: Final = {4: IPv4Address, 16: IPv6Address}
"""By the number of their octets."""
_PORTS: Final = frozenset({6, 17, 132})
"""Protocols with ports: TCP, UDP and SCTP."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The addresses of a flow's first packet and of its replies; where they differ, the flow is translated."""

    source: str
    target: str
    protocol: int
    port: int
    """The target port; 0 for a protocol without ports."""
    reply_source: str
    reply_target: str
    identity: bytes
    """The attributes by which the kernel identifies the flow."""


def format_dump(family: int) -> bytes:
    """The request to list all flows of an address family (AF_INET, AF_INET6)."""
    return format_message(_GET, _REQUEST | _DUMP, family, b"")


def format_end(flow: Flow, family: int) -> bytes:
    """The request to delete a flow: the rules then judge its next packet like a first packet."""
    return format_message(_DELETE, _REQUEST | _ACK, family, flow.identity)


def parse_flows(
    datagram: bytes, addresses: frozenset[bytes], sources: frozenset[bytes] = frozenset()
) -> Iterator[Flow]:
    """The flows to these addresses (packed), those whose replies go to them, and those from these sources (packed).

    Flows of another zone are excluded: they belong to another program, mostly a virtual switch. Raises struct.error or
    KeyError for a message that is not of ctnetlink.
    """
    for kind, _, message in parse_messages(datagram):
        if kind == _NEW and _may_be_at(message, addresses, sources):
            attributes = dict(parse_attributes(message[GENERIC_SIZE:]))
            original, reply = _endpoints(attributes[_TUPLE_ORIGINAL]), _endpoints(attributes[_TUPLE_REPLY])
            found = original[1] in addresses or reply[1] in addresses or original[0] in sources
            if found and _ZONE not in attributes:
                yield _flow(attributes, original, reply)


def _flow(attributes: dict[int, bytes], original: tuple[bytes, bytes], reply: tuple[bytes, bytes]) -> Flow:
    protocol = dict(parse_attributes(dict(parse_attributes(attributes[_TUPLE_ORIGINAL]))[_TUPLE_PROTOCOL]))
    (number,) = struct.unpack("=B", protocol[_PROTOCOL_NUMBER])
    source, target, reply_source, reply_target = (str(_ADDRESSES[len(one)](one)) for one in (*original, *reply))
    return Flow(
        source,
        target,
        number,
        struct.unpack("!H", protocol[_TARGET_PORT])[0] if number in _PORTS else 0,
        reply_source,
        reply_target,
        format_attribute(_TUPLE_ORIGINAL | NESTED, attributes[_TUPLE_ORIGINAL])
        + format_attribute(_ID, attributes[_ID]),
    )


def _may_be_at(message: bytes, addresses: frozenset[bytes], sources: frozenset[bytes]) -> bool:
    """Whether parse_flows may want a flow, read at the offsets where the kernel puts its addresses.

    Most flows of a node are not ours, and to parse each of them would take seconds.
    """
    layout = _LAYOUTS.get(next(iter(message), 0))
    if layout is None:
        return True
    try:
        original = layout.unpack_from(message, GENERIC_SIZE)
        reply = layout.unpack_from(message, GENERIC_SIZE + aligned(original[0]))
    except struct.error:
        return True
    if original[1] & TYPE_MASK != _TUPLE_ORIGINAL or reply[1] & TYPE_MASK != _TUPLE_REPLY:
        return True
    if {one[3] & TYPE_MASK for one in (original, reply)} != {_TUPLE_ADDRESSES}:
        return True
    return original[-1] in addresses or reply[-1] in addresses or original[_SOURCE] in sources


def _endpoints(octets: bytes) -> tuple[bytes, bytes]:
    """Source and target of a tuple, packed."""
    addresses = dict(parse_attributes(dict(parse_attributes(octets))[_TUPLE_ADDRESSES]))
    kind = 0 if _SOURCES[0] in addresses else 1
    return addresses[_SOURCES[kind]], addresses[_TARGETS[kind]]
