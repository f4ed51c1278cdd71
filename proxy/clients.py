"""Who is connected: how many connections each client has, and whether a connection is one of ours that came back.

The law: pure. A client is an address with its ports; nothing here is ever shown in a metric.
"""

from __future__ import annotations

from typing import Final

from proxy.header import SIGNATURE_V2, BadHeader, parse_header
from sidecar.endpoints import Endpoint

SAY_SECONDS: Final = 60.0
"""Between two lines of the log about clients with too many connections."""

_BEGINNINGS: Final = (b"PROXY ", SIGNATURE_V2)
_DEEPEST: Final = 16
"""Headers in front of one another that are looked at: one for each relay of a ring."""


class Clients:
    """The clients of one relay by address and port."""

    def __init__(self, *, most_each: int | None = None) -> None:
        self.most_each = most_each
        self._ports: dict[str, set[int]] = {}
        self._said_at = float("-inf")

    def enter(self, host: str, port: int) -> bool:
        """Take one in; False where its address has as many connections as one may have."""
        ports = self._ports.get(host)
        if ports is None:
            self._ports[host] = {port}
            return True
        if self.most_each is not None and len(ports) >= self.most_each:
            return False
        ports.add(port)
        return True

    def leave(self, host: str, port: int) -> None:
        """Let one go."""
        ports = self._ports[host]
        ports.discard(port)
        if not ports:
            del self._ports[host]

    def should_say(self, *, now: float) -> bool:
        """Whether it is time again to say that a client was refused: it may come back a thousand times a second."""
        if now - self._said_at < SAY_SECONDS:
            return False
        self._said_at = now
        return True

    def is_loop(self, payload: bytes, *, host: str, port: int) -> bool:
        """Whether the first payload of a client shows that our own connection has come back to us.

        Then it begins with a header that names another client which is waiting here. Around a ring of relays the
        headers stand one behind the other. A client may make this up, and be refused for it; what it says of itself
        counts for nothing, so that a sender of headers is relayed like any other.
        """
        if not payload.startswith(_BEGINNINGS):
            return False
        return any(
            source != Endpoint(host, port) and (self._holds(source.host, source.port)) for source in _sources(payload)
        )

    def _holds(self, host: str, port: int) -> bool:
        # A header has IPv4 addresses in their own form, a socket for both families has not.
        return any(port in self._ports.get(one, ()) for one in (host, f"::ffff:{host}"))


def _sources(payload: bytes) -> list[Endpoint]:
    """Who the headers at the begin of a payload name."""
    found: list[Endpoint] = []
    for _ in range(_DEEPEST):
        try:
            parsed = parse_header(payload)
        except BadHeader:
            break
        if parsed is None:
            break
        if parsed.header.source is not None:
            found.append(parsed.header.source)
        payload = payload[parsed.length :]
    return found
