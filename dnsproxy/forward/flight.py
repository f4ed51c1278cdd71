"""A flight: one forwarded query on its way, and the moments at which something happens to it.

The law: a flight is plain state. The forwarder moves it, upstream sockets remember it by the IDs it left under.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dnsproxy.datagrams import DatagramPort, Sender
from dnsproxy.responder import Forward

if TYPE_CHECKING:
    from dnsproxy.forward.upstream import Upstream, UpstreamSocket

TICK: Final = 0.05
"""Seconds between two looks at all flights."""
RETRY: Final = 0.6
"""Seconds of silence before the next upstream is asked, and again before the one after it."""
STREAM_AFTER: Final = 1.1
"""Seconds of silence before TCP is tried: some paths lose UDP alone."""
GIVE_UP: Final = 1.7
"""Seconds before SERVFAIL; with a tick on top it leaves before CoreDNS's two seconds are over."""
PROBE_GIVE_UP: Final = 0.5
"""The same for `. NS`, which is CoreDNS's health probe: any answer within a second means that we are alive."""

_ROOT_NS = b"\0\0\2\0\1"  # the question of CoreDNS's probe


class Flight:
    """One forwarded query on its way."""

    __slots__ = (
        "attempts",
        "forward",
        "give_up",
        "port",
        "query",
        "retry_at",
        "route",
        "sender",
        "started",
        "streamed",
        "tries",
        "unreachable",
    )

    def __init__(
        self, forward: Forward, port: DatagramPort, sender: Sender, *, route: Sequence[Upstream], started: float
    ) -> None:
        self.forward = forward
        self.query = forward.query
        self.port = port
        self.sender = sender
        # Fixed at departure: were an upstream's health to change the order on the way, one could be asked four times
        # and another never.
        self.route = route
        self.started = started
        self.retry_at = started + RETRY
        self.give_up = started + (PROBE_GIVE_UP if self.query.question == _ROOT_NS else GIVE_UP)
        self.attempts = 0
        self.tries: list[tuple[UpstreamSocket, bytes]] = []
        self.streamed = False
        self.unreachable = False

    def waits(self) -> bool:
        """Whether a reply over UDP can still come."""
        return any(sock.waiting.get(key) is self for sock, key in self.tries)

    def hold_silence_against(self) -> None:
        """Tell the upstream that was asked last, if it has not answered."""
        if self.tries:
            sock, key = self.tries[-1]
            if sock.waiting.get(key) is self:
                sock.upstream.misses += 1

    def forget(self) -> None:
        """Let no upstream socket wait for it any more."""
        for sock, key in self.tries:
            if sock.waiting.get(key) is self:
                del sock.waiting[key]
