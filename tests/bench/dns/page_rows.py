"""The rows of the page from the JSON of `python -m tests.bench.dns`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from docs.speed.run import Row
from tests.bench.kit.page_rows import make_row

_ANSWERS: Final = {
    "table": ("Answers a second, 10,000 names", ""),
    "edns": ("Answers a second, queries with EDNS", "10,000 names; each query has an OPT of 1,232 octets with DO"),
    "case": ("Answers a second, letters in random case", "10,000 names"),
    "wildcard": ("Answers a second, random names below a wildcard", "beside 10,000 names"),
    "100k": ("Answers a second, 100,000 names", ""),
}
_SLOWLY: Final = {
    "table": ("right after a load", "1,000 queries a second over UDP on loopback"),
    "rest-1000": ("at rest", "1,000 queries a second over UDP on loopback, and no other load"),
    "rest-100": ("at rest, rarely asked", "100 queries a second over UDP on loopback, and no other load"),
}
_CPU: Final = {
    "table": "Processor time of an answer, 10,000 names",
    "forward": "Processor time of a forwarded query",
    "two": "Processor time of an answer, two workers each",
}


def make_page_rows(content: Mapping[str, Any]) -> Iterator[Row]:
    """Answers a second, processor time, and answer times at rest."""
    rows, rounds = content["rows"], content["rounds"]
    for workload, (title, about) in _ANSWERS.items():
        yield from _summary(
            rows, workload, "answers", "qps", rounds, title=title, about=about, unit="1/s", better="higher"
        )
    for workload, title in _CPU.items():
        yield from _summary(rows, workload, "cpu", "cpu_us", rounds, title=title, unit="µs", better="lower")
    for workload, (state, about) in _SLOWLY.items():
        for measure, words in (("p50", "median"), ("p99", "99th percentile")):
            yield from make_row(
                *("dns", workload, measure),
                title=f"Time of an answer {state}, {words}",
                about=about,
                unit="ms",
                better="lower",
                found=[(row["server"], row[f"{measure}_ms"]) for row in _of(rows, workload)],
                faults=_faults(_of(rows, workload)),
                rounds=rounds,
            )
    yield from _tap(rows, rounds)
    disturbed = [
        (row["workload"].removeprefix("during "), row) for row in rows if row["workload"].startswith("during ")
    ]
    yield from make_row(
        *("dns", "disturbed", "p99"),
        title="Time of an answer while something else goes on",
        about="99 of 100 answers at 1,000 queries a second are faster",
        unit="ms",
        better="lower",
        found=[(name, row["p99_ms"]) for name, row in disturbed],
        rounds=rounds,
        ours=[name for name, _ in disturbed],
        goal=5.0,
    )


def _of(rows: Sequence[Mapping[str, Any]], workload: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["workload"] == workload]


def _summary(
    rows: Sequence[Mapping[str, Any]], workload: str, name: str, figure: str, rounds: int, **how: Any
) -> Iterator[Row]:
    found = [(row["server"], row["summary"] and row["summary"][figure]) for row in _of(rows, workload)]
    faults = _faults(_of(rows, workload))
    yield from make_row("dns", workload, name, found=found, faults=faults, rounds=rounds, **how)


def _faults(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    return {row["server"]: row["fault"] for row in rows if row["fault"]}


def _tap(rows: Sequence[Mapping[str, Any]], rounds: int) -> Iterator[Row]:
    """Ours with a listener, beside ours without."""
    named = {"table": "ours", "tap": "ours, one listener"}
    both = [(name, row) for workload, name in named.items() for row in _of(rows, workload) if row["server"] == "ours"]
    if len(both) < len(named):
        return
    yield from make_row(
        *("dns", "tap", "answers"),
        title="Answers a second while a listener reads every query",
        about="dnsproxy tap, 10,000 names",
        unit="1/s",
        better="higher",
        found=[(name, row["summary"] and row["summary"]["qps"]) for name, row in both],
        rounds=rounds,
    )
