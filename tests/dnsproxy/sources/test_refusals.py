"""What is reported of the refusals of one object."""

from __future__ import annotations

import pytest

from dnsproxy.hostnames.claims import Origin, Rejection
from dnsproxy.sources.refusals import Refusal, rejection_of, rejections_for

ORIGIN = Origin("HTTPRoute", "app", "web")


def test_each_hostname_has_a_rejection_once() -> None:
    found = rejections_for(ORIGIN, ["b.org", "a.org", "b.org"], [Refusal("it is gone")])
    assert found == [Rejection(ORIGIN, "b.org: it is gone"), Rejection(ORIGIN, "a.org: it is gone")]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(1, "r0", id="one"),
        pytest.param(3, "r0; r1; r2", id="as many as are shown"),
        pytest.param(100_000, "r0; r1; r2; and 99997 more", id="many"),
    ],
)
def test_a_reason_is_short_and_says_each_once(count: int, expected: str) -> None:
    refusals = [Refusal(f"r{number}") for number in range(count)]
    assert rejection_of(ORIGIN, [*refusals, *refusals]).reason == expected


@pytest.mark.parametrize("others", [[], [True], [False], [True, False]], ids=str)
def test_a_rejection_is_deliberate_if_every_refusal_is(others: list[bool]) -> None:
    refusals = [Refusal("r", True), *(Refusal("s", one) for one in others)]
    assert rejection_of(ORIGIN, refusals).deliberate is all(others)
    assert rejections_for(ORIGIN, ["a.org"], refusals)[0].deliberate is all(others)
