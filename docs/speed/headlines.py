"""The rows that the README, the guide and the top of the page show, as ratios to the peers. Pure.

The law: every ratio is of one recorded run; a ratio that the run did not measure is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from docs.speed.run import Row, Run
from docs.speed.scale import format_times


@dataclass(frozen=True, slots=True)
class Headline:
    """One of them."""

    work: str
    row: str
    """The id of a Row."""
    peers: Sequence[str]


LIMIT: Final = "C loop"
"""The programs of tests/bench/limit: the same system calls, and next to nothing else."""
LIMIT_WORK: Final = "the same, of what a C loop reaches"

HEADLINES: Final = (
    Headline("answers a second, 10,000 names", "dns-table-answers", ("NSD", "Unbound", "dnsmasq", "CoreDNS hosts")),
    Headline(LIMIT_WORK, "dns-table-answers", (LIMIT,)),
    Headline("the same with EDNS", "dns-edns-answers", ("NSD", "Unbound")),
    Headline("the same with 100,000 names", "dns-100k-answers", ("NSD", "Unbound")),
    Headline("the same below a wildcard", "dns-wildcard-answers", ("NSD", "Unbound")),
    Headline("time of an answer at rest, median", "dns-rest-1000-p50", ("NSD", "Unbound", "dnsmasq", "CoreDNS hosts")),
    Headline("processor time of a forwarded query", "dns-forward-cpu", ("dnsmasq", "CoreDNS forward")),
    Headline(
        "processor time of a relayed connection", "relay-new-cpu", ("haproxy", "nginx stream", "Go io.Copy", LIMIT)
    ),
    Headline(
        "the same of a request on a kept connection", "relay-keep-alive-cpu", ("haproxy", "nginx stream", "Go io.Copy")
    ),
    Headline("processor time of 512 MB through the relay", "relay-download-cpu", ("haproxy", "haproxy, always splice")),
    Headline("memory of an idle connection", "relay-idle-memory", ("haproxy", "Go io.Copy")),
)

IN_README: Final = (
    "dns-table-answers",
    "dns-rest-1000-p50",
    "dns-forward-cpu",
    "relay-new-cpu",
    "relay-download-cpu",
    "dns-edns-answers",
    "dns-100k-answers",
    "relay-idle-memory",
    "dns-wildcard-answers",
    "relay-keep-alive-cpu",
)
"""Rows of headlines, those that the README needs most first."""


def compare(run: Run, headline: Headline) -> Iterator[tuple[str, float]]:
    """The peers that were measured, and ours divided by theirs."""
    row = run.find(headline.row)
    for peer in headline.peers if row else ():
        ratio = row.ratio(peer) if row else None
        if ratio is not None:
            yield peer, ratio


def headlines_of(run: Run) -> Iterator[tuple[Headline, Row, Sequence[tuple[str, float]]]]:
    """Those that have a ratio."""
    for headline in HEADLINES:
        row, ratios = run.find(headline.row), list(compare(run, headline))
        if row is not None and ratios:
            yield headline, row, ratios


def format_headline(ratios: Sequence[tuple[str, float]]) -> str:
    """The ratios, each before its program."""
    return ", ".join(f"{format_times(ratio)} {peer}" for peer, ratio in ratios)
