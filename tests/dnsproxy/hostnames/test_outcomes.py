"""The outcomes: each row is as its last verdict says. Those of real verdicts are in test_registry.py."""

from __future__ import annotations

from typing import Final

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames import outcomes as outcomes_module
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.outcomes import Outcomes, Row
from dnsproxy.hostnames.verdict import Excluded, LedElsewhere, Verdict
from tests.kit.rows import failing

ROW: Final[Row] = ("app.example.org", Reach.NAME)
CLAIM: Final = Claim("app.example.org", Reach.NAME, Origin("Ingress", "app", "shop", "2026-01-01T00:00:00Z"))
EXCLUDED: Final = Excluded(CLAIM, "it is denied (--deny)")

DENIED: Final = Verdict(None, (), (EXCLUDED,))
WAITING: Final = Verdict(None, (), (EXCLUDED,), waits=True)
ANSWERED: Final = Verdict(CLAIM, ("192.0.2.1",), ())
ELSEWHERE: Final = LedElsewhere("app.example.org", CLAIM, ("198.51.100.9",))
BELOW: Final = LedElsewhere("mail.example.org", CLAIM, ("198.51.100.9",), answered=True)


@pytest.mark.parametrize(
    ("verdict", "excluded", "waiting"),
    [
        pytest.param(DENIED, [EXCLUDED], 0, id="denied"),
        pytest.param(WAITING, [EXCLUDED], 1, id="without an address"),
        pytest.param(ANSWERED, [], 0, id="answered"),
    ],
)
def test_a_row_has_the_outcome_of_its_last_verdict(verdict: Verdict, excluded: list[Excluded], waiting: int) -> None:
    def check(before: Verdict | None) -> None:
        outcomes = Outcomes()
        if before is not None:
            outcomes.note(ROW, before)
        outcomes.note(ROW, verdict)
        assert (outcomes.excluded(), outcomes.waiting) == (excluded, waiting)
        assert outcomes.excluded_rows() == list(outcomes.excluded_rows_now()) == [ROW] * len(excluded)
        assert outcomes.counts == (len(excluded), 0)
        assert outcomes.excluded_at(ROW) == tuple(excluded)

    assert failing(check, [None, DENIED, WAITING, ANSWERED]) == []


@pytest.mark.parametrize("before", [[], [BELOW], [BELOW, ELSEWHERE]], ids=len)
@pytest.mark.parametrize("found", [[], [ELSEWHERE], [BELOW, ELSEWHERE]], ids=len)
def test_the_names_that_lead_elsewhere_are_those_of_the_last_look(
    before: list[LedElsewhere], found: list[LedElsewhere]
) -> None:
    outcomes = Outcomes()
    outcomes.set_elsewhere(before)
    outcomes.set_elsewhere(iter(found))
    rows = [(one.hostname, Reach.NAME) for one in found]
    assert outcomes.elsewhere() == [outcomes.elsewhere_at(row) for row in rows] == found
    assert outcomes.elsewhere_rows() == list(outcomes.elsewhere_rows_now()) == rows
    assert (outcomes.counts, outcomes.led) == ((0, len(found)), 2)
    assert outcomes.elsewhere_at(("other.example.org", Reach.NAME)) is None
    # A wildcard leads nowhere: names below it do, each for itself.
    assert outcomes.elsewhere_at(("*.example.org", Reach.ONE_LABEL)) is None


def test_where_a_name_leads_is_no_verdict_and_stays_when_its_row_is_judged() -> None:
    outcomes = Outcomes()
    outcomes.set_elsewhere([ELSEWHERE])
    assert outcomes.judged == 0
    outcomes.note(ROW, ANSWERED)
    assert (outcomes.elsewhere_at(ROW), outcomes.judged, outcomes.led) == (ELSEWHERE, 1, 1)


def test_every_verdict_is_counted_and_another_row_is_left_as_it_was() -> None:
    outcomes = Outcomes()
    outcomes.note(ROW, DENIED)
    outcomes.note(("*.example.org", Reach.ONE_LABEL), ANSWERED)
    outcomes.note(("*.example.org", Reach.ONE_LABEL), ANSWERED)
    assert (outcomes.judged, outcomes.excluded_rows()) == (3, [ROW])


def test_readers_learn_independently_what_was_judged_since_they_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes_module, "MOST_FRESH", 3)
    outcomes = Outcomes()
    assert outcomes.judged_since(0) == set()
    for number, name in enumerate("aabc"):
        outcomes.note((name, Reach.NAME), ANSWERED)
        assert outcomes.judged_since(number) == {name}
    assert outcomes.judged_since(1) == {"a", "b", "c"}
    assert outcomes.judged_since(1) == {"a", "b", "c"}
    assert outcomes.judged_since(4) == set()
    assert outcomes.judged_since(0) is None
