"""Flows that the kernel tracks (conntrack), and which of them the mappings no longer allow.

The law: a flow ends only where we know that it is ours and wrong: it goes to a pod that its address, protocol and port
no longer belong to, it goes past us though its address is ours, or it leaves with an address that is not its pod's.

Messages are of ctnetlink (linux/netfilter/nfnetlink_conntrack.h); a flow is ended by the very octets that described it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from wholeip.ruleset.ruleset import Ruleset

DONE: Final = 3  # NLMSG_DONE
ERROR: Final = 2  # NLMSG_ERROR
_HEADER: Final = struct.Struct("=IHHII")  # nlmsghdr
_GENERIC: Final = struct.Struct("=BBH")  # nfgenmsg
_ATTRIBUTE: Final = struct.Struct("=HH")  # nlattr
_REQUEST, _ACK, _DUMP = 0x001, 0x004, 0x300  # NLM_F_*
_NEW, _GET, _DELETE = 0x100, 0x101, 0x102  # NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_*
_TYPE_MASK: Final = 0x3FFF  # without NLA_F_NESTED and NLA_F_NET_BYTEORDER
_TUPLE_ORIGINAL, _TUPLE_REPLY, _ID, _ZONE = 1, 2, 12, 18  # CTA_*
_TUPLE_ADDRESSES, _TUPLE_PROTOCOL = 1, 2  # CTA_TUPLE_IP, CTA_TUPLE_PROTO
_SOURCES, _TARGETS = (1, 3), (2, 4)  # CTA_IP_V4_SRC, CTA_IP_V6_SRC; CTA_IP_V4_DST, CTA_IP_V6_DST
_PROTOCOL_NUMBER, _TARGET_PORT = 1, 3  # CTA_PROTO_NUM, CTA_PROTO_DST_PORT
_LAYOUTS: Final = {2: struct.Struct("=HHHHHH4sHH4s"), 10: struct.Struct("=HHHHHH16sHH16s")}
"""By family (AF_INET, AF_INET6): the beginning of a tuple, which is the headers of three attributes, the source, a
header, the target."""
_ICMP: Final = {"v4": 1, "v6": 58}
_PORTS: Final = frozenset({6, 17, 132})


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow as its first packet was, and as replies to it are: translated, where they differ."""

    source: str
    target: str
    protocol: int
    port: int
    """The target's, of a protocol that has ports; else 0."""
    reply_source: str
    reply_target: str
    identity: bytes
    """The attributes that name it to the kernel."""


def format_dump(family: int) -> bytes:
    """The request for every flow of an address family (AF_INET, AF_INET6)."""
    return _message(_GET, _REQUEST | _DUMP, family, b"")


def format_end(flow: Flow, family: int) -> bytes:
    """The request to forget a flow: its next packet is judged by the rules like a first one."""
    return _message(_DELETE, _REQUEST | _ACK, family, flow.identity)


def parse_answer(datagram: bytes) -> int | None:
    """The number of the error (errno; 0 is success) that ends an answer, None while more is to come."""
    for kind, message in _messages(datagram):
        if kind == DONE:
            return 0
        if kind == ERROR:
            (number,) = struct.unpack_from("=i", message)
            return int(-number)
    return None


def parse_flows(datagram: bytes, addresses: frozenset[bytes]) -> Iterator[Flow]:
    """The flows to these addresses (packed), or whose replies are.

    One of another zone is somebody else's, a virtual switch's mostly. Raises struct.error or KeyError for what is no
    such message.
    """
    for kind, message in _messages(datagram):
        if kind == _NEW and _may_be_at(message, addresses):
            attributes = dict(_attributes(message[_GENERIC.size :]))
            original, reply = _endpoints(attributes[_TUPLE_ORIGINAL]), _endpoints(attributes[_TUPLE_REPLY])
            if (original[1] in addresses or reply[1] in addresses) and _ZONE not in attributes:
                yield _flow(attributes, original, reply)


def relevant_addresses(before: Ruleset | None, after: Ruleset) -> frozenset[bytes]:
    """Packed: the addresses that are or were ours."""
    rulesets = (after,) if before is None else (before, after)
    return frozenset(
        ip_address(address).packed
        for ruleset in rulesets
        for version in ("v4", "v6")
        for address in ruleset.elements.get(f"addresses_{version}", ())
    )


def is_ended(flow: Flow, before: Ruleset | None, after: Ruleset) -> bool:
    """Whether the change of the rules from `before`, as far as that is known, to `after` no longer allows a flow."""
    return _comes_in_wrongly(flow, before, after) or _leaves_wrongly(flow, before, after)


