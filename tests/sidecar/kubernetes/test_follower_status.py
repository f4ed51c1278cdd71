"""The status of a kind in several namespaces, joined from theirs."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound, ServerTrouble, TimedOut
from sidecar.kubernetes.follower_status import FollowerState, FollowerStatus, join_statuses

COUNTS = ("objects", "lists", "pages", "watches", "events", "bookmarks", "unreadable")
TIMES = ("contact", "contact_time", "synced_time")

NUMBERS = st.integers(0, 9)
SECONDS = st.none() | st.floats(0, 9)
STATUSES = st.builds(
    FollowerStatus,
    kind=st.just("Ingress in x"),
    state=st.sampled_from(FollowerState),
    error=st.none() | st.builds(Forbidden, st.just("403: no")) | st.builds(TimedOut, st.just("no answer")),
    synced=st.booleans(),
    doubted=st.booleans(),
    errors=st.builds(Counter, st.dictionaries(st.sampled_from("ab"), st.integers(1, 9))),
    **dict.fromkeys(COUNTS, NUMBERS),
    **dict.fromkeys(TIMES, SECONDS),
)


def joined(**parts: FollowerStatus) -> FollowerStatus:
    status = FollowerStatus("Ingress")
    join_statuses(status, parts)
    return status


def failing(error: ApiError, *, synced: bool = True) -> FollowerStatus:
    return FollowerStatus(state=FollowerState.RETRYING, error=error, synced=synced)


WELL = FollowerStatus(state=FollowerState.WATCHING, synced=True)


@given(st.lists(STATUSES, min_size=1, max_size=4))
def test_a_joined_status_has_the_sums_and_hides_no_failure(parts: list[FollowerStatus]) -> None:
    status = joined(**{f"ns{number}": part for number, part in enumerate(parts)})
    assert status.kind == "Ingress"
    assert all(getattr(status, name) == sum(getattr(one, name) for one in parts) for name in COUNTS)
    assert status.errors.total() == sum(one.errors.total() for one in parts)
    assert status.synced == all(one.synced for one in parts)
    assert status.doubted == any(one.doubted for one in parts)
    assert (status.error is None) == all(one.error is None for one in parts)
    assert (status.state is FollowerState.WATCHING) == all(one.state is FollowerState.WATCHING for one in parts)
    known = [one.contact for one in parts if one.contact is not None]
    assert status.contact == (min(known) if known else None)


@given(STATUSES)
def test_one_namespace_joins_to_itself(part: FollowerStatus) -> None:
    status = joined(shop=part)
    for one in fields(FollowerStatus):
        if one.name in {"kind", "error"} or (one.name == "synced_time" and not part.synced):
            continue
        assert getattr(status, one.name) == getattr(part, one.name), one.name
    assert type(status.error) is type(part.error)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param({"a": WELL, "b": WELL}, "watching", id="none fails"),
        pytest.param({"a": WELL, "b": FollowerStatus()}, "syncing", id="one reads its list"),
        pytest.param(
            {"a": WELL, "b": failing(Forbidden("403: no"))}, "retrying: namespace b: 403: no", id="one is forbidden"
        ),
        pytest.param(
            {"a": failing(Forbidden("403: a")), "b": failing(Forbidden("403: b"))},
            "retrying: namespaces a, b: 403: a",
            id="two are",
        ),
        pytest.param(
            {name: failing(Forbidden(f"403: {name}")) for name in "abcde"},
            "retrying: namespaces a, b, c and 2 others: 403: a",
            id="many are",
        ),
        pytest.param(
            {"a": failing(Forbidden("403: no")), "b": failing(ServerTrouble("503: busy"))},
            "retrying: namespace b: 503: busy",
            id="trouble is worse than a missing right",
        ),
        pytest.param(
            {"a": failing(ServerTrouble("503: busy")), "b": failing(Forbidden("403: no"), synced=False)},
            "retrying: namespace b: 403: no",
            id="an unread namespace is worse than trouble",
        ),
    ],
)
def test_the_description_names_the_namespaces(parts: dict[str, FollowerStatus], expected: str) -> None:
    assert joined(**parts).describe() == expected


def test_a_joined_error_is_judged_like_the_original() -> None:
    assert joined(a=WELL, b=failing(NotFound("404: no"))).absent
    error = joined(a=failing(TimedOut("no answer", retry_after=7.0))).error
    assert isinstance(error, TimedOut)
    assert (error.cause, error.retry_after) == ("timeout", 7.0)
