"""The differences between two rulesets with the same static part, element by element.

The law: the transaction of some differences, applied to the first ruleset, makes just these elements those of the
second. So a large repair may be many small transactions, in this order: the kernel refuses a network that overlaps with
one of the set.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import NamedTuple

from wholeip.ruleset.ruleset import Ruleset, Transaction


class Difference(NamedTuple):
    """An element of a set or map that differs."""

    collection: str
    key: str
    present: str | None
    """Its value in the first ruleset, which is empty in a set; None: it is missing there."""
    desired: str | None
    """The same in the second."""


def find_differences(current: Ruleset, desired: Ruleset) -> Generator[None, None, list[Difference]]:
    """The differences by collection, surplus elements first; a step compares a set or a few elements."""
    found: list[Difference] = []
    for name, wanted in desired.elements.items():
        yield
        present = current.elements.get(name, {})
        # Most sets are equal, and comparing them whole costs a tenth of comparing each element.
        if present == wanted:
            continue
        for key, extra in present.items():
            yield
            if key not in wanted:
                found.append(Difference(name, key, extra, None))
        for key, value in wanted.items():
            yield
            if (had := present.get(key)) != value:
                found.append(Difference(name, key, had, value))
    return found


def make_repair(table: str, differences: Iterable[Difference]) -> Transaction:
    """The transaction that ends these differences."""
    deletes: dict[str, dict[str, str]] = {}
    adds: dict[str, dict[str, str]] = {}
    for name, key, present, desired in differences:
        if present is not None:
            deletes.setdefault(name, {})[key] = present
        if desired is not None:
            adds.setdefault(name, {})[key] = desired
    return Transaction(table, deletes=deletes, adds=adds)
