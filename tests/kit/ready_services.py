"""The endpoints of a Service on an API server without controllers: one pod that is ready, or is not."""

from __future__ import annotations

from typing import Any

from tests.kit.apiserver import ApiServer


def put_endpoint(server: ApiServer, key: str, *, ready: bool = True) -> None:
    """Create or replace the EndpointSlices of the Service `NAMESPACE/NAME`, one per family; the pod has its ports."""
    namespace, _, name = key.partition("/")
    service = server.request("GET", f"/api/v1/namespaces/{namespace}/services/{name}")
    for family in service["spec"]["ipFamilies"]:
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        one = _slice_of(service, family, ready=ready)
        names = {other["metadata"]["name"] for other in server.request("GET", path)["items"]}
        if one["metadata"]["name"] in names:
            server.request("PUT", f"{path}/{one['metadata']['name']}", one)
        else:
            server.request("POST", path, one)


def delete_endpoint(server: ApiServer, key: str) -> None:
    """Delete the EndpointSlices of a Service."""
    namespace, _, name = key.partition("/")
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    for one in server.request("GET", path)["items"]:
        if one["metadata"]["labels"]["kubernetes.io/service-name"] == name:
            server.request("DELETE", f"{path}/{one['metadata']['name']}")


def _slice_of(service: dict[str, Any], family: str, *, ready: bool) -> dict[str, Any]:
    name, ports = service["metadata"]["name"], service["spec"]["ports"]
    return {
        "metadata": {"name": f"{name}-{family.lower()}", "labels": {"kubernetes.io/service-name": name}},
        "addressType": family,
        "ports": [{"name": one.get("name", ""), "port": one["port"], "protocol": one["protocol"]} for one in ports],
        "endpoints": [
            {"addresses": ["192.0.2.7" if family == "IPv4" else "2001:db8::7"], "conditions": {"ready": ready}}
        ],
    }
