"""A master file (RFC 1035 section 5) of a zone as our primary transfers it, for the servers beside it. Pure.

The law: the same records for all. They are written by RFC 3597, so no server's reading of a type has a part in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from dnsproxy.dns import wire
from dnsproxy.dns.wire import Type

CHANGED: Final = "changed"
"""The owner, below the zone, of the one record that changes."""
_FIXED: Final = struct.Struct("!HHIH")
_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_*")


def format_zone(messages: Iterable[bytes]) -> list[str]:
    """Lines, without the SOA, of the messages of an AXFR."""
    return [line for message in messages for line in _format_message(message)]


def format_whole(zone: str, lines: str, *, serial: int, change: int) -> str:
    """The file of a version, whose record CHANGED has the number of the change; `lines`: joined, of all versions."""
    soa = f"@ 5 IN SOA localhost. nobody.invalid. {serial} 60 10 2419200 5"
    return f"$ORIGIN {zone}.\n{soa}\n{lines}{CHANGED} 5 IN TXT {change_text(change)}\n"


def change_text(change: int) -> str:
    """The text of CHANGED, as long as a row of ours: it is what a secondary gets."""
    return f'"{change:0130d}"'


def _format_message(message: bytes) -> Iterator[str]:
    position = wire.question_end(message)
    for _ in range(struct.unpack_from("!H", message, 6)[0]):
        owner = position
        position = wire.skip_name(message, position)
        rtype, _, ttl, size = _FIXED.unpack_from(message, position)
        data = message[position + _FIXED.size : position + _FIXED.size + size]
        position += _FIXED.size + size
        if rtype != Type.SOA:
            yield f"{_format_owner(message, owner)} {ttl} IN TYPE{rtype} \\# {size} {data.hex()}"


def _format_owner(message: bytes, position: int) -> str:
    """Relative to the zone, whose name our messages have at the question only."""
    labels = []
    while message[position] and message[position] < 0xC0:
        end = position + 1 + message[position]
        labels.append("".join(chr(one) if one in _PLAIN else f"\\{one:03d}" for one in message[position + 1 : end]))
        position = end
    return ".".join(labels) or "@"
