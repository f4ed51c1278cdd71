"""Lasting: a result that is bad counts only if several looks in a row find it so.

The law: the first good result ends the looks, so that a healthy cluster waits for nothing. Tested in
test_forwarding_check.py and test_upstream_comparison.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

T = TypeVar("T")

_LOOKS: Final = 3
_PAUSE_SECONDS: Final = 1.0


async def look_until_good(look: Callable[[], Awaitable[T]], is_bad: Callable[[T], bool]) -> T:
    """The first result that is not bad, else the last one."""
    result = await look()
    for _ in range(_LOOKS - 1):
        if not is_bad(result):
            break
        await trio.sleep(_PAUSE_SECONDS)
        result = await look()
    return result
