"""Reads and writes netlink messages of netfilter (linux/netlink.h, linux/netfilter/nfnetlink.h).

The law: a length that cannot be right raises struct.error, so no input makes a loop endless. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

_HEADER: Final = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port of the sender
_GENERIC: Final = struct.Struct("=BBH")  # nfgenmsg: family, version, resource
_ATTRIBUTE: Final = struct.Struct("=HH")  # nlattr: length, type
TYPE_MASK: Final = 0x3FFF  # without NLA_F_NESTED and NLA_F_NET_BYTEORDER
NESTED: Final = 0x8000  # NLA_F_NESTED
GENERIC_SIZE: Final = _GENERIC.size
ERROR, DONE = 2, 3  # NLMSG_*
_DUMP_INTERRUPTED: Final = 0x10  # NLM_F_DUMP_INTR


def parse_messages(datagram: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The type, the sender's port and the body of each message. Raises struct.error if one is cut off."""
    offset = 0
    while offset < len(datagram):
        length, kind, _, _, port = _HEADER.unpack_from(datagram, offset)
        if length < _HEADER.size or offset + length > len(datagram):
            raise struct.error("a message of an impossible length")
        yield kind, port, datagram[offset + _HEADER.size : offset + length]
        offset += aligned(length)


def parse_answer(datagram: bytes) -> int | None:
    """The errno (0: success) that ends an answer; None if more messages follow. Raises struct.error."""
    for kind, _, body in parse_messages(datagram):
        if kind == ERROR or (kind == DONE and body):
            (number,) = struct.unpack_from("=i", body)
            return int(-number)
        if kind == DONE:
            return 0
    return None


def is_interrupted(datagram: bytes) -> bool:
    """Whether something changed during a dump, which may then lack entries. Raises struct.error."""
    offset = 0
    while offset < len(datagram):
        length, _, flags, _, _ = _HEADER.unpack_from(datagram, offset)
        if length < _HEADER.size:
            raise struct.error("a message of an impossible length")
        if flags & _DUMP_INTERRUPTED:
            return True
        offset += aligned(length)
    return False


def family_of(body: bytes) -> int:
    """The address family of a netfilter message. Raises struct.error."""
    family, _, _ = _GENERIC.unpack_from(body)
    return int(family)


def parse_attributes(octets: bytes) -> Iterator[tuple[int, bytes]]:
    """The type, without its flags, and the value of each attribute. Raises struct.error if one is cut off."""
    offset = 0
    while offset < len(octets):
        length, kind = _ATTRIBUTE.unpack_from(octets, offset)
        if length < _ATTRIBUTE.size or offset + length > len(octets):
            raise struct.error("an attribute of an impossible length")
        yield kind & TYPE_MASK, octets[offset + _ATTRIBUTE.size : offset + length]
        offset += aligned(length)


def format_message(kind: int, flags: int, family: int, attributes: bytes) -> bytes:
    """A request to netfilter."""
    length = _HEADER.size + _GENERIC.size + len(attributes)
    return _HEADER.pack(length, kind, flags, 1, 0) + _GENERIC.pack(family, 0, 0) + attributes


def format_attribute(kind: int, octets: bytes) -> bytes:
    """An attribute with its padding."""
    length = _ATTRIBUTE.size + len(octets)
    return _ATTRIBUTE.pack(length, kind) + octets + bytes(aligned(length) - length)


def aligned(length: int) -> int:
    """A length with the padding to the next multiple of four."""
    return (length + 3) & ~3
