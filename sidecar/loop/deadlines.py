"""Deadlines of many connections in one coarse wheel: setting one is two set operations, and activity sets none.

The law: pure; times are seconds of a monotonic clock that the caller reads. An item comes out of the wheel at or after
its time, at most one tick late, and then decides itself whether its time has moved.
"""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

TICK: Final = 0.25
"""Seconds. No deadline of a relayed connection means more than this."""

NOWHERE: Final = -1


class Item(Protocol):
    """What a wheel holds: a thing that remembers where it was put."""

    slot: int
    """NOWHERE before the first schedule; the wheel's own afterwards."""


ItemT = TypeVar("ItemT", bound=Item)


class Wheel(Generic[ItemT]):
    """Items by the tick in which they are due."""

    def __init__(self, *, now: float) -> None:
        self._slots: dict[int, set[ItemT]] = {}
        self._done = int(now / TICK)

    def schedule(self, item: ItemT, at: float) -> None:
        """Have the item come out at this time, and no longer at another."""
        # A slot that has passed already is never looked at again.
        slot = max(int(at / TICK) + 1, self._done + 1)
        if item.slot == slot:
            return
        if item.slot != NOWHERE:
            self.cancel(item)
        item.slot = slot
        held = self._slots.get(slot)
        if held is None:
            self._slots[slot] = {item}
        else:
            held.add(item)

    def hasten(self, item: ItemT, at: float) -> None:
        """As schedule, but only where that is sooner than what the item has."""
        if item.slot == NOWHERE or int(at / TICK) + 1 < item.slot:
            self.schedule(item, at)

    def cancel(self, item: ItemT) -> None:
        """Forget the item; one that is not there is no fault."""
        if item.slot == NOWHERE:
            return
        held = self._slots.get(item.slot)
        if held is not None:
            held.discard(item)
            if not held:
                del self._slots[item.slot]
        item.slot = NOWHERE

    def due(self, now: float) -> list[ItemT]:
        """Take out every item whose time has come."""
        current = int(now / TICK)
        if current - self._done > len(self._slots):
            passed = [slot for slot in self._slots if slot <= current]
        else:
            passed = [slot for slot in range(self._done + 1, current + 1) if slot in self._slots]
        self._done = max(self._done, current)
        items = [item for slot in passed for item in self._slots.pop(slot)]
        for item in items:
            item.slot = NOWHERE
        return items
