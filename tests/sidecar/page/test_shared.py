"""One copy for all who look."""

from __future__ import annotations

import gc
import weakref

from sidecar.page.shared import Shared


class World:
    def __init__(self) -> None:
        self.now = 0.0
        self.made = 0

    def make(self) -> list[int]:
        self.made += 1
        return [self.made]


def test_who_comes_meanwhile_gets_the_copy_that_is_there() -> None:
    world = World()
    shared = Shared(world.make, clock=lambda: world.now)
    first = shared.take()
    world.now = 0.9
    assert shared.take() is first
    world.now = 2.0
    assert shared.take().rows == [2]


def test_a_copy_that_nobody_uses_is_gone() -> None:
    world = World()
    shared = Shared(world.make, clock=lambda: world.now)
    copy = weakref.ref(shared.take())
    gc.collect()
    assert copy() is None
    assert shared.take().rows == [2]
