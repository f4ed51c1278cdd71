from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.soak.figures import FIGURES, Sample, judge_samples
from tests.soak.report import find_problems, format_report, to_json
from tests.soak.run import Found, Options
from tests.soak.tally import Kind, Result

SAMPLE = {figure.name: 10.0 for figure in FIGURES}


def found(*, samples: list[Sample] | None = None) -> Found:
    made = Found(Options(seconds=60, rate=100), samples=[SAMPLE] * 40 if samples is None else samples)
    made.before = made.after = SAMPLE
    made.status = 0
    for _ in range(1_000):
        made.tally.note(Kind.TABLE, Result.RIGHT)
    return made


def growing(name: str) -> list[Sample]:
    return [{**SAMPLE, name: 10.0 + 10 * number} for number in range(40)]


def problems(of: Found) -> list[str]:
    return find_problems(of, judge_samples(of.samples))


def test_a_flat_run_has_no_problem() -> None:
    assert problems(found()) == []


@pytest.mark.parametrize("name", SAMPLE)
def test_each_figure_that_grows_is_named(name: str) -> None:
    (problem,) = problems(found(samples=growing(name)))
    assert problem.startswith(f"{name} grew")


def lose(of: Found, count: int) -> None:
    for _ in range(count):
        of.tally.note(Kind.TABLE, Result.LOST)


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        pytest.param(lambda of: setattr(of, "gone", "refused"), "the server had ended: refused", id="gone"),
        pytest.param(lambda of: setattr(of, "status", 1), "status 1", id="exit status"),
        pytest.param(lambda of: setattr(of, "status", -9), "status -9", id="killed"),
        pytest.param(
            lambda of: setattr(of, "metrics", {"dnsproxy_dns_failures_total": 2.0}), "2 queries", id="failures"
        ),
        pytest.param(lambda of: of.tally.note(Kind.STREAM, Result.WRONG, "no address"), "no address", id="wrong"),
        pytest.param(lambda of: lose(of, 20), "20 of 1020", id="lost"),
    ],
)
def test_what_else_goes_wrong_is_a_problem(spoil: Callable[[Found], None], word: str) -> None:
    made = found()
    spoil(made)
    assert word in "\n".join(problems(made))


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        pytest.param(Kind.OUTSIDE, Result.FAILED, id="an upstream's failure"),
        pytest.param(Kind.OUTSIDE, Result.LOST, id="a lost name outside"),
        pytest.param(Kind.TABLE, Result.LOST, id="one lost in a thousand"),
    ],
)
def test_what_is_not_the_servers_fault_is_no_problem(kind: Kind, result: Result) -> None:
    made = found()
    made.tally.note(kind, result)
    assert problems(made) == []


def test_many_wrong_replies_are_counted_and_some_are_shown() -> None:
    made = found()
    for number in range(500):
        made.tally.note(Kind.TABLE, Result.WRONG, f"fault {number}")
    shown = problems(made)
    assert shown[0].startswith("500 wrong")
    assert 1 < len(shown) < 50


def test_a_missing_figure_is_not_judged_and_shown_as_missing() -> None:
    untold = {name: value for name, value in SAMPLE.items() if name != "tasks"}
    made = found(samples=[untold] * 40)
    report = format_report(made, judge_samples(made.samples))
    (line,) = [line for line in report.splitlines() if line.startswith("tasks")]
    assert line.endswith("missing")
    assert problems(made) == []


def test_the_report_has_every_figure_and_the_verdict() -> None:
    made = found(samples=growing("memory"))
    report = format_report(made, judge_samples(made.samples))
    assert all(f"\n{figure.name} " in f"\n{report}" for figure in FIGURES)
    assert "GROWS" in report
    assert "PROBLEM: memory grew" in report


def test_the_json_holds_all_samples_and_verdicts() -> None:
    made = found(samples=growing("tasks"))
    content = json.loads(json.dumps(to_json(made, judge_samples(made.samples), cpus=2)))
    assert len(content["samples"]) == 40
    assert [row["name"] for row in content["figures"] if not row["flat"]] == ["tasks"]
    assert content["questions"]["names of the table"]["right"] == 1_000
    assert (content["cpus"], content["seconds"]) == (2, 60)
