"""How many connections a relay takes: in all, so that it never runs out of descriptors, and from one client.

The law: pure. Descriptors that are reserved for pipes and for other uses are not promised to clients. A client is an
address with its ports; no metric ever shows one.
"""

from __future__ import annotations

from typing import Final

from sidecar.sockets.descriptors import admin_share

MOST_PIPES: Final = 128
"""With splice.SIZE, these hold as many pages as one user may have without privileges (pipe(7),
pipe-user-pages-soft)."""

LOG_SECONDS: Final = 60.0
"""Between two lines of the log about clients that are refused for the same reason."""

# Descriptors for everything but listeners, connections and the admin port: look-ups, probes, the API server, the log.
_RESERVED: Final = 64


def pipes_within(descriptors: int) -> int:
    """How many pipes fit within the descriptors beside the listeners: they get an eighth, and each needs two."""
    return min(MOST_PIPES, descriptors // 16)


def connections_within(descriptors: int) -> int:
    """How many connections fit beside the listeners: each needs two, beside those of pipes and other uses."""
    left = descriptors - 2 * pipes_within(descriptors)
    reserved = _RESERVED + admin_share(descriptors)
    return max(1, (left - min(reserved, left // 2)) // 2)


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
    """The connected clients, by address and port."""

    def __init__(self, *, most_each: int) -> None:
        self.most_each = most_each
        self._ports: dict[str, set[int]] = {}

    def enter(self, host: str, port: int) -> bool:
        """Add a client's connection; False if its address has as many as it may have."""
        ports = self._ports.get(host)
        if ports is None:
            self._ports[host] = {port}
            return True
        if len(ports) >= self.most_each:
            return False
        ports.add(port)
        return True

    def leave(self, host: str, port: int) -> None:
        """Remove a client's connection."""
        ports = self._ports[host]
        ports.discard(port)
        if not ports:
            del self._ports[host]

    def has(self, host: str, port: int) -> bool:
        """Whether a client with this address and port is connected."""
        # A header states an IPv4 address as such; a dual-stack socket shows it as an IPv4-mapped IPv6 address.
        return any(port in self._ports.get(one, ()) for one in (host, f"::ffff:{host}"))
