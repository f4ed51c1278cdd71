"""Refusals: why an object does not get its hostnames from the object that would serve them.

The law: pure. An object may be bound to many others, and each may refuse it: what is reported is short, and deliberate
only if every refusal is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dnsproxy.hostnames.claims import Origin, Rejection

_MOST_HOSTNAMES: Final = 10
"""Hostnames in one rejection: an object may have thousands."""
_MOST_REASONS: Final = 3
"""Reasons in one rejection: a route has up to 32 parents and 1024 hostnames."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one object refuses another, as part of a sentence."""

    reason: str
    deliberate: bool = False
    """As Rejection.deliberate."""


def rejection_of(origin: Origin, refusals: Sequence[Refusal]) -> Rejection:
    """One rejection for an object without hostnames."""
    return Rejection(origin, _format_reasons(refusals), _are_deliberate(refusals))


def rejections_for(origin: Origin, hostnames: Iterable[str], refusals: Sequence[Refusal]) -> list[Rejection]:
    """One rejection for each hostname, so that a search for the hostname finds it."""
    reason, deliberate = _format_reasons(refusals), _are_deliberate(refusals)
    return [Rejection(origin, f"{hostname}: {reason}", deliberate) for hostname in dict.fromkeys(hostnames)]


def list_hostnames(hostnames: Sequence[str]) -> str:
    """The first hostnames of an object for a rejection of all of them, and how many more there are."""
    more = len(hostnames) - _MOST_HOSTNAMES
    return ", ".join(hostnames[:_MOST_HOSTNAMES]) + (f" and {more:,} more" if more > 0 else "")


def _format_reasons(refusals: Iterable[Refusal]) -> str:
    reasons = list(dict.fromkeys(refusal.reason for refusal in refusals))
    more = [f"and {len(reasons) - _MOST_REASONS} more"] if len(reasons) > _MOST_REASONS else []
    return "; ".join(reasons[:_MOST_REASONS] + more)


def _are_deliberate(refusals: Iterable[Refusal]) -> bool:
    return all(refusal.deliberate for refusal in refusals)
