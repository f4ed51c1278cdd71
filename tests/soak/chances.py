"""A random source that is the same in every run."""

from __future__ import annotations

import random


def chance_of(seed: int) -> random.Random:
    """A seeded source of random numbers: none of them needs to be secret."""
    return random.Random(seed)  # noqa: S311
