"""Runs work that is written in steps (sidecar/loop/slices.py) at once, where nothing else has to run in between.

The law: the result is the same as that of in_slices.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")


def at_once(steps: Generator[None, None, Result]) -> Result:
    """Run the steps to their end; their result."""
    try:
        while True:
            next(steps)
    except StopIteration as done:
        result: Result = done.value
        return result
