"""Facts about the cluster's DNS: its servers, and our stanzas in their configuration.

The law: as in model.py. Tested in tests/dnsproxy/doctor/facts/test_file.py.
"""

from __future__ import annotations

from dnsproxy.corefile.taken_names import Match
from dnsproxy.doctor.facts.probes import Fact


class Stanza(Fact, frozen=True):
    """Our stanza, or our rewrite lines, in one ConfigMap."""

    target: str
    method: str
    zones: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    """The servers that it forwards to: `ADDRESS:PORT`."""
    fault: str = ""
    marker: str = ""
    """Of rewrite lines: the name below which they answer a probe (dns/rewrite_probe.py); empty for a stanza."""


class OriginalUpstreams(Fact, frozen=True):
    """Where the cluster's DNS forwards the names of one zone without a stanza; as UpstreamRoute."""

    zone: str
    upstreams: tuple[str, ...] = ()
    excepted: tuple[str, ...] = ()
    fault: str = ""
    line: int = 0


class LineNames(Fact, frozen=True):
    """Some names; as TakenNames."""

    kind: Match
    name: str


class AnsweringLine(Fact, frozen=True):
    """A line of others that answers some names before our stanza, or without one; as TakenLine."""

    what: str
    """The plugin, the ConfigMap and the line: `hosts (Corefile in ConfigMap kube-system/coredns, line 7)`."""
    kind: Match
    name: str
    gives: str = ""
    """The address, or the other name, that it has for one name; empty if its text does not show it."""
    text: str = ""
    """What is written there, cut."""
    excepted: tuple[LineNames, ...] = ()
    """What of these it leaves to later lines."""


class ClusterDns(Fact, frozen=True):
    """The servers of the cluster's DNS, and our stanzas in their configuration."""

    service: str = ""
    addresses: tuple[str, ...] = ()
    server: str = ""
    """Workload, program and version, for display."""
    ask_at: tuple[str, ...] = ()
    """The servers that pods ask for public names: `ADDRESS:PORT`."""
    node_local: str = ""
    """The cache on the nodes; empty if there is none."""
    node_local_addresses: tuple[str, ...] = ()
    node_local_passes_on: bool = False
    """Whether the cache forwards queries for public names to the server of the main Corefile."""
    stanzas: tuple[Stanza, ...] = ()
    where: str = ""
    """The workload that decides about public names: `Deployment kube-system/coredns`."""
    decides: tuple[str, ...] = ()
    """The ConfigMaps that this workload reads: `NAMESPACE/NAME`."""
    printed_as: str = ""
    """How the owner of this DNS takes the stanza, if it would undo a written one: `EKS add-on configuration values`."""
    faults: tuple[str, ...] = ()
    upstreams_in: str = ""
    """The ConfigMap that says where it forwards without the stanza."""
    upstreams: tuple[OriginalUpstreams, ...] = ()
    """Where that is; empty if unknown."""
    lines: tuple[AnsweringLine, ...] = ()
    """The lines of others that answer names, in the order in which the DNS asks them; empty if none could be read."""
