"""A flight: one forwarded query on its way, everybody who waits for it, and the moments at which something happens.

The law: a flight is plain state. The forwarder moves it, upstream sockets remember it by the IDs it left under.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from dnsproxy.answers.decide import Forward
from dnsproxy.datagrams.port import DatagramPort, Sender
from dnsproxy.dns.wire import HEADER

if TYPE_CHECKING:
    from dnsproxy.forward.upstream import Upstream
    from dnsproxy.forward.upstream_socket import UpstreamSocket

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
IMPATIENT: Final = 0.25
"""Seconds after which an equal query counts as a retry of its client, and has the next upstream asked."""

_ROOT_NS = b"\0\0\2\0\1"  # the question of CoreDNS's probe


class Step(Enum):
    """What happens to a flight that is still up."""

    RETRY = "ask the next upstream"
    STREAM = "try TCP beside it"
    GIVE_UP = "SERVFAIL"


Steps = tuple[tuple[float, Step], ...]
_STEPS: Final[Steps] = (
    (RETRY, Step.RETRY),
    (STREAM_AFTER, Step.STREAM),
    (2 * RETRY, Step.RETRY),
    (GIVE_UP, Step.GIVE_UP),
)
_PROBE_STEPS: Final[Steps] = ((PROBE_GIVE_UP, Step.GIVE_UP),)


Recipient = tuple[DatagramPort, Sender, bytes]
"""Somebody who waits for a flight: port, sender and message ID. Plain, for each query makes one."""


class Try(NamedTuple):
    """An upstream that was asked over a stream; stands where a UDP socket does."""

    upstream: Upstream
    waiting: dict[bytes, Flight]


class Flight:
    """One forwarded query on its way. What few flights ever need is set when it is needed."""

    tries: tuple[tuple[UpstreamSocket | Try, bytes], ...] = ()
    """Where a reply can come from."""
    others: dict[Recipient, None] | None = None
    """Who asked the same while it was on its way; thousands may, so each is looked up and not searched for."""
    attempts = 0
    """Upstreams asked so far."""
    asked_at = 0.0
    """When the last of them was, if it was not at departure."""
    steps: Steps = _STEPS
    step = 0
    streamed = False
    unreachable = False
    """Whether the network said that an upstream cannot be reached."""
    landed = False

    def __init__(
        self, forward: Forward, recipient: Recipient, key: bytes, route: Sequence[Upstream], started: float
    ) -> None:
        self.query, self.shields = query, _ = forward
        self.key = key
        """The query without its ID: equal queries are one flight."""
        self.question = question = query.message[HEADER : query.end]
        self.recipient = recipient
        # Fixed at departure: were an upstream's health to change the order on the way, one could be asked four times
        # and another never.
        self.route = route
        self.started = started
        self.due = started + RETRY
        """When the next step is to happen."""
        if question == _ROOT_NS:
            self.steps = _PROBE_STEPS
            self.due = started + PROBE_GIVE_UP

    @property
    def give_up(self) -> float:
        """When it ends without a reply."""
        return self.started + self.steps[-1][0]

    @property
    def waiters(self) -> int:
        """How many get the reply."""
        return 1 + len(self.others) if self.others else 1

    def next_step(self) -> Step:
        """The step that is due; the one behind it is the next."""
        step = self.steps[self.step][1]
        self.step += 1
        if self.step < len(self.steps):
            self.due = self.started + self.steps[self.step][0]
        return step

    def has(self, recipient: Recipient) -> bool:
        """Whether this very query waits already: its client has sent it again."""
        return recipient == self.recipient or (self.others is not None and recipient in self.others)

    def join(self, recipient: Recipient) -> None:
        """Let somebody else wait for the same reply."""
        if self.others is None:
            self.others = {}
        self.others[recipient] = None

    def waits(self) -> bool:
        """Whether a reply can still come."""
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
