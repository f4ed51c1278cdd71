"""Who is connected: how many connections each client has, and whether a connection is one of ours that came back.

The law: pure. A client is an address with its ports; nothing here is ever shown in a metric.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from proxy.header.addresses import BadHeader
from proxy.header.protocol import parse_header
from proxy.header.v1 import MAXIMUM_V1
from proxy.header.v2 import SIGNATURE_V2
from sidecar.endpoints import Endpoint

SAY_SECONDS: Final = 60.0
"""Between two lines of the log about clients with too many connections."""

_BEGINNINGS: Final = (b"PROXY ", SIGNATURE_V2)
FIRST_OCTETS: Final = frozenset(one[0] for one in _BEGINNINGS)
"""What a header begins with; what begins otherwise need not be looked at."""
_DEEPEST: Final = 16
"""Headers in front of one another that nobody but a ring of relays makes."""
HEADERS: Final = _DEEPEST * MAXIMUM_V1
"""Octets that these take at most."""


class Words(Enum):
    """What a client has said by now."""

    OURS = "a header of ours, which has come back"
    HARMLESS = "anything else"
    TOO_FEW = "nothing, or headers alone, and there may be more"


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

    def look_at(self, said: bytes, *, host: str, port: int) -> Words:
        """What the first words of a client show: whether our own connection has come back to us.

        Then they begin with a header that names another client which is waiting here. Around a ring of relays the
        headers stand one behind the other; so many of them are a ring also where nobody who is named waits any more,
        because the end of the first round may run after the next rounds and never catch up. A client may make this up,
        and be refused for it; what it says of itself counts for nothing, so that a sender of headers is relayed.
        """
        if said and not said.startswith(_BEGINNINGS) and not any(one.startswith(said) for one in _BEGINNINGS):
            return Words.HARMLESS
        sources, more = _headers(said)
        if len(sources) >= _DEEPEST:
            return Words.OURS
        if any(source != Endpoint(host, port) and self._holds(source.host, source.port) for source in sources):
            return Words.OURS
        return Words.TOO_FEW if more and len(said) < HEADERS else Words.HARMLESS

    def _holds(self, host: str, port: int) -> bool:
        # A header has IPv4 addresses in their own form, a socket for both families has not.
        return any(port in self._ports.get(one, ()) for one in (host, f"::ffff:{host}"))


def _headers(said: bytes) -> tuple[list[Endpoint], bool]:
    """Who the headers at the begin name, and whether what comes next may be one more."""
    found: list[Endpoint] = []
    for _ in range(_DEEPEST):
        try:
            parsed = parse_header(said)
        except BadHeader:
            return found, False
        if parsed is None:
            return found, True
        if parsed.header.source is not None:
            found.append(parsed.header.source)
        said = said[parsed.length :]
    return found, False
