"""Health: which of our DNSEndpoints external-dns has not taken in.

The law: external-dns writes the generation that it has seen into the status; what is old enough and still behind is not
read by anybody. Headless Services have no such word. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from dnsproxy.publish.externaldns.planning import Stored

OLD_ENOUGH = 120.0
"""Seconds; external-dns looks once a minute by default."""


def unobserved(objects: Iterable[Stored], *, now: datetime) -> list[str]:
    """The names of those that should have been seen by now, sorted."""
    return sorted(one.metadata.name for one in objects if _is_behind(one) and _age(one, now) > OLD_ENOUGH)


def _is_behind(one: Stored) -> bool:
    observed = one.status.observed_generation if one.status else None
    return observed is None or observed < one.metadata.generation


def _age(one: Stored, now: datetime) -> float:
    """Seconds since it was made; 0 where that is not known. Whoever asks has let a change rest by himself."""
    try:
        created = datetime.fromisoformat(one.metadata.creation_timestamp or "")
    except ValueError:
        return 0.0
    return (now - (created if created.tzinfo else created.replace(tzinfo=UTC))).total_seconds()
