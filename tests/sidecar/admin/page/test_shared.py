"""One index for all searches."""

from __future__ import annotations

import gc
import weakref

import pytest

from sidecar.admin.page.index import Index, Rows
from sidecar.admin.page.shared import Shared
from sidecar.admin.page.window import Place, Words


class World:
    """Rows that change, and the time."""

    def __init__(self, rows: int = 10_000) -> None:
        self.now = 0.0
        self.version = 0
        self.keys = [str(number) for number in range(rows)]
        self.changes: dict[str, bool] | None = None
        self.made = 0
        self.shared = Shared(
            self.make, version=lambda: self.version, changes=lambda _: self.changes, clock=lambda: self.now
        )

    def make(self) -> Index:
        self.made += 1
        return Index(Rows(lambda: self.keys, lambda: self.keys, lambda key, _: (key,)))

    def searched(self) -> Index:
        index = self.shared.take()
        for _ in index.find(Words("1"), Place(), size=1):
            pass
        return index


def test_as_long_as_nothing_changes_there_is_one() -> None:
    world = World()
    first = world.searched()
    world.now = 1_000_000.0
    assert world.shared.take() is first


@pytest.mark.parametrize(
    ("rows", "age", "same"),
    [
        pytest.param(10_000, 0.15, True, id="young for its size"),
        pytest.param(10_000, 0.25, False, id="old"),
        pytest.param(100, 0.15, False, id="old, for it is soon made anew"),
        pytest.param(0, 0.001, False, id="empty"),
    ],
)
def test_what_has_changed_is_made_again_where_that_is_worth_it(rows: int, age: float, same: bool) -> None:
    world = World(rows)
    first = world.searched()
    world.version = 1
    world.now = age
    assert (world.shared.take() is first) is same


def test_what_is_known_to_have_changed_is_made_anew_at_once() -> None:
    world = World()
    world.changes = {"new 1": True, "1": False}
    first = world.searched()
    world.version = 1
    second = world.searched()
    assert second is not first
    assert second.size == 10_000
    assert world.made == 1
    world.now = 50.0
    world.version = 2
    world.shared.tidy()
    assert world.shared.take().size is None
    assert world.made == 1


@pytest.mark.parametrize(("age", "same"), [(0.9, True), (1.1, False)])
def test_what_is_not_ready_yet_is_waited_for_together(age: float, same: bool) -> None:
    world = World()
    first = world.shared.take()
    world.version = 1
    world.now = age
    assert (world.shared.take() is first) is same


@pytest.mark.parametrize(
    ("version", "idle", "kept"),
    [
        pytest.param(0, 59.0, True, id="in use"),
        pytest.param(0, 61.0, False, id="not in use"),
        pytest.param(1, 0.15, True, id="outdated and young"),
        pytest.param(1, 0.25, False, id="outdated"),
    ],
)
def test_memory_is_given_back(version: int, idle: float, kept: bool) -> None:
    world = World()
    world.shared.tidy()
    index = weakref.ref(world.searched())
    world.version = version
    world.now = idle
    world.shared.tidy()
    gc.collect()
    assert (index() is not None) is kept
    assert world.searched().size == 10_000
