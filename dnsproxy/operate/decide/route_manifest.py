"""The manifest of a route Service: from the API server's object to a Route, and back.

The law: only the fields of a Route are read, compared and written; labels and annotations of others stay. A patch names
the resourceVersion that was read, so that the API server refuses it if another writer was faster.
https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-update (RFC 7386 merge patches)
"""

from __future__ import annotations

from typing import Any, Final

from dnsproxy.cluster_dns.operate_objects import MANAGER
from dnsproxy.operate.decide.facts import ListenPort, Route
from sidecar.kubernetes.relay_routes import MANAGED_BY, RoutePort, RouteService
from sidecar.kubernetes.route_services import (
    BALANCERS,
    ENDPOINT_HEADERS,
    FOR,
    PORT_BACKENDS,
    PROXY_PROTOCOL,
    RELAY_TO,
    RELEASED,
)
from sidecar.values.endpoints import is_address

_PART_OF: Final = {"app.kubernetes.io/part-of": "switchback"}


def route_of(service: RouteService) -> Route:
    """The Route of a Service of our namespace; it has no `relay_to` if the Service is none."""
    metadata, annotations = service.metadata, service.annotations
    spec = service.spec
    return Route(
        name=metadata.name,
        resource_version=metadata.resource_version,
        ours=metadata.labels is not None and metadata.labels.managed_by == MANAGER,
        relay_to=annotations.relay_to or "",
        port_backends=annotations.port_backends or "",
        headers=annotations.headers or "",
        endpoint_headers=annotations.endpoint_headers or "",
        subjects=annotations.subjects or "",
        balancers=annotations.balancers or "",
        released=annotations.released or "",
        ports=tuple(map(_listen_port, (spec.ports or ()) if spec else ())),
        selector=tuple(sorted(((spec.selector or {}) if spec else {}).items())),
        type=(spec.type if spec else None) or "ClusterIP",
        uid=metadata.uid,
        created=metadata.creation_timestamp or "",
        addresses=tuple(filter(is_address, (spec.cluster_ips or ()) if spec else ())),
    )


def _listen_port(port: RoutePort) -> ListenPort:
    listen = port.target_port if isinstance(port.target_port, int) else 0
    return ListenPort(port.port, listen or port.port, port.protocol or "TCP")


def manifest_of(route: Route, *, namespace: str) -> dict[str, Any]:
    """The new Service as the API server takes it; with both families where the cluster has both."""
    annotations = {key: text for key, text in _annotations(route).items() if text}
    metadata = {
        "name": route.name,
        "namespace": namespace,
        "labels": {MANAGED_BY: MANAGER, **_PART_OF},
        "annotations": annotations,
    }
    spec = {"selector": dict(route.selector), "ipFamilyPolicy": "PreferDualStack", "ports": _ports(route)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def patch_of(before: Route, after: Route) -> dict[str, Any]:
    """The merge patch that makes one Service of ours the other."""
    old, new = _annotations(before), _annotations(after)
    changed = {key: new[key] or None for key in new if new[key] != old[key]}
    spec: dict[str, Any] = {}
    if after.ports != before.ports:
        spec["ports"] = _ports(after)
    if after.selector != before.selector:
        wanted = dict(after.selector)
        spec["selector"] = {key: wanted.get(key) for key in {**dict(before.selector), **wanted}}
    if after.type != before.type:
        spec |= {"type": after.type, "externalName": None}
    metadata: dict[str, Any] = {"resourceVersion": before.resource_version}
    if changed:
        metadata["annotations"] = changed
    return {"metadata": metadata, **({"spec": spec} if spec else {})}


def _annotations(route: Route) -> dict[str, str]:
    return {
        RELAY_TO: route.relay_to,
        PORT_BACKENDS: route.port_backends,
        PROXY_PROTOCOL: route.headers,
        ENDPOINT_HEADERS: route.endpoint_headers,
        FOR: route.subjects,
        BALANCERS: route.balancers,
        RELEASED: route.released,
    }


def _ports(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": f"port-{one.port}", "port": one.port, "targetPort": one.listen, "protocol": one.protocol}
        for one in route.ports
    ]
