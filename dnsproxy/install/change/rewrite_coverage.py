"""Rewrite coverage: the rewrite lines that stand, compared with the names of dnsproxy's table.

The law: a name that an install would write and that has no line is missing; what an install would leave out too is not.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dnsproxy.corefile.model import listed
from dnsproxy.corefile.rewrite_lines import MOST, Rewrite, hostnames_of
from dnsproxy.install.change.rewrite_choice import ChosenRewrites, LiveRewrites


@dataclass(frozen=True, slots=True)
class RewriteCoverage:
    """Live names compared with the lines that stand."""

    standing: int = 0
    """Names that are rewritten."""
    missing: tuple[str, ...] = ()
    """Names that an install would add, or give another Service."""
    gone: tuple[str, ...] = ()
    """Names that an install would remove."""
    beyond: int = 0
    """Names that an install leaves out because there are too many."""
    plain: int = 0
    """Names with plain addresses, which cannot be rewritten."""
    refused: tuple[tuple[str, str], ...] = ()
    """Names that an install leaves out for another reason, each with the reason."""
    unknown: str = ""
    """Why names may be missing here; empty if every pod of dnsproxy answered completely."""


def find_rewrite_coverage(
    standing: Iterable[Rewrite], chosen: ChosenRewrites | None, live: LiveRewrites
) -> RewriteCoverage:
    """The comparison; `chosen` is what an install would write, None if it would be refused."""
    there, planned = set(standing), set(chosen.rewrites if chosen else standing)
    return RewriteCoverage(
        standing=len(hostnames_of(there)),
        missing=hostnames_of(planned - there),
        gone=tuple(sorted({*hostnames_of(there)} - {*hostnames_of(planned)})),
        beyond=count_left_out(chosen, live) if chosen else 0,
        plain=live.plain,
        refused=chosen.refused if chosen else (),
        unknown=live.doubt,
    )


def describe_rewrites(chosen: ChosenRewrites, live: LiveRewrites) -> str:
    """How many names are rewritten, and how many are not, in one line."""
    parts = [f"{len(chosen.names)} names, each to its Service"]
    if beyond := count_left_out(chosen, live):
        parts.append(f"{beyond} left out beyond {MOST} lines")
    if chosen.refused:
        parts.append(f"{len(chosen.refused)} left out ({listed([hostname for hostname, _ in chosen.refused])})")
    if live.plain:
        parts.append(f"{live.plain} with plain addresses stay as they are")
    return "; ".join(parts)


def count_left_out(chosen: ChosenRewrites, live: LiveRewrites) -> int:
    """How many names get no line because there are too many."""
    return len(chosen.beyond) + live.left_out
