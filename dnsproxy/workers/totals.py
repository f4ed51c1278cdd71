"""Counters of several processes as one: of those that live, and of those that have ended.

The law: no sum ever decreases. A worker that was killed took its counts since its last report with it. Pure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from dnsproxy.answers.counters import Counters, Durations
from dnsproxy.forward.upstream_report import UpstreamReport


def add_counters(all_counters: Iterable[Counters]) -> Counters:
    """The sums of all fields."""
    total = Counters()
    for counters in all_counters:
        for field in dataclasses.fields(Counters):
            before, more = getattr(total, field.name), getattr(counters, field.name)
            if isinstance(before, Durations):
                before.counts = [one + other for one, other in zip(before.counts, more.counts, strict=True)]
                before.total += more.total
            elif isinstance(before, list):
                setattr(total, field.name, [one + other for one, other in zip(before, more, strict=True)])
            else:
                setattr(total, field.name, before + more)
    return total


def merge_reports(reports: Iterable[Iterable[UpstreamReport]]) -> list[UpstreamReport]:
    """One report per upstream, in the order of the first list: the worst that any process says."""
    merged: dict[str, UpstreamReport] = {}
    for one in (one for each in reports for one in each):
        known = merged.get(one.name)
        merged[one.name] = one if known is None else _worse(known, one)
    return list(merged.values())


def _worse(one: UpstreamReport, other: UpstreamReport) -> UpstreamReport:
    return UpstreamReport(
        one.name,
        asked=one.asked or other.asked,
        failing=one.failing or other.failing,
        looping=one.looping or other.looping,
        misses=max(one.misses, other.misses),
        stream_only=one.stream_only,
    )
