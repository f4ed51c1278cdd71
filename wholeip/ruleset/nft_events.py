"""Reads the kernel's notifications of nftables changes (linux/netfilter/nf_tables.h).

The law: a message that cannot be read counts as a change, because a needless comparison of the table costs little.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wholeip.ruleset.netlink import GENERIC_SIZE, family_of, parse_attributes, parse_messages

_SUBSYSTEM_NFTABLES: Final = 10
_NFPROTO_INET: Final = 1
_TABLE_NAME: Final = 1
"""NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE, NFTA_SET_TABLE, NFTA_SET_ELEM_LIST_TABLE: all are attribute 1."""
_NEW_GENERATION: Final = 15
"""NFT_MSG_NEWGEN, the last message of each transaction."""


@dataclass(frozen=True, slots=True)
class Event:
    """One object of nftables was created, changed or deleted."""

    by: int
    """The netlink port of the program that did it, mostly its process id."""
    table: str | None
    """The table of the family inet; None if the object belongs to no such table."""


def is_change(datagram: bytes, table: str, own: frozenset[int]) -> bool:
    """Whether the table was changed by another port than these."""
    try:
        return any(event.table == table and event.by not in own for event in parse_events(datagram))
    except (struct.error, ValueError):
        return True


def parse_events(datagram: bytes) -> Iterator[Event]:
    """The events of a datagram. Raises struct.error if it is cut off, ValueError if a name is not UTF-8."""
    for kind, port, body in parse_messages(datagram):
        if len(body) < GENERIC_SIZE:
            raise struct.error("a message of an impossible length")
        if kind >> 8 == _SUBSYSTEM_NFTABLES and kind & 0xFF != _NEW_GENERATION:
            yield Event(port, _table(body))


def _table(body: bytes) -> str | None:
    if family_of(body) != _NFPROTO_INET:
        return None
    names = (value for kind, value in parse_attributes(body[GENERIC_SIZE:]) if kind == _TABLE_NAME)
    name = next(names, None)
    return None if name is None else name.rstrip(b"\0").decode()
