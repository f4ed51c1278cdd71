"""One index for all who search."""

from __future__ import annotations

import gc
import weakref

import pytest

from sidecar.page.shared import Shared
from sidecar.page.window import Index, Place, Rows, Words


class World:
    """Rows that change, and the time."""

    def __init__(self, rows: int = 10_000) -> None:
        self.now = 0.0
        self.version = 0
        self.keys = [str(number) for number in range(rows)]
        self.shared = Shared(self.make, version=lambda: self.version, clock=lambda: self.now)

    def make(self) -> Index:
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
