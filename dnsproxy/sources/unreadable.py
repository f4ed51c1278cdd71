"""Objects that exist and cannot be used, in the words of a rejection.

The law: pure; such an object claims nothing, and affects no other.
"""

from __future__ import annotations

import msgspec

from dnsproxy.hostnames.claims import Origin, Rejection
from dnsproxy.sources.annotations import origin_of
from sidecar.kubernetes.objects import Unreadable


class UnreadableFacts(msgspec.Struct, frozen=True, gc=False):
    """What is kept of one, where objects depend on each other."""

    origin: Origin
    reason: str


def unreadable_facts(kind: str, one: Unreadable) -> UnreadableFacts:
    """Of an object with fields of a wrong type; `kind`: as users know it."""
    return UnreadableFacts(origin_of(kind, one.metadata), f"unreadable: {one.reason}")


def rejection_of_unreadable(kind: str, one: Unreadable) -> Rejection:
    """The same as a rejection."""
    facts = unreadable_facts(kind, one)
    return Rejection(facts.origin, facts.reason)
