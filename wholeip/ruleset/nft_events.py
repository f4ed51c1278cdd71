"""What the kernel says of changes to nftables (linux/netlink.h, linux/netfilter/nf_tables.h).

The law: a message that cannot be read counts as a change, for a needless look at the table costs little.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_HEADER: Final = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port of who asked
_GENERIC: Final = struct.Struct("=BBH")  # nfgenmsg: family, version, resource
_ATTRIBUTE: Final = struct.Struct("=HH")  # nlattr: length, type
_SUBSYSTEM_NFTABLES: Final = 10
_NFPROTO_INET: Final = 1
_TABLE_NAME: Final = 1
"""NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE, NFTA_SET_TABLE, NFTA_SET_ELEM_LIST_TABLE: all are attribute 1."""
_NEW_GENERATION: Final = 15
"""NFT_MSG_NEWGEN, the last message of each transaction."""


@dataclass(frozen=True, slots=True)
class Event:
    """One object of nftables came, went or changed. `by` is the netlink port of who asked: the process id, mostly."""

    by: int
    table: str | None
    """Of the family inet; None for what belongs to no such table, or cannot be read."""


def is_change(datagram: bytes, table: str, own: frozenset[int]) -> bool:
    """Whether somebody but those of these ports changed the table."""
    try:
        return any(event.table == table and event.by not in own for event in parse_events(datagram))
    except (struct.error, ValueError):
        return True


def parse_events(datagram: bytes) -> Iterator[Event]:
    """The events of a datagram. Raises struct.error or ValueError where it is cut off or no such thing."""
    offset = 0
    while offset < len(datagram):
        length, kind, _, _, port = _HEADER.unpack_from(datagram, offset)
        if length < _HEADER.size + _GENERIC.size or offset + length > len(datagram):
            raise ValueError("a message of an impossible length")
        if kind >> 8 == _SUBSYSTEM_NFTABLES and kind & 0xFF != _NEW_GENERATION:
            yield Event(port, _table(datagram[offset + _HEADER.size : offset + length]))
        offset += _aligned(length)


def _table(message: bytes) -> str | None:
    family, _, _ = _GENERIC.unpack_from(message)
    if family != _NFPROTO_INET:
        return None
    offset = _GENERIC.size
    while offset + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, offset)
        if length < _ATTRIBUTE.size:
            raise ValueError("an attribute of an impossible length")
        if kind == _TABLE_NAME:
            return message[offset + _ATTRIBUTE.size : offset + length].rstrip(b"\0").decode()
        offset += _aligned(length)
    return None


def _aligned(length: int) -> int:
    return (length + 3) & ~3
