"""The settings of `dnsproxy serve`: made from the values of its flags, checked, and never changed.

The law: faults of several flags together are reported here, in one line that names the flags. Tested in
test_command.py.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.dnstap.settings import DnstapSettings
from dnsproxy.forward.resolv_conf import find_cluster_domain, parse_search, search_domains
from dnsproxy.forward.resolv_conf_follower import LARGEST, read_forwarding
from dnsproxy.forward.settings import ForwardSettings, exclude_own, refuse_loop
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.cluster_domains import ClusterDomains
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.name_limits import NameLimits
from dnsproxy.hostnames.ownership import OwnershipSettings
from dnsproxy.hostnames.rights import Annotations, Rights
from dnsproxy.hostnames.targets import Targets
from dnsproxy.primary.settings import RpzSettings
from dnsproxy.replica.settings import ReplicaSettings
from dnsproxy.serve.ownership_options import make_ownership_settings
from dnsproxy.serve.rpz_options import make_replica_settings, make_rpz_settings, read_keys
from dnsproxy.serve.selection_options import refuse_without_source
from dnsproxy.serve.source_options import make_cluster_settings, refuse_without_target
from dnsproxy.sources.names import EXTERNAL_DNS
from dnsproxy.sources.settings import ClusterSettings
from dnsproxy.sources.static_names import join_flags
from dnsproxy.tap.mode import TapMode
from sidecar.files.follow import read_settled
from sidecar.sockets.inherited import SYSTEMD
from sidecar.values.build import own_build
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The settings of a server."""

    listen: tuple[Endpoint, ...]
    """May be empty if sockets are inherited."""
    forwarding: ForwardSettings
    targets: Targets
    guards: Guards
    rights: Rights = field(default_factory=Rights)
    ownership: OwnershipSettings = field(default_factory=OwnershipSettings)
    limits: NameLimits = field(default_factory=NameLimits)
    hold: float = 600.0
    """Seconds that a claim of another namespace waits for a name."""
    ttl: int = 5
    hosts: tuple[Claim, ...] = ()
    hosts_file: Path | None = None
    cluster: ClusterSettings | None = None
    """None: no cluster is watched."""
    admin: Endpoint | None = None
    admin_hosts: tuple[str, ...] = ()
    """The names by which the admin port may be asked."""
    shared: bool = False
    """Whether other processes may listen on the same ports."""
    inherit: bool = False
    """Whether to answer on the sockets that systemd opened, too."""
    snapshot: Path | None = None
    """The file for the cluster's claims, for a start without the API server."""
    resolv_conf: Path | None = None
    """The file that `forwarding` was read from, which is followed; None if --upstream was given."""
    domains: ClusterDomains = field(default_factory=ClusterDomains)
    """The cluster domains that the flags and a search list tell."""
    search_conf: Path | None = None
    """The file that the search domains were read from, which is followed; None if no cluster is watched."""
    upstream_configmaps: UpstreamConfigMaps | None = None
    """The ConfigMaps with the upstreams; None if none is named, or --upstream was given."""
    rpz: RpzSettings | None = None
    """None: the table is no zone."""
    replica: ReplicaSettings | None = None
    """None: the table is made here."""
    lameduck: float = 5.0
    """Seconds after the first signal in which queries are answered as before, while /readyz answers 503."""
    drain: float = 5.0
    """Seconds after those for pending queries."""
    workers: int = 1
    """How many processes answer; 1: this process."""
    tap: TapMode = TapMode.ON
    dnstap: DnstapSettings | None = None
    """None: no collector."""

    def without_loops(self, listening: Iterable[Endpoint]) -> tuple[ForwardSettings, tuple[Endpoint, ...]]:
        """The forwarding without nameservers of resolv.conf that are endpoints listened at, and those.

        Raises StartError, which names the flag, if no other is left, and for an --upstream.
        """
        try:
            if self.resolv_conf:
                followed = self.upstream_configmaps is not None
                return exclude_own(self.forwarding, listening=listening, may_be_empty=followed)
            refuse_loop(self.forwarding.upstreams, listening=listening)
        except ValueError as error:
            flag = f"--resolv-conf {self.resolv_conf}: nameserver" if self.resolv_conf else "--upstream"
            raise StartError(f"{flag} {error}") from error
        return self.forwarding, ()


@dataclass(frozen=True, slots=True)
class UpstreamConfigMaps:
    """ConfigMaps with upstreams, and how to reach their cluster."""

    refs: tuple[ObjectRef, ...]
    """The first that is there decides."""
    kubeconfig: str | None = None
    context: str | None = None
    imports: tuple[ObjectRef, ...] = ()
    """With files that a Corefile of their namespace imports."""


