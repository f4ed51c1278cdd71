"""Which names are published, and when a table waits for a second read because it lost most of them.

The law: one read never removes what many reads published. A publisher that keeps running removes it at a second, later
read; one that exits needs the operator's flag, because a second read seconds later shows the same file. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dnsproxy.admin.publication import Name
from dnsproxy.dns.names import is_within_any

_FEW: Final = 20
"""Below this many names, losing most of them is normal. Losing all of them never is."""
SECOND_READ: Final = "; a second read decides"
_LITTLE_LEFT: Final = 10
"""A table is held back if less than this fraction (one tenth) of the published names is left."""


def select_names(names: Iterable[Name], *, zones: Sequence[str]) -> list[Name]:
    """The names at or below one of the zones; all names if there are no zones."""
    return [name for name in names if not zones or is_within_any(name.hostname.removeprefix("*."), zones)]


def is_sudden_loss(*, before: int, after: int) -> bool:
    """Whether a table of `after` names must be read twice before it replaces `before` names."""
    return (after == 0 < before) or (before >= _FEW and after * _LITTLE_LEFT < before)


def describe_loss(*, before: int, after: int) -> str:
    """Why a table is held back, on one line."""
    return f"the table has {after} names and {before} are published{SECOND_READ}"


def describe_refusal(held_back: str) -> str:
    """Why a table is not published by a program that exits, from the reason to hold it back."""
    loss = held_back.removesuffix(SECOND_READ)
    return held_back if loss == held_back else f"{loss}; a second read shows the same, and --allow-loss publishes it"
