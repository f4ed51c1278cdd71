"""Marks: what an object's annotations and labels say to us (`switchback.dev/ignore`, `switchback.dev/target`).

The law: an annotation goes before a label of the same name. An object with a mark that we can't read is left out, for
its owner wanted something other than what we would do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dnsproxy.names import shown
from dnsproxy.sources.gateway import structs
from dnsproxy.targets import BadTarget, parse_target

IGNORE: Final = "switchback.dev/ignore"
TARGET: Final = "switchback.dev/target"


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks on one object, read."""

    ignored: bool = False
    target: str | None = None
    """In the form of Claim.target."""
    faults: tuple[str, ...] = ()


NO_MARKS: Final = Marks()


def read_marks(metadata: structs.Metadata) -> Marks:
    """The marks in an object's metadata."""
    if metadata.annotations is None and metadata.labels is None:
        return NO_MARKS
    first, second = metadata.annotations or structs.Marks(), metadata.labels or structs.Marks()
    ignore = first.ignore if first.ignore is not None else second.ignore
    target = first.target if first.target is not None else second.target
    faults = []
    if ignore not in (None, "true", "false"):
        faults.append(f"{IGNORE}: {shown(ignore or '')} is neither true nor false")
    try:
        target = parse_target(target) if target is not None else None
    except BadTarget as error:
        target = None
        faults.append(f"{TARGET}: {error}")
    return Marks(ignore == "true", target, tuple(faults)) if faults or ignore == "true" or target else NO_MARKS
