"""When a change may be written."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.operate.decide.plan import Change, Create, Delete, Patch
from dnsproxy.operate.decide.write_pace import (
    READ,
    RETRY,
    WritePace,
    after_failure,
    after_success,
    before_write,
    in_place,
    version_of,
    wish_of,
)
from tests.dnsproxy.operate.decide.cluster import route_of

ROUTE = route_of()


def patched(version: str) -> Patch:
    """Another program has changed what we wrote: the same wish over another version."""
    return Patch(replace(ROUTE, resource_version=version, headers="v2"), replace(ROUTE, resource_version=version))


def written(change: Change, pace: WritePace | None, now: float) -> WritePace:
    return after_success(before_write(pace, change, now=now), change, now=now)


def test_a_change_is_written_at_once() -> None:
    for change in (Create(ROUTE), patched("7"), Delete(ROUTE)):
        assert before_write(None, change, now=5.0).due == 5.0


def test_what_was_read_before_the_write_is_not_written_over_again() -> None:
    pace = written(patched("7"), None, 0.0)
    assert before_write(pace, patched("7"), now=0.1).due == READ
    assert before_write(pace, patched("7"), now=READ).due <= READ
    created = written(Create(ROUTE), None, 0.0)
    assert before_write(created, Create(ROUTE), now=0.1).due == READ


def test_another_wish_is_written_at_once() -> None:
    pace = written(patched("7"), None, 0.0)
    other = Patch(replace(ROUTE, resource_version="8"), replace(ROUTE, resource_version="8", subjects=""))
    assert before_write(pace, other, now=0.1).due <= 0.1


def test_a_failed_write_is_repeated_after_a_while_and_a_conflict_at_once() -> None:
    pace = before_write(None, patched("7"), now=0.0)
    failed = after_failure(pace, now=0.0, conflict=False)
    assert before_write(failed, patched("7"), now=1.0).due == RETRY
    conflicted = after_failure(pace, now=0.0, conflict=True)
    assert before_write(conflicted, patched("8"), now=0.1).due <= 0.1


def test_a_release_at_a_later_second_is_the_same_wish() -> None:
    def released(second: int, version: str = "7") -> Patch:
        wanted = replace(ROUTE, released=f"2026-11-25T12:00:{second:02d}Z", resource_version=version)
        return Patch(replace(ROUTE, resource_version=version), wanted)

    failed = after_failure(before_write(None, released(0), now=0.0), now=0.0, conflict=False)
    assert before_write(failed, released(1), now=1.0).due == RETRY
    undone: WritePace | None = None
    for second in range(8):
        undone = before_write(undone, released(second, str(second)), now=float(second))
        undone = after_success(undone, released(second, str(second)), now=float(second))
    assert undone is not None
    assert undone.backoff.losses


def test_a_writer_that_undoes_it_again_and_again_meets_ever_rarer_writes() -> None:
    pace: WritePace | None = None
    now, times = 0.0, []
    for version in range(2000):
        change = patched(str(version))
        pace = before_write(pace, change, now=now)
        if pace.due <= now:
            pace = after_success(pace, change, now=now)
            times.append(now)
        now += 1.0
    assert times[:4] == [0.0, 1.0, 2.0, 3.0]
    assert len(times) < 20
    assert times[-1] - times[-2] >= 300.0


def test_what_stood_for_a_minute_is_repaired_at_once() -> None:
    pace: WritePace | None = None
    for version in range(6):
        pace = written(patched(str(version)), pace, float(version))
    assert pace is not None
    pace = in_place(in_place(pace, now=10.0), now=75.0)
    assert before_write(pace, patched("99"), now=76.0).due == 76.0


CHANGES = st.sampled_from(["1", "2", "3"]).map(patched)


@given(st.lists(st.tuples(st.floats(0, 100), CHANGES, st.sampled_from(["ok", "no", "conflict", "rest"])), max_size=40))
def test_one_reading_is_never_written_twice_within_the_time_of_a_watch(steps: list[tuple[float, Patch, str]]) -> None:
    pace: WritePace | None = None
    now, written_over, written_at = 0.0, "", -READ
    for wait, change, end in steps:
        now += wait
        if end == "rest":
            pace = in_place(pace, now=now) if pace is not None else None
            continue
        pace = before_write(pace, change, now=now)
        if pace.due > now:
            continue
        if end == "ok":
            assert version_of(change) != written_over or now - written_at >= READ
            written_over, written_at = version_of(change), now
            pace = after_success(pace, change, now=now)
        else:
            pace = after_failure(pace, now=now, conflict=end == "conflict")


def test_a_deletion_wishes_nothing_but_the_end() -> None:
    assert wish_of(Delete(ROUTE)) == wish_of(Delete(replace(ROUTE, headers="v2", resource_version="9")))
    assert wish_of(patched("7")) == wish_of(patched("8"))
