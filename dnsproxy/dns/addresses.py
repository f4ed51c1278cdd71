"""Addresses: those in a reply to A or AAAA (RFC 1035 section 4.1), and those in texts.

The law: any octets give a reply or None, in bounded time: at most _MOST records are read, and a pointer in a name must
point backwards. The caller has checked that the reply belongs to the question.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Iterator
from functools import reduce
from ipaddress import ip_address
from typing import Final, NamedTuple

from dnsproxy.dns import names, wire
from dnsproxy.dns.wire import Rcode, Type
from sidecar.values.text import quoted

_MOST: Final = 64
_CNAME: Final = 5
ADDRESS_SIZES: Final = {int(Type.A): 4, int(Type.AAAA): 16}
"""Octets of an address, by the type of its record."""
_FIXED: Final = struct.Struct("!HHIH")  # type, class, TTL, RDLENGTH
_POINTER: Final = 0xC0
_BROADCAST: Final = ipaddress.IPv4Address(0xFFFFFFFF)


class AddressReply(NamedTuple):
    """The useful content of one reply."""

    rcode: int
    addresses: tuple[str, ...] = ()
    """Texts in canonical form."""
    aliases: tuple[str, ...] = ()
    """The targets of CNAMEs, in normal form; targets that are not hostnames are excluded."""
    ttl: int | None = None
    """Seconds, the least of all its records of class IN; None without any."""


class PublicRecord(NamedTuple):
    """The addresses of a name, IPv4 and IPv6 together, and its aliases."""

    addresses: tuple[str, ...] = ()
    """Sorted, each once; empty if there is no record."""
    aliases: tuple[str, ...] = ()
    exists: bool = False
    """Whether there is such a name, with records of any type or with names below it."""
    ttl: int | None = None
    """Seconds for which its addresses and aliases may be kept, the least of all of them; None without any."""


def parse_address_reply(message: bytes) -> AddressReply | None:
    """The content of a reply; None for octets that are not a whole reply."""
    if len(message) < wire.HEADER or not message[2] & 0x80 or message[2] & wire.TC >> 8:
        return None
    position = wire.question_end(message)
    if not position:
        return None
    rcode = message[3] & 0xF
    addresses: dict[str, None] = {}
    aliases: dict[str, None] = {}
    least: int | None = None
    for _ in range(min(message[6] << 8 | message[7], _MOST)):
        start = wire.skip_name(message, position)
        if not start or start + _FIXED.size > len(message):
            return None
        rtype, klass, ttl, size = _FIXED.unpack_from(message, start)
        data = start + _FIXED.size
        position = data + size
        if position > len(message):
            return None
        if klass == wire.CLASS_IN:
            least = _least(least, ttl)
        if klass == wire.CLASS_IN and ADDRESS_SIZES.get(rtype) == size:
            addresses[str(ip_address(message[data:position]))] = None
        elif klass == wire.CLASS_IN and rtype == _CNAME:
            aliases |= dict.fromkeys(_hostname_at(message, data))
    return AddressReply(rcode, tuple(addresses), tuple(aliases), least)


def join_replies(replies: Iterable[AddressReply | None]) -> PublicRecord | None:
    """The record from the replies to A and AAAA; None if one of them is missing or an error.

    An alias of a name that does not exist is NXDOMAIN too (RFC 2308 section 2.1): the aliases show the difference.
    """
    found = list(replies)
    aliases = tuple(sorted({alias for reply in found if reply is not None for alias in reply.aliases}))
    least = reduce(_least, (reply.ttl for reply in found if reply is not None), None)
    if any(reply is not None and reply.rcode == Rcode.NXDOMAIN for reply in found):
        return PublicRecord((), aliases, exists=bool(aliases), ttl=least)
    whole = [reply for reply in found if reply is not None and reply.rcode == Rcode.NOERROR]
    if len(whole) < len(found):
        return None
    addresses = {address for reply in whole for address in reply.addresses if _is_reachable(address)}
    return PublicRecord(tuple(sorted(addresses)), aliases, exists=True, ttl=least)


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def _is_reachable(address: str) -> bool:
    """Whether a client could connect to it: a resolver that blocks a name answers with loopback or 0.0.0.0."""
    try:
        parse_address(address)
    except ValueError:
        return False
    return not ip_address(address).is_loopback


def _hostname_at(message: bytes, position: int) -> Iterator[str]:
    """The name at a position as a hostname in normal form; nothing if it is malformed or not a hostname."""
    labels: list[str] = []
    size, before = 0, position
    while position < len(message) and size < names.MAXIMUM_NAME:
        length = message[position]
        if length >= _POINTER:
            position = (length & ~_POINTER) << 8 | (message[position + 1] if position + 1 < len(message) else 0xFF)
            # Only backwards: a name with a circle of pointers would have no end (RFC 9267 section 2).
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
    """`ADDRESS[,ADDRESS]...` as canonical texts in the given order, each once.

    Raises ValueError with the part that is not an address, or that no client could use.
    """
    parts = [part.strip() for part in text.split(",")]
    return tuple(dict.fromkeys(parse_address(part) for part in parts))


def parse_address(text: str) -> str:
    """One IPv4 or IPv6 address that a client can connect to, without zone or port, in canonical form (RFC 5952).

    The only judge of the addresses of answers: flags, files, annotations, targets and statuses come here.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"{quoted(text)} is not an IP address") from None
    if getattr(address, "scope_id", None):
        raise ValueError(f"{quoted(text)} has a zone, which is valid on one host only")
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        raise ValueError(f"{quoted(text)} is an IPv4 address in IPv6 form; write {mapped}")
    if address.is_link_local:
        raise ValueError(f"{quoted(text)} is link-local, which is valid on one link only")
    if address.is_unspecified or address.is_multicast or address == _BROADCAST:
        raise ValueError(f"{quoted(text)} is not an address that a client can connect to")
    return str(address)


def is_address(text: str) -> bool:
    """Whether parse_address would take a text."""
    try:
        parse_address(text)
    except ValueError:
        return False
    return True
