"""The rows of the page from the JSON of `python -m tests.bench.fleet`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from docs.speed.run import Row
from tests.bench.fleet import report
from tests.bench.kit.page_rows import make_row

_SHOWN: Final = {
    (report.ROLLOUT, report.ALL_HAVE): "All secondaries transfer the whole zone at once",
    (report.ROLLOUT, report.CPU): "Processor time of the primary for a whole transfer",
    (report.ROLLOUT, report.AFTER): "Memory of the primary when all have it (PSS)",
    (report.ONE, report.AXFR): "One whole transfer (AXFR), median",
    (report.ONE, report.IXFR): "One transfer of a change (IXFR), median",
    (report.CHANGE, report.HAS_P99): "A change, until 99 of 100 secondaries have it",
}


def make_page_rows(content: Mapping[str, Any]) -> Iterator[Row]:
    """A row for each figure that is shown, with all primaries."""
    # A line for each primary and round: `bind: why`.
    faults = {label: why for label, _, why in (line.partition(": ") for line in content["faults"])}
    about = f"{content['names']:,} names, {content['secondaries']:,} secondaries"
    for row in content["rows"]:
        key = row["workload"], row["what"]
        if key in _SHOWN:
            yield from make_row(
                *("fleet", *key),
                title=_SHOWN[key],
                about=about,
                unit=row["unit"],
                better="lower",
                found=row["figures"].items(),
                rounds=content["rounds"],
                faults=faults,
            )
