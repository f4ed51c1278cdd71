"""From the values of the flags of `dnsproxy serve` to ServeSettings.

The law: what fails only together is said here, in a line that names the flags.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from dnsproxy.forward.resolv_conf import find_cluster_domain, parse_search
from dnsproxy.forward.resolv_conf_follower import read_forwarding
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.targets import Targets
from dnsproxy.serve.settings import ServeSettings
from dnsproxy.sources.cluster_sources import ClusterSettings
from dnsproxy.sources.gateway.source import GatewayOptions
from dnsproxy.sources.ingress_source import IngressOptions
from sidecar.errors import StartError
from sidecar.inherited import SYSTEMD

_DEFAULT_CLUSTER_DOMAIN: Final = "cluster.local"


def make_settings(**values: Any) -> ServeSettings:
    """Settings from the values by the flags' names. Raises StartError."""
    resolv_conf: Path = values["resolv_conf"]
    _refuse_without_target(values)
    settings = ServeSettings(
        listen=tuple(one for one in values["listen"] if one != SYSTEMD),
        forwarding=_forward_settings(values),
        targets=Targets(values["target"] or (), dict(values["target_for"])),
        guards=Guards(
            cluster_domain=values["cluster_domain"] or _cluster_domain(resolv_conf),
            zones=values["zone"],
            deny=values["deny"],
        ),
        ownership=_ownership_settings(values),
        ttl=values["ttl"],
        hosts=values["host"],
        hosts_file=values["hosts_file"],
        cluster=_cluster_settings(values) if values["source"] else None,
        admin=values["admin"],
        shared=values["share_ports"],
        inherit=SYSTEMD in values["listen"],
        resolv_conf=None if values["upstream"] else resolv_conf,
        snapshot=values["snapshot"],
        lameduck=values["lameduck"],
        drain=values["drain"],
    )
    settings.refuse_loop(settings.listen)
    return settings


def _ownership_settings(values: dict[str, Any]) -> OwnershipSettings:
    trusted = values["trust"]
    return OwnershipSettings(
        Mode(values["ownership"]),
        zones=tuple(one for one in trusted if isinstance(one, str)),
        networks=tuple(one for one in trusted if not isinstance(one, str)),
    )


def _forward_settings(values: dict[str, Any]) -> ForwardSettings:
    plain = ForwardSettings(values["upstream"], values["outstanding"], values["outstanding_per_client"])
    return plain if plain.upstreams else read_forwarding(values["resolv_conf"], plain=plain)


def _cluster_settings(values: dict[str, Any]) -> ClusterSettings:
    sources = values["source"]
    ingress = IngressOptions(frozenset(values["ingress_class"]), tls_only=values["tls_only"])
    gateway = GatewayOptions(frozenset(values["gateway_class"]))
    return ClusterSettings(
        ingress=ingress if "ingress" in sources else None,
        gateway=gateway if "gateway" in sources else None,
        services="service" in sources,
        kubeconfig=values["kubeconfig"],
        context=values["context"],
    )


def _refuse_without_target(values: dict[str, Any]) -> None:
    if values["source"] and not values["target"] and not values["target_for"]:
        raise StartError("--source needs --target: what the cluster's hostnames are answered with")


def _cluster_domain(path: Path) -> str:
    try:
        search = parse_search(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return _DEFAULT_CLUSTER_DOMAIN
    return find_cluster_domain(search) or _DEFAULT_CLUSTER_DOMAIN
