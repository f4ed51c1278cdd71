"""Attacks as rows: what a tenant does, what must be answered, and in which column it is prevented.

The law: an attack is made once and judged in both columns. Prevented means: every name is answered as it must be, after
the servers have read what the tenant wrote. A row that says `SUCCEEDS` must succeed, so that the table of SECURITY.md
stays honest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.kit.tenants.scene import Scene, playing
from tests.kit.tenants.settings import COLUMNS, DEFAULT, STRICT

FORWARDED: Final = "forwarded"
RELAY: Final = "relay"
"""The victim's address."""
PREVENTED: Final = "prevented"
SUCCEEDS: Final = "succeeds"
OPEN: Final = "open"
"""Succeeds today and must not: the test fails when that is mended, and then the row says `PREVENTED`."""


@dataclass(frozen=True)
class Row:
    """One attack."""

    id: str
    what: str
    """What the tenant does."""
    does: Callable[[Scene], None]
    must: Mapping[str, str]
    """What is asked for, and FORWARDED, RELAY or an address."""
    default: str = PREVENTED
    strict: str = PREVENTED

    def expected(self, column: str) -> str:
        return {DEFAULT: self.default, STRICT: self.strict}[column]


@dataclass
class Stage:
    """A scene, and the attacks that were made in it."""

    scene: Scene
    made: dict[str, Row] = field(default_factory=dict)
    """By id, which is unique in all files."""

    def make(self, row: Row) -> None:
        """Make the attack, unless it was made."""
        if self.made.get(row.id) is not row:
            self.all_at_once([row])

    def all_at_once(self, rows: Iterable[Row]) -> None:
        """Make all these attacks with one mark after them: for rows that do not build on one another."""
        for row in rows:
            assert row.id not in self.made, f"two rows have the id {row.id}"
            self.made[row.id] = row
            row.does(self.scene)
        self.scene.mark()

    def judge(self, row: Row, column: str) -> None:
        """Fail unless the attack ended as the row says."""
        self.make(row)
        if row.expected(column) in {SUCCEEDS, OPEN}:
            self.scene.wait(lambda: bool(self.wrong(row, column)), f"{row.what}: does not succeed ({column})")
        else:
            self.scene.wait(lambda: not self.pending(row, column), f"{row.what} ({column}): {self.wrong(row, column)}")
            assert self.wrong(row, column) == {}, f"{row.what} ({column})"
        assert [watch.fault for watch in self.scene.watches.values()] == [None, None]

    def wrong(self, row: Row, column: str) -> dict[str, str]:
        """The names that are not answered as they must be."""
        seen = {name: self.scene.answer(column, name) for name in row.must}
        return {name: str(seen[name]) for name, must in row.must.items() if not self._is(name, must, seen[name])}

    def pending(self, row: Row, column: str) -> dict[str, str]:
        """The victim's names that are not answered yet: an attack that only delays is seen by the time-out."""
        wrong = self.wrong(row, column)
        return {name: said for name, said in wrong.items() if row.must[name] != FORWARDED}

    def _is(self, name: str, must: str, seen: object) -> bool:
        if must == FORWARDED:
            return seen == self.scene.forwarded(name)
        return getattr(seen, "addresses", None) == {self.scene.relay if must == RELAY else must}


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """A stage for the attacks of all files of one worker, because its start takes longer than they do."""
    with playing(folder) as scene:
        yield Stage(scene)


def both(rows: Sequence[Row]) -> list[object]:
    """Every row in every column, as parameters."""
    return [pytest.param(row, column, id=f"{row.id}-{column}") for row in rows for column in COLUMNS]
