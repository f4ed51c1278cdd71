"""The rows of the page from the JSON of `python -m tests.bench.wholeip`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from docs.speed.run import Better, Row
from tests.bench.kit.page_rows import OURS, alone, make_row, share_of, spread_of
from tests.bench.wholeip.report import RESYNC_GOAL

_WAYS: Final = {
    "ours": f"{OURS}, 1 mapping",
    "ours 10,000": f"{OURS}, 10,000 mappings",
    "stateless": "cozy-proxy's rules",
    "tracked": "conntrack, no mapping",
    "bare": "no rules",
}
_OURS: Final = (_WAYS["ours"], _WAYS["ours 10,000"])
_TRAFFIC: Final[Mapping[str, tuple[str, str, str, Better]]] = {
    "datagram_cpu": ("Processor time of a datagram", "through the node into the pod", "µs", "lower"),
    "flow_cpu": ("Processor time of a new flow", "a connection that the pod refuses", "µs", "lower"),
    "gigabits": ("Throughput of one TCP connection", "through the node into the pod", "Gbit/s", "higher"),
}


_RESYNC: Final = {
    "quiet": "no comparison",
    "clean": "during a comparison",
    "repairing": "during a comparison that repairs",
}


def make_page_rows(content: Mapping[str, Any]) -> Iterator[Row]:
    """Traffic by way, and the times until rules are the kernel's."""
    ways = {one["way"]: one for one in content["traffic"]}
    for figure, (title, about, unit, better) in _TRAFFIC.items():
        yield from make_row(
            *("wholeip", figure),
            title=title,
            about=about,
            unit=unit,
            better=better,
            found=[(name, spread_of(ways[way][figure])) for way, name in _WAYS.items() if way in ways],
            rounds=content["rounds"],
            ours=_OURS,
        )
    applied = {f"{one['mappings']:,} mappings": one for one in content["applied"]}
    if applied:
        how: dict[str, Any] = {"better": "lower", "rounds": 1, "ours": list(applied)}
        for share, words in ((0.5, "median"), (0.99, "99th percentile")):
            found = [(name, share_of(one["packet"], share)) for name, one in applied.items()]
            title = f"One mapping more, until a packet arrives, {words}"
            yield from make_row(
                "wholeip", "packet", f"{share}", title=title, unit="ms", found=found, factor=1000.0, **how
            )
        found = [(name, alone(one["whole"])) for name, one in applied.items()]
        yield from make_row("wholeip", "whole", title="The whole table into the kernel", unit="s", found=found, **how)
    yield from _resync_rows(content.get("resync"))


def _resync_rows(resync: Mapping[str, Any] | None) -> Iterator[Row]:
    if resync is None:
        return
    for share, words in ((0.5, "median"), (0.99, "99th percentile")):
        yield from make_row(
            *("wholeip", "resync", f"{share}"),
            title=f"A change beside a comparison with the kernel, {words}",
            about=f"{resync['mappings']:,} mappings; from the changed object to the kernel's answer",
            unit="ms",
            better="lower",
            found=[(name, share_of(resync[kind], share)) for kind, name in _RESYNC.items()],
            rounds=1,
            factor=1000.0,
            ours=list(_RESYNC.values()),
            goal=RESYNC_GOAL * 1000 if share > 0.5 else None,
        )
