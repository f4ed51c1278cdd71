"""Counters: each duration counts in its bucket, and each code has a place."""

from __future__ import annotations

import pytest

from dnsproxy.answers.counters import BUCKETS, Counters, Durations
from dnsproxy.dns.wire import Rcode


@pytest.mark.parametrize("index", range(len(BUCKETS)))
def test_a_duration_counts_below_its_bound_and_at_it(index: int) -> None:
    durations = Durations()
    durations.observe(BUCKETS[index])
    durations.observe(BUCKETS[index] * 0.99)
    assert durations.counts[index] == 2
    assert sum(durations.counts) == 2


def test_what_is_longer_than_every_bound_counts_last() -> None:
    durations = Durations()
    durations.observe(BUCKETS[-1] * 2, times=3)
    assert durations.counts[-1] == 3
    assert durations.total == BUCKETS[-1] * 6


def test_a_batch_counts_as_often_as_it_has_requests() -> None:
    durations = Durations()
    durations.observe(0.0, times=64)
    assert durations.counts[0] == 64
    assert durations.total == 0


@pytest.mark.parametrize("rcode", Rcode)
def test_there_is_a_place_for_every_code(rcode: Rcode) -> None:
    counters = Counters()
    for places in (counters.table_by_rcode, counters.own_by_rcode, counters.upstream_by_rcode):
        places[rcode] += 1
        assert places[rcode] == 1
    assert Counters().own_by_rcode[rcode] == 0
