"""Where a client was going before a redirect by the firewall of this computer (nft `redirect`, iptables REDIRECT).

The law: what connection tracking does not know is not redirected; the socket's own address is the answer then.
"""

from __future__ import annotations

import socket
import struct
from typing import Final

from sidecar.endpoints import Endpoint

# linux/netfilter_ipv4.h and linux/netfilter_ipv6/ip6_tables.h: both have this number, on a level of their own.
_SO_ORIGINAL_DST: Final = 80
_IPV4: Final = struct.Struct("!2xH4s8x")
_IPV6: Final = struct.Struct("!2xH4x16s4x")
_MAPPED: Final = "::ffff:"


def original_destination(client: socket.SocketType) -> Endpoint:
    """What the client dialled. Raises OSError for a client that is gone."""
    host, port, *_ = client.getsockname()
    try:
        if ":" not in host or host.startswith(_MAPPED):
            port, packed = _IPV4.unpack(client.getsockopt(socket.SOL_IP, _SO_ORIGINAL_DST, _IPV4.size))
            return Endpoint(socket.inet_ntop(socket.AF_INET, packed), port)
        port, packed = _IPV6.unpack(client.getsockopt(socket.IPPROTO_IPV6, _SO_ORIGINAL_DST, _IPV6.size))
        return Endpoint(socket.inet_ntop(socket.AF_INET6, packed), port)
    except OSError:
        return Endpoint(host, port)
