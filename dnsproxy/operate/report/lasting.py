"""What stops single subjects, and the addresses that no status names: reported once it has lasted.

The law: once for each cause, after PATIENCE; again after it was gone, or when its subject is a new one. Pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

PATIENCE: Final = 15.0
"""Seconds for which something may be missing before it is reported: a new class is probed, a pod starts."""

S = TypeVar("S", bound=Hashable)
"""A subject, or an address."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """What is in the way of one subject's decision, or to be known about one address."""

    why: str
    """Empty if nothing is."""
    since: float
    """When something or nothing began to be; in seconds of one clock."""
    reported: bool = False


def note_stopped(
    before: Mapping[S, Stopped], reasons: Mapping[S, str], *, complete: bool, now: float
) -> tuple[dict[S, Stopped], tuple[S, ...]]:
    """What stops each subject now, and which of these are to be reported.

    `reasons` has every subject, with an empty text if nothing stops it. A subject that is not among them is forgotten
    only if they are `complete`: otherwise it may just not have been read.
    """
    after = {} if complete else dict(before)
    to_report = []
    for subject, why in reasons.items():
        one = before.get(subject, Stopped("", now))
        since, reported = (one.since, one.reported) if bool(one.why) == bool(why) else (now, False)
        if why and now - since >= PATIENCE and not (reported and one.why == why):
            to_report.append(subject)
            reported = True
        after[subject] = Stopped(why, since, reported)
    return after, tuple(to_report)
