"""Which failed look-ups cost a backend its last addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.health import Cause
from proxy.backends.last_addresses import CONFIRM_SECONDS, Decision, LastAddresses

GONE, SERVFAIL, SILENT = Cause.DNS_NXDOMAIN, Cause.DNS_ERROR, Cause.DNS_TIMEOUT
LATER = CONFIRM_SECONDS


@pytest.mark.parametrize(
    ("answers", "decision"),
    [
        pytest.param([(0, SERVFAIL)], Decision.KEEP_UNRESOLVED, id="SERVFAIL"),
        pytest.param([(0, SILENT), (9 * LATER, SILENT)], Decision.KEEP_UNRESOLVED, id="a long time without answers"),
        pytest.param([(0, GONE)], Decision.KEEP_UNCONFIRMED, id="vanished once"),
        pytest.param([(0, GONE), (LATER / 2, GONE)], Decision.KEEP_UNCONFIRMED, id="twice, too soon"),
        pytest.param([(0, GONE), (LATER, GONE)], Decision.DROP, id="twice"),
        pytest.param([(0, GONE), (LATER, SERVFAIL)], Decision.KEEP_UNRESOLVED, id="SERVFAIL confirms nothing"),
        pytest.param([(0, GONE), (1, SERVFAIL), (LATER, GONE)], Decision.DROP, id="SERVFAIL refutes nothing"),
        pytest.param([(0, GONE), (1, None), (LATER, GONE)], Decision.KEEP_UNCONFIRMED, id="found in between"),
        pytest.param([(0, Cause.NO_ENDPOINTS)], Decision.DROP, id="a Service without endpoints"),
    ],
)
def test_the_last_addresses_are_kept_or_dropped(answers: list[tuple[float, Cause | None]], decision: Decision) -> None:
    last, judged = LastAddresses(), None
    for at, cause in answers:
        if cause is None:
            last.found()
        else:
            judged = last.judge(cause, now=at)
    assert judged is decision


@given(st.lists(st.sampled_from([GONE, SERVFAIL, SILENT]), max_size=30))
def test_a_name_that_stays_away_is_dropped_in_bounded_time(between: list[Cause]) -> None:
    last = LastAddresses()
    last.judge(GONE, now=0)
    for cause in between:
        assert last.judge(cause, now=CONFIRM_SECONDS / 2) is not Decision.DROP
    assert last.judge(GONE, now=CONFIRM_SECONDS) is Decision.DROP
