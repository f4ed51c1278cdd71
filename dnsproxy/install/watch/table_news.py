"""News of dnsproxy's table: what of it a watch follows, and whether a change of our lines only follows it.

The law: a change that only follows the table is nobody's undoing. A zone that vanished can wait for the next regular
look; any change of names cannot, because a name whose Service is not ready any more leads nowhere. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dnsproxy.cluster_dns.traces import Trace
from dnsproxy.corefile.rewrite_lines import Rewrite
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from sidecar.values.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class Aim:
    """What a plan would have the cluster's DNS do."""

    target: str
    """The key to write."""
    addresses: tuple[Endpoint, ...] = ()
    zones: tuple[str, ...] = ()
    rewrites: frozenset[Rewrite] | None = None
    """For rewrite lines, which have neither addresses nor zones."""

    def __str__(self) -> str:
        """One text for one wish."""
        if self.rewrites is not None:
            return f"{self.target}: {' '.join(sorted(_texts(self.rewrites)))}"
        return f"{self.target}: {' '.join(map(str, self.addresses))} for {' '.join(self.zones)}"


def learn_names(said: LiveRewrites, known: frozenset[str]) -> frozenset[str]:
    """The names that are known after an answer; without one, those before."""
    return names_in(said) if said.answered else known


def names_in(live: LiveRewrites | None) -> frozenset[str]:
    """The names of a table as texts."""
    return frozenset(_texts((*live.names, *live.exempt)) if live is not None else ())


def only_follows(before: Aim, now: Aim, traces: Sequence[Trace]) -> bool:
    """Whether our lines, found in `traces`, stand as planned before, and the new plan only follows dnsproxy's table."""
    if before.target != now.target:
        return False
    if now.rewrites is not None and before.rewrites is not None:
        standing = [frozenset(trace.rewrites.rewrites) for trace in traces if trace.rewrites]
        return standing == [before.rewrites]
    zones, standing_zones = set(before.zones), {zone.removesuffix(".") for trace in traces for zone in trace.zones}
    return before.addresses == now.addresses and standing_zones == zones < set(now.zones)


def _texts(rewrites: Iterable[Rewrite]) -> Iterator[str]:
    return (f"{one.hostname} ({one.reach.value}) {one.service}".strip() for one in rewrites)
