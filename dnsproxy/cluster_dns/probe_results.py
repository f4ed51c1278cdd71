"""Results of probes: whether dnsproxy answers through each of the cluster's DNS servers.

The law: one query alone proves nothing, because several servers may share one address.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dnsproxy.cluster_dns.found import Found
from dnsproxy.cluster_dns.traces import Trace
from dnsproxy.corefile.zones import ROOT
from dnsproxy.dns.wire import DNS_PORT, Rcode
from sidecar.values.endpoints import Endpoint, parse_endpoint

MOST_ZONES: Final = 5
"""Zones to probe; CoreDNS loads all zones of an install together, so a few are enough."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one query."""

    ours: bool = False
    """Whether dnsproxy answered, or rewrite lines of ours did."""
    by: str = "dnsproxy"
    """Who answered, if it was ours."""
    rcode: int | None = None
    """Of the reply; None without a reply."""
    fault: str = ""
    """Why there was no reply."""
    forwards: str | None = None
    """Where dnsproxy reports to forward all other names; None if it does not report that."""


class Presence(Enum):
    """Whether dnsproxy answers through one server."""

    YES = "yes"
    PARTLY = "partly"
    """Through some of the servers behind the address, but not yet through all."""
    NO = "no"
    SILENT = "silent"
    """No reply: the server cannot be reached from here, or it is dead."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The outcomes of all queries to one server for the probe of one zone."""

    endpoint: Endpoint
    zone: str
    outcomes: tuple[Outcome, ...]

    @property
    def state(self) -> Presence:
        """Whether dnsproxy answers through that server."""
        ours = sum(outcome.ours for outcome in self.outcomes)
        if ours == len(self.outcomes) and ours:
            return Presence.YES
        if ours:
            return Presence.PARTLY
        return Presence.SILENT if all(outcome.rcode is None for outcome in self.outcomes) else Presence.NO

    @property
    def said(self) -> str:
        """The outcomes and how often each came: `6 of 8 dnsproxy, 2 of 8 NXDOMAIN`."""
        said = Counter(map(_said, self.outcomes))
        return ", ".join(f"{count} of {len(self.outcomes)} {what}" for what, count in said.most_common())


def places_to_ask(found: Found) -> tuple[Endpoint, ...]:
    """The servers that pods ask for public names: the nodes' cache if it decides about them, or else the Service."""
    cache = found.node_local
    if cache is not None and not cache.passes_on and cache.addresses:
        return tuple(_endpoints(cache.addresses[:1]))
    return tuple(_endpoints(found.service.addresses)) if found.service else ()


def zones_to_ask(traces: Sequence[Trace]) -> tuple[str, ...]:
    """The zones whose queries should come to dnsproxy, and the markers of rewrite lines; the root if there are none."""
    zones = dict.fromkeys(zone for trace in traces for zone in trace.zones)
    markers = dict.fromkeys(trace.rewrites.marker for trace in traces if trace.rewrites)
    return (*markers, *tuple(zones)[:MOST_ZONES]) or (ROOT,)


def _endpoints(addresses: Sequence[str]) -> Iterator[Endpoint]:
    for address in addresses:
        try:
            yield parse_endpoint(address, default_port=DNS_PORT)
        except ValueError:
            continue


def _said(outcome: Outcome) -> str:
    if outcome.ours:
        return outcome.by
    if outcome.rcode is None or outcome.fault:
        return outcome.fault
    return Rcode(outcome.rcode).name if outcome.rcode in list(Rcode) else f"RCODE {outcome.rcode}"
