"""The OPT record of any message, query or reply: its extended code and its options (RFC 6891 section 6.1).

The law: for showing, never for answering: octets that are malformed have no OPT, and nothing is raised. Pure.
"""

from __future__ import annotations

import ipaddress
from typing import Final, NamedTuple

from dnsproxy.dns.wire import HEADER, question_end, rcode_of, skip_name

_OPT: Final = b"\0\0\x29"
_FIXED: Final = 10  # type, class, TTL, RDLENGTH
_MOST: Final = 4_096  # records of a message of 64 KiB, with the shortest owner and no data
_CLIENT_SUBNET: Final = 8
_FAMILIES: Final = {1: 4, 2: 16}  # of RFC 7871 section 6: octets of an address


class Opt(NamedTuple):
    """An OPT record."""

    extended: int
    """The upper eight bits of the response code."""
    options: bytes


def find_opt(message: bytes) -> Opt | None:
    """The OPT record of a message with one question; None without one."""
    position = question_end(message)
    if not position:
        return None
    records = sum(int.from_bytes(message[place : place + 2], "big") for place in range(6, HEADER, 2))
    for _ in range(min(records, _MOST)):
        owner, position = position, skip_name(message, position)
        end = position + _FIXED
        if not position or end > len(message):
            return None
        data_end = end + int.from_bytes(message[end - 2 : end], "big")
        if message[owner : owner + 3] == _OPT and data_end <= len(message):
            return Opt(message[position + 4], message[end:data_end])
        position = data_end
    return None


def full_rcode(reply: bytes) -> int:
    """The response code of a reply, with its EDNS part (RFC 6891 section 6.1.3)."""
    opt = find_opt(reply) if reply[10:12] != b"\0\0" else None
    return rcode_of(reply) | (opt.extended << 4 if opt else 0)


def client_subnet(query: bytes) -> str:
    """The network in the option EDNS Client Subnet, `192.0.2.0/24`; empty without one (RFC 7871 section 6)."""
    opt = find_opt(query) if query[10:12] != b"\0\0" else None
    options = opt.options if opt else b""
    while len(options) >= 4:  # noqa: PLR2004  # code and length
        code, length = int.from_bytes(options[:2], "big"), int.from_bytes(options[2:4], "big")
        if code == _CLIENT_SUBNET:
            return _format_subnet(options[4 : 4 + length])
        options = options[4 + length :]
    return ""


def _format_subnet(data: bytes) -> str:
    octets = _FAMILIES.get(int.from_bytes(data[:2], "big"), 0)
    address = data[4:]
    if not octets or len(data) < 4 or len(address) > octets or data[2] > octets * 8:  # noqa: PLR2004  # family, prefixes
        return ""
    whole = ipaddress.ip_address(address.ljust(octets, b"\0"))
    return str(ipaddress.ip_network((whole, data[2]), strict=False))
