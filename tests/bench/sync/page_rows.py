"""The rows of the page from the JSON of `python -m tests.bench.sync`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from docs.speed.run import Row
from tests.bench.kit.page_rows import OURS, make_row
from tests.bench.sync import report

_INFORMER: Final = "kubernetes informer"
_SHOWN: Final = {
    report.READY: ("From the start to all names, {size} Ingresses", f"{_INFORMER}: start to synced", ""),
    report.RESIDENT: ("Resident memory with {size} Ingresses", f"{_INFORMER}: resident", ""),
    report.ANSWERED_P50: (
        "From an Ingress created to its answer, median, {size} Ingresses",
        "",
        "from the API server's yes on, 10 a second",
    ),
    report.ANSWERED_P99: ("The same, 99th percentile, {size} Ingresses", "", ""),
    report.SYNC_P99: ("Answers while {size} Ingresses are read", "", "99 of 100 are faster"),
    report.CHANGES_P99: ("Answers during 1,000 changes a second, {size} Ingresses", "", "99 of 100 are faster"),
}


def make_page_rows(content: Mapping[str, Any]) -> Iterator[Row]:
    """Ours, beside the informer of the kubernetes package where it does the same."""
    rows = {(row["size"], row["what"]): row for row in content["rows"] if row["figure"]}
    for size in dict.fromkeys(size for size, _ in rows):
        for what, (title, beside, about) in _SHOWN.items():
            row = rows.get((size, what))
            if row is None:
                continue
            other = rows.get((size, beside))
            yield from make_row(
                *("sync", f"{size}", what),
                title=title.format(size=f"{size:,}"),
                about=about,
                unit=row["unit"],
                better="lower",
                found=[("ours", row["figure"]), *([(_INFORMER, other["figure"])] if other else [])],
                rounds=content["rounds"],
                ours=[OURS],
                goal=row["goal"],
            )


def find_faults(content: Mapping[str, Any]) -> Iterator[str]:
    """Measurements that failed; their figures have no row that could say so."""
    return (f"{row['size']:,}, {row['what']}: {row['fault']}" for row in content["rows"] if row["fault"])
