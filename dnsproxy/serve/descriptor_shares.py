"""How `dnsproxy serve` divides the descriptors that are free at its start. Pure functions over numbers.

The law: TCP clients and source ports get what is left beside the admin port and the server's own needs: streams to
upstreams, the API server, files. So neither many clients nor many forwarded queries make the server unhealthy.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_OWN: Final = (8, 128)
_SOURCE_PORTS: Final = 4096
_CONNECTIONS: Final = 1024
_CLIENTS: Final = 4
"""One client address may have this part of the TCP connections: CoreDNS has one address for all pods."""


class Shares(NamedTuple):
    """Counts of descriptors."""

    connections: int
    """TCP connections of DNS clients."""
    per_client: int
    """The same for one client address."""
    source_ports: int
    """UDP sockets to all upstreams together."""


def divide(free: int, *, admin: int) -> Shares:
    """The shares of `free` descriptors, of which the admin port gets `admin`."""
    least, most = _OWN
    own = min(most, max(least, free // 4))
    source_ports = max(2, min(_SOURCE_PORTS, free * 5 // 16))
    connections = max(1, min(_CONNECTIONS, free - own - admin - source_ports))
    return Shares(connections, max(1, connections // _CLIENTS), source_ports)
