"""The outcomes: each row is as its last verdict says. Those of real verdicts are in test_registry.py."""

from __future__ import annotations

from typing import Final

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames import outcomes as outcomes_module
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.outcomes import Outcomes, Row
from dnsproxy.hostnames.verdict import Excluded, Unverified, Verdict
from tests.kit.rows import failing

ROW: Final[Row] = ("app.example.org", Reach.NAME)
CLAIM: Final = Claim("app.example.org", Reach.NAME, Origin("Ingress", "app", "shop", "2026-01-01T00:00:00Z"))
EXCLUDED: Final = Excluded(CLAIM, "it is denied (--deny)")

DENIED: Final = Verdict(None, (), (EXCLUDED,))
WAITING: Final = Verdict(None, (), (EXCLUDED,), waits=True)
DOUBTED: Final = Verdict(CLAIM, ("192.0.2.1",), (), doubt="elsewhere")
ANSWERED: Final = Verdict(CLAIM, ("192.0.2.1",), ())


@pytest.mark.parametrize(
    ("verdict", "excluded", "unverified", "waiting"),
    [
        pytest.param(DENIED, [EXCLUDED], [], 0, id="denied"),
        pytest.param(WAITING, [EXCLUDED], [], 1, id="without an address"),
        pytest.param(DOUBTED, [], [Unverified(CLAIM, "elsewhere")], 0, id="unverified"),
        pytest.param(Verdict(None, (), (), doubt="elsewhere"), [], [], 0, id="a doubt without a winner"),
        pytest.param(ANSWERED, [], [], 0, id="answered"),
    ],
)
def test_a_row_has_the_outcome_of_its_last_verdict(
    verdict: Verdict, excluded: list[Excluded], unverified: list[Unverified], waiting: int
) -> None:
    def check(before: Verdict | None) -> None:
        outcomes = Outcomes()
        if before is not None:
            outcomes.note(ROW, before)
        outcomes.note(ROW, verdict)
        assert (outcomes.excluded(), outcomes.unverified(), outcomes.waiting) == (excluded, unverified, waiting)
        assert outcomes.excluded_rows() == list(outcomes.excluded_rows_now()) == [ROW] * len(excluded)
        assert outcomes.unverified_rows() == list(outcomes.unverified_rows_now()) == [ROW] * len(unverified)
        assert outcomes.counts == (len(excluded), len(unverified))
        assert outcomes.excluded_at(ROW) == tuple(excluded)
        assert outcomes.unverified_at(ROW) == next(iter(unverified), None)

    assert failing(check, [None, DENIED, WAITING, DOUBTED, ANSWERED]) == []


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
