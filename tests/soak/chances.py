"""Chance that is the same in every run."""

from __future__ import annotations

import random


def chance_of(seed: int) -> random.Random:
    """A source of numbers that anybody can foresee: nothing here is a secret."""
    return random.Random(seed)  # noqa: S311
