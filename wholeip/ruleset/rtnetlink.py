"""Writes the request for the route to an address, and reads the kernel's answer (rtnetlink(7), linux/rtnetlink.h).

The law: an address is local exactly where the rules' `fib saddr type local` says so, whatever a program may bind.
"""

from __future__ import annotations

import struct
from ipaddress import ip_address
from typing import Final

from wholeip.ruleset.netlink import format_attribute, parse_messages

_MESSAGE: Final = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port of the sender
_ROUTE: Final = struct.Struct("=BBBBBBBBI")
"""rtmsg: family, lengths of target and source, TOS, table, protocol, scope, type, flags."""
_TYPE: Final = 7
_FAMILIES: Final = {4: 2, 6: 10}  # AF_INET, AF_INET6
_ERROR, _NEW_ROUTE, _GET_ROUTE = 2, 24, 26  # NLMSG_ERROR, RTM_*
_REQUEST: Final = 0x001  # NLM_F_REQUEST
_TARGET: Final = 1  # RTA_DST
_LOCAL: Final = 2  # RTN_LOCAL


def format_route_request(address: str) -> bytes:
    """The request for the route to an address."""
    target = ip_address(address)
    body = _ROUTE.pack(_FAMILIES[target.version], target.max_prefixlen, 0, 0, 0, 0, 0, 0, 0) + format_attribute(
        _TARGET, target.packed
    )
    return _MESSAGE.pack(_MESSAGE.size + len(body), _GET_ROUTE, _REQUEST, 1, 0) + body


def is_local_route(datagram: bytes) -> bool:
    """Whether the route of an answer ends at this node; without a route it does not. Raises struct.error."""
    for kind, _, body in parse_messages(datagram):
        if kind == _NEW_ROUTE:
            return int(_ROUTE.unpack_from(body)[_TYPE]) == _LOCAL
        if kind == _ERROR:
            return False
    raise struct.error("an answer without a route")
