"""A verdict is compared with the expected one in each part; an expectation that nothing can fail would be a defect."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.kit.doctor_stage.states import Expected, Verdict, differences, healthy, not_known, wrong

STEP: Final = {"text": "answer with a relay", "lines": ["kubectl apply -k deploy", "dnsproxy install"]}
PROBLEM: Final = {
    "id": "short-circuited",
    "severity": "problem",
    "text": "pods are short-circuited",
    "hosts": ["app.example.org"],
    "evidence": ["203.0.113.10:80 (HTTP): plain closed"],
    "steps": [STEP],
}
FINE: Final = {
    "id": "header-required",
    "severity": "ok",
    "text": "the controller requires it",
    "evidence": ["10.96.0.80:80 (HTTP): v1 answered"],
}
UNSEEN: Final = {"what": "list services", "why": "forbidden", "steps": [{"text": "look", "lines": ["dnsproxy doctor"]}]}


def verdict(status: int, *findings: dict[str, Any], unseen: tuple[dict[str, Any], ...] = ()) -> Verdict:
    return Verdict(status, {"findings": list(findings), "unseen": list(unseen)})


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (verdict(0, FINE), healthy("header-required", untold=("short-circuited",), no_advice=("install",))),
        (
            verdict(1, PROBLEM, FINE),
            wrong("short-circuited", advice=("with a relay", "apply -k deploy"), evidence=("203.0.113.10",)),
        ),
        (verdict(3, unseen=(UNSEEN,)), not_known("list services: forbidden", advice=("dnsproxy doctor",))),
    ],
    ids=["healthy", "wrong", "not known"],
)
def test_the_expected_verdict_has_no_differences(seen: Verdict, expected: Expected) -> None:
    assert differences(seen, expected) == []


@pytest.mark.parametrize(
    ("seen", "expected", "part"),
    [
        (verdict(3), healthy(), "status 3, not 0"),
        (verdict(1, PROBLEM), wrong(), "wrong: ['short-circuited'], not []"),
        (verdict(1), wrong("short-circuited"), "wrong: [], not ['short-circuited']"),
        (verdict(1, FINE), wrong("header-required"), "wrong: [], not ['header-required']"),
        (verdict(0), healthy("reached"), "no finding reached"),
        (verdict(0, FINE), healthy(untold=("header-required",)), "a finding header-required"),
        (verdict(1, PROBLEM), wrong("short-circuited", advice=("DNSPROXY_TARGET_FOR",)), "no advice with"),
        (
            verdict(1, PROBLEM),
            wrong("short-circuited", advice=("dnsproxy install", "apply -k deploy")),
            "advice: 'apply -k deploy' before 'dnsproxy install'",
        ),
        (verdict(1, PROBLEM), wrong("short-circuited", no_advice=("apply",)), "advice: kubectl apply"),
        (verdict(1, PROBLEM), wrong("short-circuited", no_advice=("with a relay",)), "advice: answer with a relay"),
        (verdict(3, unseen=(UNSEEN,)), not_known(no_advice=("doctor",)), "advice: dnsproxy doctor"),
        (verdict(3, unseen=(UNSEEN,)), not_known("list ingresses"), "no unseen with"),
        (verdict(1, PROBLEM), wrong("short-circuited", said=("other.example.org",)), "no text with"),
        (verdict(1, PROBLEM), wrong("short-circuited", unsaid=("pods are",)), "text: pods are"),
        # The evidence of a good finding is none for a bad one.
        (verdict(1, PROBLEM, FINE), wrong("short-circuited", evidence=("10.96.0.80",)), "no evidence with"),
        (Verdict(1, {}, "Traceback"), healthy(), "status 1, not 0 Traceback"),
    ],
)
def test_each_part_that_differs_is_named(seen: Verdict, expected: Expected, part: str) -> None:
    (difference,) = differences(seen, expected)
    assert difference.startswith(part)
