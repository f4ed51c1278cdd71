"""Which replica leads: the holder of a Lease, as in client-go's leader election.

The law: at most one holder, as far as clocks advance alike: another one takes the Lease only after it has seen no
renewal for DURATION, on its own clock. A holder that could not renew for less than that stops first. The time in the
Lease is of another machine's clock: a leader may go by it for what is cheap to repeat, never for who holds the Lease.
https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Final

DURATION: Final = 15.0
"""Seconds without a renewal after which another replica may take the Lease."""
GIVE_UP: Final = 10.0
"""Seconds without a renewal after which the holder stops."""
RENEW: Final = 4.0
"""Seconds between two renewals, and between two looks."""


@dataclass(frozen=True, slots=True)
class SeenLease:
    """The Lease as it was read."""

    holder: str = ""
    """The identity of its holder; empty if it was given back."""
    version: str = ""
    """Its resourceVersion; empty if there is no Lease."""
    age: float = field(default=0.0, compare=False)
    """Seconds since its renewTime; 0 if that is not known, or in the future."""
    annotations: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Leading:
    """What one replica knows; times are seconds of its own clock."""

    seen: SeenLease = SeenLease()
    since: float = -inf
    """When this version was first seen."""
    renewed: float = -inf
    """When this replica last wrote the Lease."""
    other_until: float = -inf
    """Until when another replica may have led: when a Lease that was not ours last changed, as far as is known."""


class LeaseStep(Enum):
    """What to do with the Lease now."""

    WAIT = "wait"
    CREATE = "create"
    TAKE = "take"
    """Write the own identity over the version that was seen."""


def after_look(state: Leading, seen: SeenLease, *, identity: str, now: float) -> Leading:
    """The state after the Lease was read."""
    if seen.version == state.seen.version:
        return Leading(seen, state.since, state.renewed, state.other_until)
    if not seen.version or seen.holder == identity:
        return Leading(seen, now, state.renewed, state.other_until)
    # At the first look it may be hours old; later it has changed since the look before.
    age = min(seen.age, RENEW) if state.seen.version else seen.age
    return Leading(seen, now, state.renewed, now - age)


def after_write(state: Leading, seen: SeenLease, *, now: float) -> Leading:
    """The state after this replica wrote the Lease; `now`: when the request was sent."""
    return Leading(seen, now, now, state.other_until)


def leads(state: Leading, *, identity: str, now: float) -> bool:
    """Whether this replica leads now."""
    return state.seen.holder == identity and now < state.renewed + GIVE_UP


def next_step(state: Leading, *, identity: str, now: float) -> LeaseStep:
    """What to do after a look."""
    if not state.seen.version:
        return LeaseStep.CREATE
    if state.seen.holder in ("", identity):
        return LeaseStep.TAKE
    return LeaseStep.TAKE if now >= state.since + DURATION else LeaseStep.WAIT
