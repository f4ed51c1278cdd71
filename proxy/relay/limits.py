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
"""Between two lines of the log about clients with too many connections."""

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


class Clients:
    """The connected clients, by address and port."""

    def __init__(self, *, most_each: int | None = None) -> None:
        self.most_each = most_each
        self._ports: dict[str, set[int]] = {}
        self._logged_at = float("-inf")

    def enter(self, host: str, port: int) -> bool:
        """Add a client's connection; False if its address has as many as it may have."""
        ports = self._ports.get(host)
        if ports is None:
            self._ports[host] = {port}
            return True
        if self.most_each is not None and len(ports) >= self.most_each:
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

    def should_log(self, *, now: float) -> bool:
        """Whether a refused client is due another line of the log: it may come back a thousand times a second."""
        if now - self._logged_at < LOG_SECONDS:
            return False
        self._logged_at = now
        return True
