"""Refusal: why something is not done to a cluster's DNS, and the way out.

The law: a refusal is made before anything is written, names the place, and says what to do; text from the cluster may
be part of it.
"""

from __future__ import annotations

from dnsproxy.corefile.model import CorefileError


class Refusal(ValueError):
    """A change that must not be made."""

    def __init__(self, reason: str, remedy: str = "", *, place: str = "") -> None:
        text = f"{reason}; {remedy}" if remedy else reason
        super().__init__(f"{place}: {text}" if place else text)
        self.reason = reason
        self.remedy = remedy
        """What to do about it; empty where the reason says it."""
        self.place = place
        """The object, key and line; empty where it is about no place."""


def refusal_of(error: CorefileError, where: object) -> Refusal:
    """The refusal for a Corefile, or a part of one, that cannot be read or must not be changed."""
    return Refusal(error.reason, error.remedy, place=f"{where}, line {error.line}")
