"""The mix: 100,000 objects of seven kinds, as a cluster with several controllers might have them. Pure.

The law: the kind of an object follows from its number, so that every twenty objects are mixed like all of them. Most
name no class, as most do in clusters with one controller of their kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.bench.sync import filling
from tests.bench.sync.new_object import MERGE_PATCH, NewObject, Request
from tests.kit.apiserver import ingress

ZONE: Final = "mixed.example.org"
NAMESPACES: Final = 100
GATEWAYS: Final = 20
GATEWAYS_NAMESPACE: Final = "gateways"
SITES: Final = "crd:sites.example.org:spec.hosts[*]"
SOURCES: Final = ("ingress", "gateway", "traefik", "openshift", "contour", SITES)

_SINCE: Final = "2026-01-01T00:00:00Z"
_TWENTY: Final = 20


def hostname_of(number: int) -> str:
    """The host of an object."""
    return f"{name_of(number)}.{ZONE}"


def name_of(number: int) -> str:
    """What it is called: all names are of the same length."""
    return f"m{number:07}"


def namespace_of(number: int) -> str:
    """Where it is: each namespace has objects of every kind."""
    return f"mixed-{number // _TWENTY % NAMESPACES:02}"


def gateway_of(number: int) -> str:
    """The Gateway of an HTTPRoute."""
    return f"gateway-{number // _TWENTY % GATEWAYS:02}"


@dataclass(frozen=True, slots=True)
class MixedKind:
    """One kind of the mix."""

    kind: str
    version: str
    plural: str
    share: int
    """Of twenty objects."""
    body_of: Callable[[int], dict[str, Any]]
    """The object without its identity and status."""
    status_of: Callable[[int], dict[str, Any]] | None = None
    """As its controller writes it; None: it has none."""
    is_judged: bool = False
    """Whether its status decides that it is served."""
    status_path: str = "/status"
    etcd_folder: str = ""
    """Where the API server keeps it, if not in GROUP/PLURAL."""

    def path(self, number: int) -> str:
        """Its collection in the namespace of an object."""
        return f"/apis/{self.version}/namespaces/{namespace_of(number)}/{self.plural}"

    def key(self, number: int) -> str:
        """Where etcd has an object."""
        folder = self.etcd_folder or f"{self.version.partition('/')[0]}/{self.plural}"
        return f"/registry/{folder}/{namespace_of(number)}/{name_of(number)}"

    def create(self, number: int) -> Request:
        """How an object is created."""
        metadata = {"name": name_of(number), "namespace": namespace_of(number)}
        whole = {"apiVersion": self.version, "kind": self.kind, "metadata": metadata}
        body = self.body_of(number)
        return Request("POST", self.path(number), {**whole, **body, "metadata": metadata | body.get("metadata", {})})

    def report(self, number: int) -> Request | None:
        """How its controller writes its status."""
        if self.status_of is None:
            return None
        path = f"{self.path(number)}/{name_of(number)}{self.status_path}"
        return Request("PATCH", path, {"status": self.status_of(number)}, MERGE_PATCH)


def kind_of(number: int) -> MixedKind:
    """The kind of an object."""
    return _TURNS[number % _TWENTY]


def object_of(number: int) -> NewObject:
    """An object that is served after the last of its requests."""
    kind = kind_of(number)
    report = kind.report(number) if kind.is_judged else None
    requests = (kind.create(number), *([report] if report is not None else []))
    return NewObject(kind.kind, hostname_of(number), f"{kind.path(number)}/{name_of(number)}", requests)


def _ingress(number: int) -> dict[str, Any]:
    made = ingress(name_of(number), [hostname_of(number)], ingress_class="public")
    annotations = filling.manifest_of(number)["metadata"]["annotations"]
    return {"metadata": {"annotations": annotations}, "spec": made["spec"]}


def _ingress_route(number: int) -> dict[str, Any]:
    services = [{"name": "web", "port": 80}]
    host = f"Host(`{hostname_of(number)}`)"
    rows = [(f"{host} && PathPrefix(`/api`)", [{"name": "strip"}]), (host, [])]
    routes = [{"kind": "Rule", "match": match, "services": services, "middlewares": wares} for match, wares in rows]
    return {"spec": {"entryPoints": ["websecure"], "routes": routes, "tls": {"secretName": "tls"}}}


def _ingress_route_tcp(number: int) -> dict[str, Any]:
    routes = [{"match": f"HostSNI(`{hostname_of(number)}`)", "services": [{"name": "web", "port": 80}]}]
    return {"spec": {"entryPoints": ["websecure"], "routes": routes, "tls": {"passthrough": True}}}


def _http_proxy(number: int) -> dict[str, Any]:
    virtual_host = {"fqdn": hostname_of(number), "tls": {"secretName": "tls"}}
    routes = [
        {"conditions": [{"prefix": prefix}], "services": [{"name": "web", "port": 80}]} for prefix in ("/", "/api")
    ]
    return {"spec": {"virtualhost": virtual_host, "routes": routes}}


def _http_proxy_status(_: int) -> dict[str, Any]:
    valid = {
        "type": "Valid",
        "status": "True",
        "reason": "Valid",
        "message": "Valid HTTPProxy",
        "lastTransitionTime": _SINCE,
        "observedGeneration": 1,
    }
    balancer = {"ingress": [{"ip": "192.0.2.30"}]}
    about = {"currentStatus": "valid", "description": "Valid HTTPProxy"}
    return {**about, "conditions": [valid], "loadBalancer": balancer}


def _route(number: int) -> dict[str, Any]:
    tls = {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"}
    to = {"kind": "Service", "name": "web", "weight": 100}
    return {"spec": {"host": hostname_of(number), "to": to, "tls": tls, "port": {"targetPort": "http"}}}


def _route_status(number: int) -> dict[str, Any]:
    admitted = {"type": "Admitted", "status": "True", "lastTransitionTime": _SINCE}
    router = {
        "host": hostname_of(number),
        "routerName": "default",
        "routerCanonicalHostname": "router-default.example.net",
        "wildcardPolicy": "None",
        "conditions": [admitted],
    }
    return {"ingress": [router]}


def _http_route(number: int) -> dict[str, Any]:
    rules = [{"backendRefs": [{"name": "web", "port": 80}], "matches": [{"path": {"value": "/"}}]}]
    return {"spec": {"parentRefs": [_parent(number)], "hostnames": [hostname_of(number)], "rules": rules}}


def _http_route_status(number: int) -> dict[str, Any]:
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": kind,
            "message": "",
            "observedGeneration": 1,
            "lastTransitionTime": _SINCE,
        }
        for kind in ("Accepted", "ResolvedRefs")
    ]
    controller = "example.net/gateway-controller"
    return {"parents": [{"parentRef": _parent(number), "controllerName": controller, "conditions": conditions}]}


def _parent(number: int) -> dict[str, Any]:
    group = "gateway.networking.k8s.io"
    return {"group": group, "kind": "Gateway", "namespace": GATEWAYS_NAMESPACE, "name": gateway_of(number)}


def _site(number: int) -> dict[str, Any]:
    return {"spec": {"hosts": [hostname_of(number)], "owner": "web", "replicas": 2}}


def _balanced(_: int) -> dict[str, Any]:
    return {"loadBalancer": {"ingress": [{"ip": "192.0.2.30"}]}}


_TRAEFIK: Final = "traefik.io/v1alpha1"

KINDS: Final = (
    MixedKind("Ingress", "networking.k8s.io/v1", "ingresses", 6, _ingress, _balanced, etcd_folder="ingress"),
    MixedKind("IngressRoute", _TRAEFIK, "ingressroutes", 4, _ingress_route),
    MixedKind("IngressRouteTCP", _TRAEFIK, "ingressroutetcps", 2, _ingress_route_tcp),
    MixedKind("HTTPProxy", "projectcontour.io/v1", "httpproxies", 3, _http_proxy, _http_proxy_status, is_judged=True),
    MixedKind("Route", "route.openshift.io/v1", "routes", 2, _route, _route_status, is_judged=True),
    MixedKind("HTTPRoute", "gateway.networking.k8s.io/v1", "httproutes", 2, _http_route, _http_route_status),
    MixedKind("Site", "example.org/v1", "sites", 1, _site),
)

_TURNS: Final = tuple(kind for kind in KINDS for _ in range(kind.share))