def make_settings(**values: Any) -> ServeSettings:
    """Settings from the values by the flags' names. Raises StartError."""
    resolv_conf: Path = values["resolv_conf"]
    keys = read_keys(values["rpz_key"])
    replica = make_replica_settings(values, keys)
    if replica is not None:
        values["source"] = ()
    refuse_without_target(values)
    refuse_without_source(values)
    domains = ClusterDomains(values["cluster_domain"], _cluster_domains(resolv_conf))
    settings = ServeSettings(
        listen=tuple(one for one in values["listen"] if one != SYSTEMD),
        forwarding=_forward_settings(values),
        targets=Targets(values["target"] or (), dict(values["target_for"])),
        guards=Guards(
            cluster_domains=domains.guarded,
            zones=values["zone"],
            deny=values["deny"],
            search=_search(resolv_conf) if values["source"] else (),
            allow=values["allow"],
        ),
        rights=Rights(
            Annotations(values["annotations"]),
            networks=values["target_network"],
            services=frozenset(f"service:{ref}" for ref in values["target_service"]),
            named_classes=_named_classes(values),
        ),
        ownership=make_ownership_settings(values),
        limits=NameLimits(
            per_object=values["max_names_per_object"],
            per_namespace=values["max_names_per_namespace"],
            total=values["max_names"],
        ),
        domains=domains,
        hold=values["hold"],
        ttl=values["ttl"],
        hosts=join_flags(values["host"]),
        hosts_file=values["hosts_file"],
        cluster=make_cluster_settings(values) if values["source"] else None,
        admin=values["admin"],
        admin_hosts=values["admin_host"],
        shared=values["share_ports"],
        inherit=SYSTEMD in values["listen"],
        resolv_conf=None if values["upstream"] else resolv_conf,
        search_conf=resolv_conf if values["source"] else None,
        upstream_configmaps=None if values["upstream"] else _upstream_configmaps(values),
        snapshot=values["snapshot"],
        rpz=make_rpz_settings(values, keys),
        replica=replica,
        lameduck=values["lameduck"],
        drain=values["drain"],
        workers=values["workers"],
        tap=TapMode(values["tap"]),
        dnstap=_dnstap_settings(values),
    )
    # The sockets are open only later, and some may be inherited; this much is known now.
    settings.without_loops(settings.listen)
    return settings


def _dnstap_settings(values: dict[str, Any]) -> DnstapSettings | None:
    identity = values["dnstap_identity"]
    if values["dnstap"] is None:
        if identity:
            raise StartError("--dnstap-identity is for --dnstap")
        return None
    if TapMode(values["tap"]) is TapMode.OFF:
        raise StartError("--tap off shows queries to nobody, and --dnstap sends them to a collector: leave out one")
    return DnstapSettings(values["dnstap"], identity or socket.gethostname(), f"switchback {own_build().version}")


def _upstream_configmaps(values: dict[str, Any]) -> UpstreamConfigMaps | None:
    refs = values["upstream_configmap"]
    imports = values["upstream_imports"]
    return UpstreamConfigMaps(refs, values["kubeconfig"], values["context"], imports) if refs else None


def _forward_settings(values: dict[str, Any]) -> ForwardSettings:
    plain = ForwardSettings(values["upstream"], values["outstanding"], values["outstanding_per_client"])
    if plain.upstreams:
        return plain
    # In an air gap, a node may have no nameserver, and the cluster's Corefile names its upstreams.
    return read_forwarding(values["resolv_conf"], plain=plain, may_be_empty=bool(values["upstream_configmap"]))


def _named_classes(values: dict[str, Any]) -> frozenset[str]:
    """The classes of Ingresses in flags."""
    of_external_dns = (name for source, name in values["class_of"] if source == EXTERNAL_DNS)
    return frozenset((*values["ingress_class"], *dict(values["target_for"]), *of_external_dns))


def _cluster_domains(path: Path) -> tuple[str, ...]:
    found = find_cluster_domain(_read_search(path))
    return (found,) if found else ()


def _search(path: Path) -> tuple[str, ...]:
    return search_domains(_read_search(path))


def _read_search(path: Path) -> list[str]:
    """The search list of a file that need not exist; follow_search logs why it cannot be read."""
    try:
        octets, _ = read_settled(path, largest=LARGEST)
        return parse_search(octets.decode("utf-8", "replace"))
    except (OSError, ValueError):
        return []
