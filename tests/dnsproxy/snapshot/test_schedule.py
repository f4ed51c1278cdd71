"""When a snapshot is due: never while the claims may be wrong, and not again before something changed."""

from __future__ import annotations

import pytest

from dnsproxy.snapshot.schedule import SnapshotPace, SnapshotSchedule

PACE = SnapshotPace(interval=5, share=0.02, empty=60, retry=30, refresh=3600)


@pytest.mark.parametrize(
    ("looks", "due"),
    [
        pytest.param([(0, 7, True, False)], True, id="claims that were never written"),
        pytest.param([(0, 7, False, False)], False, id="a source is not consistent"),
        pytest.param([(0, 7, True, True)], False, id="no claims at all, for the first time"),
        pytest.param([(0, 7, True, True), (59, 7, True, True)], False, id="none for a while"),
        pytest.param([(0, 7, True, True), (60, 7, True, True)], True, id="none for long"),
        pytest.param([(0, 7, True, True), (30, 8, True, False), (60, 9, True, True)], False, id="some in between"),
        pytest.param(
            [(0, 7, True, True), (30, 7, False, True), (60, 7, True, True)], False, id="unconfirmed in between"
        ),
        pytest.param([(0, 7, False, True), (60, 7, True, True)], False, id="unconfirmed before"),
    ],
)
def test_claims_are_due_when_they_are_sure(looks: list[tuple[float, int, bool, bool]], due: bool) -> None:
    schedule = SnapshotSchedule(PACE)
    results = [
        schedule.is_due(version=version, consistent=consistent, empty=empty, now=now)
        for now, version, consistent, empty in looks
    ]
    assert results[-1] is due


@pytest.mark.parametrize(
    ("now", "version", "due"),
    [
        pytest.param(105, 7, False, id="unchanged"),
        pytest.param(105, 8, True, id="changed"),
        pytest.param(100 + 3599, 7, False, id="unchanged for nearly an hour"),
        pytest.param(100 + 3600, 7, True, id="unchanged for an hour"),
    ],
)
@pytest.mark.parametrize("consistent", [True, False], ids=["consistent", "not consistent"])
def test_what_was_written_is_due_again_when_it_changed_or_grew_old(
    now: float, version: int, due: bool, consistent: bool
) -> None:
    schedule = SnapshotSchedule(PACE)
    schedule.written(version=7, now=100)
    assert schedule.is_due(version=version, consistent=consistent, empty=False, now=now) is (due and consistent)


@pytest.mark.parametrize(
    ("lasted", "failed", "pause"),
    [
        pytest.param(0.01, False, 5, id="a small table"),
        pytest.param(0.4, False, 20, id="a large one"),
        pytest.param(0.01, True, 30, id="a failure"),
        pytest.param(2, True, 100, id="a failure that took long"),
    ],
)
def test_writing_takes_a_small_share_of_the_time(lasted: float, failed: bool, pause: float) -> None:
    assert SnapshotSchedule(PACE).pause(lasted=lasted, failed=failed) == pytest.approx(pause)
