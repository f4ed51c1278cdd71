"""A flight: one forwarded query in flight, the clients that wait for its reply, and the times of its next steps.

The law: a flight is plain state. The forwarder moves it; upstream sockets find it by the message IDs it was sent under.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from dnsproxy.answers.decide import Forward
from dnsproxy.datagrams.port import DatagramPort, Sender
from dnsproxy.dns.wire import HEADER
from dnsproxy.forward.deadlines import FEW, PROBE_GIVE_UP, PROBE_STEPS, RETRY, STEPS, Step, Steps, steps_for

FAILING: Final = 3
"""Unanswered queries in a row after which an upstream is asked only after the healthy ones."""

_ROOT_NS = b"\0\0\2\0\1"  # the question of CoreDNS's health probe

Recipient = tuple[DatagramPort, Sender, bytes]
"""A client that waits for a flight: port, sender and message ID. A plain tuple, because each query makes one."""


class Health:
    """The health of one upstream, judged by its replies."""

    __slots__ = ("misses",)

    def __init__(self) -> None:
        self.misses = 0
        """Queries in a row without an answer."""

    @property
    def failing(self) -> bool:
        """Whether the upstream is asked only after the healthy ones."""
        return self.misses >= FAILING


class Waiting(Protocol):
    """Where a reply can arrive: a UDP socket or a stream, with the flights that wait there, by message ID."""

    @property
    def health(self) -> Health:
        """The health of the upstream at the other end."""

    def note_miss(self) -> None:
        """Count a query without a reply."""

    @property
    def waiting(self) -> dict[bytes, Flight]:
        """The flights that wait for a reply here."""


class StreamAttempt(NamedTuple):
    """An upstream that was asked over a stream: the counterpart of a UDP socket."""

    health: Health
    waiting: dict[bytes, Flight]

    def note_miss(self) -> None:
        """See Waiting."""
        self.health.misses += 1


class Flight:
    """One forwarded query in flight. What few flights need is set only when it is needed."""

    attempts: tuple[tuple[Waiting, bytes], ...] = ()
    """Where a reply can arrive, and under which message ID."""
    others: dict[Recipient, None] | None = None
    """Clients that sent an equal query meanwhile. A dict, because there may be thousands and each is looked up."""
    asked = 0
    """How many times an upstream was asked."""
    asked_at = 0.0
    """When the last one was asked, if not at the start."""
    steps: Steps = STEPS
    step = 0
    streamed = False
    unreachable = False
    """Whether the network reported an upstream as unreachable."""
    done = False
    passes = True
    """Whether a usual reply passes as it is, but for what is replaced in it."""
    looking = False
    """Whether the other family of addresses is being asked, which decides what an empty reply means."""

    def __init__(
        self, forward: Forward, recipient: Recipient, key: bytes, route: Sequence[Any], started: float
    ) -> None:
        self.forward = forward
        self.query, shields, claim = forward
        if shields or claim is not None:
            self.passes = False
        message, _, _, _, end, _ = self.query
        self.key = key
        """The query without its ID: equal queries share one flight."""
        self.question = question = message[HEADER:end]
        self.recipient = recipient
        # The upstreams to ask, fixed at the start: if a change of health reordered them meanwhile, one could be asked
        # four times and another never.
        self.route = route
        self.started = started
        self.due = started + RETRY
        """When the next step is due."""
        if question == _ROOT_NS:
            self.steps = PROBE_STEPS
            self.due = started + PROBE_GIVE_UP
        elif len(route) > FEW:
            self.steps = steps_for(len(route))
            self.due = started + self.steps[0][0]

    @property
    def give_up(self) -> float:
        """When the flight ends without a reply."""
        return self.started + self.steps[-1][0]

    @property
    def is_open(self) -> bool:
        """Whether a reply still counts: none has come, not even one whose meaning is being looked up."""
        return not self.done and not self.looking

    @property
    def waiters(self) -> int:
        """How many clients get the reply."""
        return 1 + len(self.others) if self.others else 1

    def next_step(self) -> Step:
        """The step that is due; moves on to the step after it."""
        step = self.steps[self.step][1]
        self.step += 1
        if self.step < len(self.steps):
            self.due = self.started + self.steps[self.step][0]
        return step

    def has(self, recipient: Recipient) -> bool:
        """Whether this very query waits already: its client has sent it again."""
        return recipient == self.recipient or (self.others is not None and recipient in self.others)

    def join(self, recipient: Recipient) -> None:
        """Let another client wait for the same reply."""
        if self.others is None:
            self.others = {}
        self.others[recipient] = None

    def waits(self) -> bool:
        """Whether a reply can still arrive."""
        return any(place.waiting.get(key) is self for place, key in self.attempts)

    def waits_for(self, health: Health) -> bool:
        """Whether a reply can still arrive from the upstream with this health."""
        return any(place.health is health and place.waiting.get(key) is self for place, key in self.attempts)

    def count_miss(self) -> None:
        """Count a miss for the upstream that was asked last, if it has not answered."""
        if self.attempts:
            place, key = self.attempts[-1]
            if place.waiting.get(key) is self:
                place.note_miss()

    def forget(self) -> None:
        """Stop waiting for a reply anywhere."""
        for place, key in self.attempts:
            if place.waiting.get(key) is self:
                del place.waiting[key]
