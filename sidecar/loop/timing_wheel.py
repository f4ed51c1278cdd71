"""Deadlines of many connections in one timing wheel: setting one costs two set operations; traffic costs none.

The law: pure; times are seconds of a monotonic clock that the caller reads. The wheel returns an item at or after its
time, at most one tick late; the item then decides whether its deadline has moved.
"""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

TICK: Final = 0.25
"""Seconds. No deadline of a relayed connection needs to be more precise."""

NOWHERE: Final = -1


class Item(Protocol):
    """An item of a wheel; it stores its slot."""

    slot: int
    """NOWHERE before the first schedule; afterwards only the wheel sets it."""


ItemT = TypeVar("ItemT", bound=Item)


class Wheel(Generic[ItemT]):
    """Items by the tick in which they are due."""

    def __init__(self, *, now: float) -> None:
        self._slots: dict[int, set[ItemT]] = {}
        self._done = int(now / TICK)

    def schedule(self, item: ItemT, at: float) -> None:
        """Set the item's time, in place of an earlier one."""
        # due() never looks at a slot that has passed.
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
        """As schedule, but only if this is sooner than the item's time."""
        if item.slot == NOWHERE or int(at / TICK) + 1 < item.slot:
            self.schedule(item, at)

    def cancel(self, item: ItemT) -> None:
        """Take the item out; does nothing if it is not in the wheel."""
        if item.slot == NOWHERE:
            return
        held = self._slots.get(item.slot)
        if held is not None:
            held.discard(item)
            if not held:
                del self._slots[item.slot]
        item.slot = NOWHERE

    def due(self, now: float) -> list[ItemT]:
        """Take out and return every item whose time has come."""
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
