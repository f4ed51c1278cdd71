"""Doubt: whether what is to be published lost so much that it is likelier wrong than true.

The law: one reading never takes out what many readings put in; a second one, later, does. Pure.
"""

from __future__ import annotations

from typing import Final

_FEW: Final = 20
"""Below this many names, losing most of them is daily business; losing all never is."""
_LITTLE_LEFT: Final = 10
"""Less than this fraction (one tenth) left of what there was is doubted."""


def is_doubtful(*, before: int, after: int) -> bool:
    """Whether that many names may be replaced by that many without a second look."""
    return (after == 0 < before) or (before >= _FEW and after * _LITTLE_LEFT < before)
