"""Opens a socket to the kernel's netfilter or to its routes (netlink(7)).

The law: no message is written or read here; ruleset/netlink.py and rtnetlink.py do that.
"""

from __future__ import annotations

import socket
from typing import Final

import trio

# Of linux/netlink.h and asm-generic/socket.h; the socket module does not have them.
_NETLINK_ROUTE: Final = 0
_NETLINK_NETFILTER: Final = 12
_SOL_NETLINK: Final = 270
_NETLINK_ADD_MEMBERSHIP: Final = 1
_SO_RCVBUFFORCE: Final = 33
_RECEIVE_BUFFER: Final = 4 << 20
"""Octets; other programs on the node may change thousands of rules at once."""


async def netfilter_socket(*, group: int | None = None) -> trio.socket.SocketType:
    """A socket for requests, or for the notifications of a multicast group. Raises OSError."""
    made = trio.socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
    try:
        made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)
        await made.bind((0, 0))
        if group is not None:
            made.setsockopt(_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP, group)
    except BaseException:
        made.close()
        raise
    return made


async def route_socket() -> trio.socket.SocketType:
    """A socket for requests about routes; they require no capability. Raises OSError."""
    made = trio.socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE)
    try:
        await made.bind((0, 0))
    except BaseException:
        made.close()
        raise
    return made
