"""How many connections a relay takes: in all, so that it never runs out of descriptors, and from one client.

The law: pure. Descriptors that are reserved for pipes and for other uses are not promised to clients. A client is an
address with its ports; no metric ever shows one.
"""

from __future__ import annotations

from typing import Final, TypeVar

from sidecar.sockets.descriptors import admin_share

K = TypeVar("K")

MOST_PIPES: Final = 128
"""With splice.SIZE, these hold as many pages as one user may have without privileges (pipe(7),
pipe-user-pages-soft)."""

LOG_SECONDS: Final = 60.0
"""Between two lines of the log about clients that are refused for the same reason."""

# Descriptors for everything but listeners, connections and the admin port: look-ups, probes, the API server, the log.
_RESERVED: Final = 64
_WATCHES: Final = 2
"""Of one Service. Each holds a connection to the API server."""
_OF_ONE_ROUTE: Final = 1 + _WATCHES


def pipes_within(descriptors: int) -> int:
    """How many pipes fit within the descriptors beside the listeners: they get an eighth, and each needs two."""
    return min(MOST_PIPES, descriptors // 16)


def connections_within(descriptors: int, *, pipes: int | None = None) -> int:
    """How many connections fit beside the listeners: each needs two, beside those of pipes and other uses.

    `pipes` were made possible at the start, if that is not what these descriptors allow.
    """
    left = descriptors - 2 * (pipes_within(descriptors) if pipes is None else pipes)
    reserved = _RESERVED + admin_share(descriptors)
    return max(1, (left - min(reserved, left // 2)) // 2)


def routes_within(descriptors: int) -> int:
    """How many routes from Services fit: with all that each may need, they get a quarter."""
    return descriptors // 4 // _OF_ONE_ROUTE


def descriptors_of_routes(*, listeners: int, services: int) -> int:
    """What routes from Services take: their listeners, and two watches of each Service that is a backend."""
    return listeners + _WATCHES * services


def share_of_one_client(connections: int) -> int:
    """The limit for one client address if no flag states one: a quarter, so that no client keeps the others out."""
    return max(1, connections // 4)


class LogPace:
    """The pace of log lines about something that a client may do a thousand times a second."""

    def __init__(self) -> None:
        self._logged_at = float("-inf")

    def is_due(self, *, now: float) -> bool:
        """Whether another line is due; if so, it counts as written."""
        if now - self._logged_at < LOG_SECONDS:
            return False
        self._logged_at = now
        return True


class Clients:
    """The connected clients, by address and port.

    A port is unique for one listener alone: a client may have the same port at two routes, and both count.
    """

    def __init__(self, *, most_each: int) -> None:
        self.most_each = most_each
        self._connections: dict[str, int] = {}
        self._ports: dict[tuple[str, int], int] = {}
        """How many connections come from one port of an address."""

    def enter(self, host: str, port: int, *, limited: bool = True) -> bool:
        """Add a client's connection; False if its address has as many as it may have, unless it is not `limited`."""
        host = _plain(host)
        connections = self._connections.get(host, 0)
        if limited and connections >= self.most_each:
            return False
        self._connections[host] = connections + 1
        client = host, port
        self._ports[client] = self._ports.get(client, 0) + 1
        return True

    def leave(self, host: str, port: int) -> None:
        """Remove a client's connection."""
        host = _plain(host)
        _count_down(self._connections, host)
        _count_down(self._ports, (host, port))

    def has(self, host: str, port: int) -> bool:
        """Whether a client with this address and port is connected."""
        return (_plain(host), port) in self._ports


def _plain(host: str) -> str:
    """An IPv4 address as a header states it; a dual-stack socket shows it as an IPv4-mapped IPv6 address."""
    return host.removeprefix("::ffff:")


def _count_down(counts: dict[K, int], key: K) -> None:
    if counts[key] > 1:
        counts[key] -= 1
    else:
        del counts[key]
