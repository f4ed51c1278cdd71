"""Rows that differ by a number alone: one test tries all of them, and lists those that fail.

A row of `parametrize` costs its collection in each process, a report and a line of the log. It is worth that where it
has an id that names a fault of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any


def failing(check: Callable[..., None], *columns: Iterable[Any]) -> list[str]:
    """Every combination of the columns for which the check raises, with the first line of what it raised.

    That there is no combination is a failure too.
    """
    rows = list(product(*columns))
    failures = [] if rows else ["there is no row"]
    for row in rows:
        try:
            check(*row)
        except Exception as error:  # noqa: BLE001  # an error in one row hides no other row
            shown = ", ".join(f"{value!r:.80}" for value in row)
            failures.append(f"{shown}: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
    return failures
