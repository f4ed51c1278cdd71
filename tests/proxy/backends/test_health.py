"""Causes, and the changes that are logged."""

from __future__ import annotations

import errno

import pytest

from proxy.backends.health import (
    RECOVERY_SECONDS,
    Cause,
    Failure,
    Health,
    Transition,
    cause_of_connect,
    describe,
)

REFUSED = Failure(Cause.CONNECTION_REFUSED, "Connection refused")
TIMEOUT = Failure(Cause.TIMEOUT, "Connection timed out")


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (errno.ECONNREFUSED, Cause.CONNECTION_REFUSED),
        (errno.ETIMEDOUT, Cause.TIMEOUT),
        (errno.EHOSTUNREACH, Cause.UNREACHABLE),
        (errno.ENETUNREACH, Cause.UNREACHABLE),
        (errno.EACCES, Cause.UNREACHABLE),
        (errno.ECONNRESET, Cause.UNREACHABLE),
        (0, Cause.UNREACHABLE),
    ],
    ids=lambda value: errno.errorcode.get(value, str(value)),
)
def test_a_failed_connect_has_its_cause(number: int, cause: Cause) -> None:
    assert cause_of_connect(number) is cause


def test_a_failure_is_logged_once_even_if_its_cause_changes() -> None:
    health = Health()
    assert health.observe(REFUSED, now=1) is Transition.FAILED
    assert health.observe(TIMEOUT, now=2) is None
    assert health.observe(REFUSED, now=3) is None
    assert health.failure == REFUSED


def test_a_first_success_is_not_logged() -> None:
    assert Health().observe(None, now=1) is None


def test_a_recovery_is_logged_once_and_a_new_failure_again() -> None:
    health = Health()
    health.observe(REFUSED, now=1)
    later = 1 + RECOVERY_SECONDS
    assert health.observe(None, now=later) is Transition.RECOVERED
    assert health.failure is None
    assert health.observe(None, now=later + 1) is None
    assert health.observe(TIMEOUT, now=later + 2) is Transition.FAILED


def test_a_backend_that_fails_now_and_then_is_logged_once() -> None:
    health = Health()
    said = [health.observe(REFUSED if turn % 10 == 0 else None, now=turn / 10) for turn in range(1000)]
    assert [one for one in said if one is not None] == [Transition.FAILED]


@pytest.mark.parametrize(
    ("observations", "fresh"),
    [
        pytest.param([], False, id="nothing seen"),
        pytest.param([(None, 1.0)], True, id="success"),
        pytest.param([(None, 1.0), (REFUSED, 2.0)], False, id="failure after it"),
        pytest.param([(REFUSED, 1.0), (None, 2.0)], True, id="success after a failure"),
        pytest.param([(None, -100.0)], False, id="success long ago"),
    ],
)
def test_a_success_is_fresh_for_a_while(observations: list[tuple[Failure | None, float]], fresh: bool) -> None:
    health = Health()
    for failure, now in observations:
        health.observe(failure, now=now)
    assert health.succeeded_within(5.0, now=3.0) is fresh


def test_the_reason_names_cause_backend_and_detail() -> None:
    assert describe([("example.org:80", REFUSED)]) == (
        "backend unreachable (connection-refused): example.org:80: Connection refused"
    )
    assert describe([]) == ""


def test_the_tokens_are_those_that_people_know() -> None:
    known = {"dns-nxdomain", "dns-timeout", "dns-error", "connection-refused", "timeout", "unreachable"}
    ours = {"own-listener", "no-endpoints", "not-synced"}
    assert {str(cause) for cause in Cause} == known | ours
