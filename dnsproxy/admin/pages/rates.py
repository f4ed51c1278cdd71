"""The charts of a DNS server, and the counters that they read.

The law: pure; a reading is ten numbers and takes microseconds, because it is taken whether or not a page is open.
Tested in test_overview.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dnsproxy.answers.counters import Counters
from sidecar.admin.page.history import Chart, level, mean, rate

_MILLISECONDS: Final = 1_000

CHARTS: Final = (
    Chart(
        "queries",
        "Replies",
        "a second",
        (
            rate("table", "from the table", "table"),
            rate("upstream", "from an upstream", "upstream"),
            rate("own", "refused or failed", "own"),
        ),
    ),
    Chart(
        "times",
        "Mean time to a reply",
        "milliseconds",
        (
            mean("table-time", "from the table", "table seconds", "table timed", scale=_MILLISECONDS),
            mean("upstream-time", "from an upstream", "upstream seconds", "upstream timed", scale=_MILLISECONDS),
        ),
    ),
    Chart(
        "forwarding",
        "Forwarding",
        "queries",
        (
            level("outstanding", "waiting now", "outstanding"),
            rate("retries", "asked again, a second", "retries"),
            rate("timeouts", "unanswered, a second", "timeouts"),
        ),
    ),
)


def read_counters(counters: Counters, *, outstanding: int) -> Mapping[str, float]:
    """One reading, for History.take."""
    return {
        "table": sum(counters.table_by_rcode),
        "upstream": sum(counters.upstream_by_rcode),
        "own": sum(counters.own_by_rcode),
        "table seconds": counters.table_seconds.total,
        "table timed": sum(counters.table_seconds.counts),
        "upstream seconds": counters.forward_seconds.total,
        "upstream timed": sum(counters.forward_seconds.counts),
        "outstanding": outstanding,
        "retries": counters.forward_retries,
        "timeouts": counters.forward_timeouts,
    }
