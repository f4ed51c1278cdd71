"""Istio's documentation as a slow reference implementation, name by name: the source is compared with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from dnsproxy.sources.annotations import AnnotationFields
from dnsproxy.sources.istio.kinds import ISTIO_GATEWAY, VIRTUAL_SERVICE
from sidecar.kubernetes.objects import Unreadable
from tests.dnsproxy.sources.istio.histories import Key


def name_stands_in(hostname: str, name: str) -> bool:
    """As Name.SubsetOf in https://github.com/istio/istio/blob/86c9f01fd73/pkg/config/host/name.go."""
    return name.endswith(hostname[1:]) if hostname.startswith("*") else name == hostname


def is_used(one: Any) -> bool:
    if one is None or isinstance(one, Unreadable):
        return False
    return (one.metadata.annotations or AnnotationFields()).ignore is None


def gateways_of(one: Any, objects: Mapping[Key, Any]) -> Iterator[Any]:
    home = one.metadata.namespace
    for name in one.spec.gateways or ():
        place = {"x": f"{home}/x", "x.infra.svc.cluster.local": "infra/x"}.get(name, name)
        gateway: Any = objects.get((ISTIO_GATEWAY, place))
        if is_used(gateway) and (gateway.spec.selector or {}).get("istio") != "egressgateway":
            yield gateway


def is_visible(one: Any, gateway: Any) -> bool:
    home, export_to = one.metadata.namespace, one.spec.export_to or ("*",)
    return any(scope in ("*", gateway.metadata.namespace) for scope in (home if to == "." else to for to in export_to))


def has(gateway: Any, namespace: str, name: str) -> bool:
    for server in gateway.spec.servers:
        for host in server.hosts:
            scope, _, hostname = host.rpartition("/")
            scope = gateway.metadata.namespace if scope == "." else scope
            if scope in ("", "*", namespace) and name_stands_in(hostname, name):
                return True
    return False


def served_names(objects: Mapping[Key, Any], names: Iterable[str]) -> set[str]:
    found = set()
    services = [one for (kind, _), one in objects.items() if kind == VIRTUAL_SERVICE and is_used(one)]
    for one, name in product(services, names):
        marked = (one.metadata.annotations or AnnotationFields()).hostname
        own = [*(one.spec.hosts or ()), *([marked] if marked and one.spec.hosts else [])]
        for gateway in gateways_of(one, objects):
            mine = any(host != "*" and name_stands_in(host, name) for host in own)
            theirs = "*" in own and is_named(gateway, one.metadata.namespace, name)
            if (mine or theirs) and is_visible(one, gateway) and has(gateway, one.metadata.namespace, name):
                found.add(name)
    return found


def is_named(gateway: Any, namespace: str, name: str) -> bool:
    """Whether a server has the name other than by the host `*`, of which no hostname can be made."""
    hosts = [[host for host in server.hosts if host.rpartition("/")[2] != "*"] for server in gateway.spec.servers]
    return any(
        scope in ("", "*", namespace) and name_stands_in(hostname, name)
        for some in hosts
        for scope, hostname in (
            (gateway.metadata.namespace if one.startswith("./") else one.rpartition("/")[0], one.rpartition("/")[2])
            for one in some
        )
    )
