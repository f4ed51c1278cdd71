"""The upstreams in a ConfigMap, of the Corefile of CoreDNS or of kube-dns, and the cluster domains of the former.

The law: a ConfigMap gives routes or a reason, one sentence for users; no content raises anything else. The key
`Corefile` counts if there is one; without it, the ConfigMap `kube-dns` is that of the program kube-dns, which may be
absent and then means the node's nameservers.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from dnsproxy.cluster_dns.kube_dns import STUB_DOMAINS, UPSTREAMS, Nameservers, Zones, parse_value
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.traces import ANNOTATION
from dnsproxy.corefile.cluster_zones import ClusterZones, cluster_zones
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.upstream_routes import Files, Routes, find_upstream_routes, routes_of_stub_domains
from sidecar.kubernetes.objects import Collection, Unreadable
from sidecar.kubernetes.structs.workload import ConfigMap

COREFILE: Final = "Corefile"
_KUBE_DNS: Final = "kube-dns"


class NoUpstreams(ValueError):
    """A ConfigMap from which no upstreams can be read; the message is the reason."""


def config_map_collection(ref: ObjectRef) -> Collection[ConfigMap]:
    """The one ConfigMap. RBAC: list and watch configmaps in its namespace; resourceNames may narrow it."""
    path = f"/api/v1/namespaces/{ref.namespace}/configmaps"
    return Collection(f"ConfigMap {ref}", path, ConfigMap, field_selector=f"metadata.name={ref.name}")


def read_routes(ref: ObjectRef, found: ConfigMap | Unreadable | None, files: Files = MappingProxyType({})) -> Routes:
    """The routes of a ConfigMap, which may import some files by their names; None if it does not exist.

    Raises NoUpstreams.
    """
    if isinstance(found, Unreadable):
        raise NoUpstreams(f"it is unreadable: {found.reason}")
    data = (found.data if found else None) or {}
    if COREFILE in data:
        try:
            return find_upstream_routes(data[COREFILE], files)
        except CorefileError as error:
            raise NoUpstreams(f"line {error.line}: {error.reason}") from None
    if ref.name != _KUBE_DNS:
        raise NoUpstreams(f"it has no key {COREFILE}" if found else "there is no such ConfigMap")
    zones: Zones = _value(data, STUB_DOMAINS, Zones)
    upstreams: Nameservers = _value(data, UPSTREAMS, Nameservers)
    annotations = (found.metadata.annotations if found else None) or {}
    return routes_of_stub_domains(zones, upstreams, ours=annotations.get(ANNOTATION, "").split())


def read_cluster_domains(found: ConfigMap | Unreadable | None) -> ClusterZones | None:
    """The cluster domains that the Corefile of a ConfigMap names; None if it has no Corefile that can be read."""
    data = found.data if isinstance(found, ConfigMap) else None
    try:
        return cluster_zones(parse_corefile(data[COREFILE])) if data and COREFILE in data else None
    except CorefileError:
        return None


def _value(data: dict[str, str], key: str, shape: Any) -> Any:
    try:
        return parse_value(data.get(key), shape)
    except ValueError as error:
        raise NoUpstreams(f"{key} is not valid for kube-dns: {error}") from None
