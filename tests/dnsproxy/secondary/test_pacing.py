"""The pacing of looks: at once for a NOTIFY, a second apart for a flood, whatever the primaries answer."""

from __future__ import annotations

import pytest

from dnsproxy.secondary.pacing import LookPacing
from dnsproxy.zone.zone_records import REFRESH, RETRY


def looks_in_a_flood(seconds: int, *, fails: bool, brings: bool = False) -> int:
    """How many looks a NOTIFY each millisecond brings."""
    pacing, now, looks = LookPacing(), 1_000.0, 0
    while now < 1_000 + seconds:
        now = max(now + 0.001, min(pacing.notified_look(now=now), pacing.next_look))
        looks += 1
        if fails:
            pacing.after_failure(now=now, notified=True)
        else:
            pacing.after_success(now=now, was_new=brings, notified=True)
    return looks


@pytest.mark.parametrize("fails", [False, True], ids=["the primary has nothing new", "no primary answers"])
def test_a_flood_of_notifies_brings_ten_looks_and_then_one_a_second(fails: bool) -> None:
    # A failure is tried again after half a second, one, two ... by itself.
    assert 60 <= looks_in_a_flood(60, fails=fails) <= 60 + 10 + 5


def test_notifies_that_bring_something_new_are_never_delayed() -> None:
    assert looks_in_a_flood(2, fails=False, brings=True) > 1_900


def test_failures_are_tried_again_at_longer_and_longer_intervals() -> None:
    pacing, now, waits = LookPacing(), 0.0, []
    for _ in range(7):
        pacing.after_failure(now=now)
        waits.append(pacing.next_look - now)
        now = pacing.next_look
    assert waits == [0.5, 1, 2, 4, 8, RETRY, RETRY]
    pacing.after_success(now=now, was_new=True, notified=False)
    assert pacing.next_look == now + REFRESH
    pacing.after_failure(now=now)
    assert pacing.next_look == now + 0.5
