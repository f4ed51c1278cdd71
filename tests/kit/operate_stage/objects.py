"""Builders of the Kubernetes objects of the stage; those of the doctor's stage are used where they fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sidecar.values.endpoints import is_address
from tests.kit import gateway_api

OWN: Final = "switchback"
CLUSTER_DNS: Final = "10.96.0.10"
BALANCER: Final = "203.0.113.10"
"""The address of the load balancer in most tests."""
WEB: Final = {"http": 80, "https": 443}
RELAY_LABELS: Final = {"app.kubernetes.io/name": "relay"}
DNSPROXY_LABELS: Final = {"app.kubernetes.io/name": "dnsproxy"}

Object = dict[str, Any]


def vip(*addresses: str, mode: str = "VIP") -> list[Object]:
    """A load balancer status with these addresses."""
    return [{"ip": address, "ipMode": mode} for address in addresses]


def named(*hostnames: str) -> list[Object]:
    """A load balancer status with these hostnames."""
    return [{"hostname": hostname} for hostname in hostnames]


def service(
    name: str,
    namespace: str,
    ports: Mapping[str, int] | Sequence[Object],
    *,
    selector: Mapping[str, str] | None = None,
    kind: str = "ClusterIP",
    points: Sequence[Object] = (),
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A Service; ports by name are those of the pods too."""
    listed = (
        [{"name": key, "port": port, "targetPort": port, "protocol": "TCP"} for key, port in ports.items()]
        if isinstance(ports, Mapping)
        else list(ports)
    )
    metadata = {"name": name, "namespace": namespace, "annotations": dict(annotations or {})}
    body: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"type": kind, "ports": listed, "selector": dict(selector or {"app": name}), **spec},
    }
    return body | ({"status": {"loadBalancer": {"ingress": list(points)}}} if points else {})


def pod(name: str, namespace: str, labels: Mapping[str, str], *addresses: str, ready: bool = True) -> Object:
    """A pod that runs at an address."""
    container = {"name": "program", "image": "localhost/program:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {"containers": [container], "nodeName": "stage", "terminationGracePeriodSeconds": 0},
        "status": pod_status(*addresses, ready=ready),
    }


def pod_status(*addresses: str, ready: bool) -> Object:
    """The status that a kubelet would report."""
    said = "True" if ready else "False"
    return {
        "phase": "Running",
        "podIP": addresses[0],
        "podIPs": [{"ip": one} for one in addresses],
        "conditions": [{"type": kind, "status": said} for kind in ("Ready", "ContainersReady")],
    }


def ingress_class(name: str, controller: str = "example.org/controller", **metadata: Any) -> Object:
    """An IngressClass."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": name, **metadata},
        "spec": {"controller": controller},
    }


def gateway(
    name: str, host: str, *addresses: str, namespace: str = "infra", gateway_class: str = "public", **metadata: Any
) -> tuple[Object, Object]:
    """A Gateway with one HTTPS listener, accepted at these addresses or hostnames, and a route for its host."""
    tls = {"certificateRefs": [{"name": "tls"}]}
    listener = gateway_api.listener("web", host, protocol="HTTPS", port=443, tls=tls)
    made = gateway_api.gateway(listener, name=name, gatewayClassName=gateway_class)
    about = {"reason": "Accepted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    entries = [{"type": "IPAddress" if is_address(one) else "Hostname", "value": one} for one in addresses]
    status = {"conditions": [{"type": "Accepted", "status": "True", **about}], "addresses": entries}
    route = gateway_api.route("HTTPRoute", host, parent=name)
    return (
        {**made, "metadata": {"name": name, "namespace": namespace, **metadata}, "status": status},
        {**route, "metadata": {"name": name, "namespace": namespace}},
    )


def ingress(
    name: str, host: str, ingress_class_name: str, *, points: Sequence[Object] = (), namespace: str = "web"
) -> Object:
    """An Ingress with one host, under TLS, and its status."""
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    spec = {
        "ingressClassName": ingress_class_name,
        "rules": [{"host": host, "http": {"paths": [path]}}],
        "tls": [{"hosts": [host], "secretName": "tls"}],
    }
    status = [{key: text for key, text in one.items() if key != "ipMode"} for one in points]
    body: Object = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    return body | ({"status": {"loadBalancer": {"ingress": status}}} if status else {})
