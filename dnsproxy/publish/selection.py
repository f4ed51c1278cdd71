"""Which names are published, and when a table waits for a second read because it lost most of them.

The law: one read never removes what many reads published; a second read, later, does. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dnsproxy.admin.publication import Name
from dnsproxy.dns.names import is_within_any

_FEW: Final = 20
"""Below this many names, losing most of them is normal. Losing all of them never is."""
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
    return f"the table has {after} names and {before} are published; a second read decides"
