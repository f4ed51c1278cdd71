"""The rows of the page from the JSON of `python -m tests.bench.relay`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from docs.speed.run import Row
from tests.bench.kit.page_rows import alone, make_row
from tests.bench.relay.peers import DIRECT

_CPU: Final = {
    "new": ("Processor time of a request on a new connection", "HTTP, 64 at a time", "µs", 1.0),
    "keep-alive": ("Processor time of a request on a kept connection", "HTTP, 64 connections", "µs", 1.0),
    "download": ("Processor time of a gigabyte, download", "512 MB from the backend, again and again", "ms", 0.001),
    "upload": ("Processor time of a gigabyte, upload", "512 MB to the backend, again and again", "ms", 0.001),
}
_RATE: Final = {
    "new": ("Requests a second, new connections", "one process each, on one processor", "1/s", 1.0),
    "download": ("Throughput of one connection", "512 MB from the backend, again and again", "GB/s", 1.0),
}
_LATENCY: Final = {
    "latency": "a kept connection",
    "latency-new": "a new connection each",
}


def make_page_rows(content: Mapping[str, Any]) -> Iterator[Row]:
    """Processor time, rates, the latency that a relay adds, and memory."""
    rows, rounds = content["rows"], content["rounds"]
    for workload, (title, about, unit, factor) in _CPU.items():
        how: dict[str, Any] = {"title": title, "about": about, "unit": unit, "better": "lower", "factor": factor}
        yield from _summary(rows, workload, "cpu", "cpu_us", rounds, **how)
    for workload, (title, about, unit, factor) in _RATE.items():
        how = {"title": title, "about": about, "unit": unit, "better": "higher", "factor": factor}
        yield from _summary(rows, workload, "rate", "rate", rounds, **how)
    for workload, about in _LATENCY.items():
        for measure, words in (("p50", "median"), ("p99", "99th percentile")):
            both = [row for row in rows if row["workload"] == workload]
            of = [row for row in both if row["relay"] != DIRECT]
            direct = _faults(both).get(DIRECT)
            without = {row["relay"]: f"without a relay: {direct}" for row in of} if direct else {}
            yield from make_row(
                *("relay", workload, measure),
                title=f"Time that a relay adds to a request, {words}",
                about=f"one HTTP request at a time, {about}; above that without a relay",
                unit="ms",
                better="lower",
                found=[(row["relay"], alone(row[f"added_{measure}_ms"])) for row in of],
                faults={**without, **_faults(of)},
                rounds=rounds,
            )
    idle: dict[str, Any] = {
        "title": "Memory of an idle connection",
        "about": "3,000 that have asked once",
        "unit": "KiB",
    }
    yield from _summary(rows, "idle", "memory", "memory_kib", rounds, better="lower", **idle)


def _summary(
    rows: Sequence[Mapping[str, Any]], workload: str, name: str, figure: str, rounds: int, **how: Any
) -> Iterator[Row]:
    of = [row for row in rows if row["workload"] == workload and row["relay"] != DIRECT]
    found = [(row["relay"], row["summary"] and row["summary"][figure]) for row in of]
    yield from make_row("relay", workload, name, found=found, faults=_faults(of), rounds=rounds, **how)


def _faults(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    return {row["relay"]: row["fault"] for row in rows if row["fault"]}
