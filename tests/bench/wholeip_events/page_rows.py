"""The rows of the page from the JSON of `python -m tests.bench.wholeip_events`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from docs.speed.run import Row
from tests.bench.kit.page_rows import OURS, make_row, share_of
from tests.bench.wholeip_events.report import GOAL


def make_page_rows(content: Mapping[str, Any]) -> Iterator[Row]:
    """From the request that changes a pod's address to the rule in the kernel."""
    values = content["from_request"]
    names = {0.5: "half of them", 0.99: "99 of 100", 1.0: "all"}
    named = {f"{OURS}, {words}": share for share, words in names.items()}
    yield from make_row(
        *("wholeip-events", "kernel"),
        title="From a changed pod address to the rule in the kernel",
        about=f"{len(values)} changes among {content['services']:,} Services; time within which it is there",
        unit="ms",
        better="lower",
        found=[(name, share_of(values, share)) for name, share in named.items()],
        rounds=1,
        factor=1000.0,
        ours=list(named),
        goal=GOAL * 1000,
    )
