"""Sums of counters: every field counts, and one that ends takes nothing with it."""

from __future__ import annotations

import dataclasses

import pytest

from dnsproxy.answers.counters import Counters, Durations
from dnsproxy.forward.upstream_report import UpstreamReport
from dnsproxy.workers.totals import add_counters, merge_reports

FIELDS = [field.name for field in dataclasses.fields(Counters)]


def counters_with(field: str, number: int) -> Counters:
    counters = Counters()
    before = getattr(counters, field)
    if isinstance(before, Durations):
        before.observe(0.002, times=number)
    elif isinstance(before, list):
        before[3] = number
    else:
        setattr(counters, field, number)
    return counters


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_added(field: str) -> None:
    total = add_counters([counters_with(field, 2), Counters(), counters_with(field, 3)])
    expected = counters_with(field, 5)
    assert dataclasses.replace(total, **{field: None}) == dataclasses.replace(expected, **{field: None})  # type: ignore[arg-type]
    value, wanted = getattr(total, field), getattr(expected, field)
    if isinstance(value, Durations):
        assert value.counts == wanted.counts
        assert value.total == pytest.approx(wanted.total)
    else:
        assert value == wanted


@pytest.mark.parametrize("field", FIELDS)
def test_a_sum_leaves_its_parts_alone(field: str) -> None:
    part = counters_with(field, 2)
    add_counters([part, part])
    assert part == counters_with(field, 2)


def report(name: str, *, failing: bool = False, misses: int = 0, asked: bool = False) -> UpstreamReport:
    return UpstreamReport(name, asked, failing, looping=False, misses=misses, stream_only=False)


def test_an_upstream_is_as_bad_as_its_worst_report_and_stays_in_its_place() -> None:
    merged = merge_reports(
        [
            [report("192.0.2.1:53"), report("192.0.2.2:53", asked=True)],
            [report("192.0.2.1:53", failing=True, misses=4)],
            [],
            [report("192.0.2.3:53"), report("192.0.2.2:53", misses=1)],
        ]
    )
    assert merged == [
        report("192.0.2.1:53", failing=True, misses=4),
        report("192.0.2.2:53", asked=True, misses=1),
        report("192.0.2.3:53"),
    ]