def _comes_in_wrongly(flow: Flow, before: Ruleset | None, after: Ruleset) -> bool:
    if _is_ours(flow.target, after):
        return _pod(flow, after) != flow.reply_source
    # An address that is no longer ours may be translated by somebody else now.
    return before is not None and _is_ours(flow.target, before) and _pod(flow, before) == flow.reply_source


def _leaves_wrongly(flow: Flow, before: Ruleset | None, after: Ruleset) -> bool:
    if flow.reply_target == flow.source or _is_ours(flow.target, after):
        return False  # not translated; or a pod that meets itself, of which the way in decides
    if _egress(flow.source, after) == flow.reply_target:
        return False
    return _is_ours(flow.reply_target, after) or (
        before is not None and _egress(flow.source, before) == flow.reply_target
    )


def _is_ours(address: str, ruleset: Ruleset) -> bool:
    return address in ruleset.elements.get(f"addresses_{_version(address)}", ())


def _pod(flow: Flow, ruleset: Ruleset) -> str | None:
    """As the chain `translate` decides."""
    version = _version(flow.target)
    tables = [(f"ports_{version}", f"{flow.target} . {flow.protocol} . {flow.port}"), (f"whole_{version}", flow.target)]
    if flow.protocol == _ICMP[version]:
        tables.insert(1, (f"icmp_{version}", flow.target))
    return next((pod for name, key in tables if (pod := ruleset.elements.get(name, {}).get(key))), None)


def _egress(pod: str, ruleset: Ruleset) -> str | None:
    return ruleset.elements.get(f"egress_{_version(pod)}", {}).get(pod)


def _version(address: str) -> str:
    return "v6" if ":" in address else "v4"


def _flow(attributes: dict[int, bytes], original: tuple[bytes, bytes], reply: tuple[bytes, bytes]) -> Flow:
    protocol = dict(_attributes(dict(_attributes(attributes[_TUPLE_ORIGINAL]))[_TUPLE_PROTOCOL]))
    number = protocol[_PROTOCOL_NUMBER][0]
    source, target, reply_source, reply_target = (str(ip_address(packed)) for packed in (*original, *reply))
    return Flow(
        source,
        target,
        number,
        struct.unpack("!H", protocol[_TARGET_PORT])[0] if number in _PORTS else 0,
        reply_source,
        reply_target,
        _attribute(_TUPLE_ORIGINAL | 0x8000, attributes[_TUPLE_ORIGINAL]) + _attribute(_ID, attributes[_ID]),
    )


def _may_be_at(message: bytes, addresses: frozenset[bytes]) -> bool:
    """Whether a flow may be to these addresses, or replies to it, by a look at where the kernel has always put them.

    Most flows of a node are none of ours; to take each apart would keep the agent busy for seconds.
    """
    layout = _LAYOUTS.get(next(iter(message), 0))
    if layout is None:
        return True
    try:
        original = layout.unpack_from(message, _GENERIC.size)
        reply = layout.unpack_from(message, _GENERIC.size + _aligned(original[0]))
    except struct.error:
        return True
    if original[1] & _TYPE_MASK != _TUPLE_ORIGINAL or reply[1] & _TYPE_MASK != _TUPLE_REPLY:
        return True
    if {one[3] & _TYPE_MASK for one in (original, reply)} != {_TUPLE_ADDRESSES}:
        return True
    return original[-1] in addresses or reply[-1] in addresses


def _endpoints(octets: bytes) -> tuple[bytes, bytes]:
    """Source and target of a tuple, packed."""
    addresses = dict(_attributes(dict(_attributes(octets))[_TUPLE_ADDRESSES]))
    kind = 0 if _SOURCES[0] in addresses else 1
    return addresses[_SOURCES[kind]], addresses[_TARGETS[kind]]


def _messages(datagram: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset < len(datagram):
        length, kind, _, _, _ = _HEADER.unpack_from(datagram, offset)
        if length < _HEADER.size:
            raise struct.error("a message of an impossible length")
        yield kind, datagram[offset + _HEADER.size : offset + length]
        offset += _aligned(length)


def _attributes(octets: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset < len(octets):
        length, kind = _ATTRIBUTE.unpack_from(octets, offset)
        if length < _ATTRIBUTE.size:
            raise struct.error("an attribute of an impossible length")
        yield kind & _TYPE_MASK, octets[offset + _ATTRIBUTE.size : offset + length]
        offset += _aligned(length)


def _attribute(kind: int, octets: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(octets)
    return _ATTRIBUTE.pack(length, kind) + octets + bytes(_aligned(length) - length)


def _message(kind: int, flags: int, family: int, attributes: bytes) -> bytes:
    length = _HEADER.size + _GENERIC.size + len(attributes)
    return _HEADER.pack(length, kind, flags, 1, 0) + _GENERIC.pack(family, 0, 0) + attributes


def _aligned(length: int) -> int:
    return (length + 3) & ~3
