"""Faults: what keeps discovery from knowing or from using something, as values.

The law: nothing that a cluster holds is an exception here; a fault says what, where, and what to do about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Blame(Enum):
    """Where a fault lies."""

    ACCESS = "access"
    """Something could not be read: what is said of the cluster may be wrong."""
    CONTENTS = "contents"
    """All was read, and this is how the cluster is."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong."""

    blame: Blame
    text: str
    """What and where; may hold text from the cluster."""
    remedy: str = ""
    """What to do; empty where the text says it."""

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text
