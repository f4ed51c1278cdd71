"""Replies about addresses: what a reply to A or AAAA says of where a name leads (RFC 1035 section 4.1).

The law: any octets give a reply or None, in bounded time: at most _MOST records are read, and a pointer in a name only
leads backwards. Whether the reply belongs to the question was settled before.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import Final, NamedTuple

from dnsproxy.dns import names, wire
from dnsproxy.dns.wire import Rcode, Type
from sidecar.values.text import quoted

_MOST: Final = 64
_CNAME: Final = 5
_SIZES: Final = {int(Type.A): 4, int(Type.AAAA): 16}
_FIXED: Final = struct.Struct("!HHIH")  # type, class, TTL, RDLENGTH
_POINTER: Final = 0xC0


class AddressReply(NamedTuple):
    """What is of use in one reply."""

    rcode: int
    addresses: tuple[str, ...] = ()
    """As texts in canonical form."""
    aliases: tuple[str, ...] = ()
    """The targets of CNAMEs, in normal form; those that are no hostnames are left out."""


class PublicRecord(NamedTuple):
    """Where a name leads, both families together."""

    addresses: tuple[str, ...] = ()
    """Sorted, each once; empty where there is no record."""
    aliases: tuple[str, ...] = ()


def parse_address_reply(message: bytes) -> AddressReply | None:
    """The reply; None for octets that are none, or not whole."""
    if len(message) < wire.HEADER or not message[2] & 0x80 or message[2] & wire.TC >> 8:
        return None
    position = wire.question_end(message)
    if not position:
        return None
    rcode = message[3] & 0xF
    addresses: dict[str, None] = {}
    aliases: dict[str, None] = {}
    for _ in range(min(message[6] << 8 | message[7], _MOST)):
        start = _skip_name(message, position)
        if not start or start + _FIXED.size > len(message):
            return None
        rtype, klass, _ttl, size = _FIXED.unpack_from(message, start)
        data = start + _FIXED.size
        position = data + size
        if position > len(message):
            return None
        if klass == wire.CLASS_IN and _SIZES.get(rtype) == size:
            addresses[str(ip_address(message[data:position]))] = None
        elif klass == wire.CLASS_IN and rtype == _CNAME:
            aliases |= dict.fromkeys(_hostname_at(message, data))
    return AddressReply(rcode, tuple(addresses), tuple(aliases))


def join_replies(replies: Iterable[AddressReply | None]) -> PublicRecord | None:
    """What the replies for both families say; None where one is missing, so that it is not known."""
    found = list(replies)
    if any(reply is not None and reply.rcode == Rcode.NXDOMAIN for reply in found):
        return PublicRecord()
    whole = [reply for reply in found if reply is not None and reply.rcode == Rcode.NOERROR]
    if len(whole) < len(found):
        return None
    addresses = {address for reply in whole for address in reply.addresses if _leads_somewhere(address)}
    return PublicRecord(tuple(sorted(addresses)), tuple(sorted({alias for reply in whole for alias in reply.aliases})))


def _leads_somewhere(address: str) -> bool:
    """Resolvers that block a name say that it is this host, or none."""
    try:
        parse_address(address)
    except ValueError:
        return False
    return not ip_address(address).is_loopback


def _skip_name(message: bytes, position: int) -> int:
    """Where a name ends, 0 where it is malformed. A pointer ends it, and is not followed."""
    while position < len(message):
        length = message[position]
        if length >= _POINTER:
            return position + 2
        if length > names.MAXIMUM_LABEL:
            return 0
        position += 1 + length
        if not length:
            return position
    return 0


def _hostname_at(message: bytes, position: int) -> Iterator[str]:
    """The name there as a hostname in normal form; nothing where it is malformed or no hostname."""
    labels: list[str] = []
    size, before = 0, position
    while position < len(message) and size < names.MAXIMUM_NAME:
        length = message[position]
        if length >= _POINTER:
            position = (length & ~_POINTER) << 8 | (message[position + 1] if position + 1 < len(message) else 0xFF)
            # Ever further back: a name in a circle would have no end (RFC 9267 section 2).
            if position >= before:
                return
            before = position
        elif length > names.MAXIMUM_LABEL:
            return
        elif not length:
            try:
                yield names.parse_hostname(".".join(labels))
            except names.BadName:
                return
            return
        else:
            label = message[position + 1 : position + 1 + length]
            if b"." in label or not label.isascii():
                return
            labels.append(label.decode("ascii"))
            size += 1 + length
            position += 1 + length


def parse_addresses(text: str) -> tuple[str, ...]:
    """`ADDRESS[,ADDRESS]...` as canonical texts in the order given, each once.

    Raises ValueError that names the part which is no address, or one that no client could use.
    """
    parts = [part.strip() for part in text.split(",")]
    return tuple(dict.fromkeys(parse_address(part) for part in parts))


def parse_address(text: str) -> str:
    """One IPv4 or IPv6 address, without zone or port, in canonical form (RFC 5952)."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"{quoted(text)} is not an IP address") from None
    if getattr(address, "scope_id", None):
        raise ValueError(f"{quoted(text)} has a zone, which means nothing to another host")
    if address.is_unspecified or address.is_multicast:
        raise ValueError(f"{quoted(text)} is not an address that a client can connect to")
    return str(address)


def is_address(text: str) -> bool:
    """Whether parse_address would take a text."""
    try:
        parse_address(text)
    except ValueError:
        return False
    return True
