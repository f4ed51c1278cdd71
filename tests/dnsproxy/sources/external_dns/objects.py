"""Objects with annotations of external-dns, short enough for a table of tests."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dnsproxy.sources.external_dns import structs
from dnsproxy.sources.external_dns.dns_endpoint import DnsEndpoint
from dnsproxy.sources.ingress import IngressClass
from tests.dnsproxy.sources.gateway.objects import ACCEPTED

NEW: Final = "external-dns.kubernetes.io/"
OLD: Final = "external-dns.alpha.kubernetes.io/"
HOSTNAME, INTERNAL, TARGET = NEW + "hostname", NEW + "internal-hostname", NEW + "target"
CREATED: Final = "2026-01-02T03:04:05Z"


def metadata(annotations: Any, place: str, labels: Any = None) -> dict[str, Any]:
    """`place`: NAMESPACE/NAME."""
    namespace, _, name = place.partition("/")
    return {
        "name": name, "namespace": namespace, "creationTimestamp": CREATED, "annotations": annotations, "labels": labels
    }  # fmt: skip


def service(
    annotations: Any = None,
    *,
    type: str | None = "LoadBalancer",  # noqa: A002  # as in the API
    place: str = "shop/db",
    points: Any = ({"ip": "192.0.2.22"},),
    labels: Any = None,
    **spec: Any,
) -> structs.Service:
    """With the ClusterIP 10.96.0.7 and the load balancer 192.0.2.22, unless overridden."""
    spec = {"type": type, "clusterIP": "10.96.0.7", **spec}
    status = {"loadBalancer": {"ingress": list(points)}}
    return msgspec.convert(
        {"metadata": metadata(annotations, place, labels), "spec": spec, "status": status}, structs.Service
    )


def headless(annotations: Any = None, **spec: Any) -> structs.Service:
    return service(annotations, **{"type": "ClusterIP", "clusterIP": "None", "points": (), **spec})


def endpoint(address: str, hostname: str | None = None, *, ready: bool | None = True, **more: Any) -> dict[str, Any]:
    """A pod."""
    ref = {"kind": "Pod", "namespace": "shop", "name": "pod"}
    made = {"addresses": [address], "conditions": {"ready": ready}, "targetRef": ref, **more}
    return made | ({"hostname": hostname} if hostname is not None else {})


def endpoint_slice(
    *endpoints: Any, service: str = "db", place: str = "shop/db-1", family: str = "IPv4"
) -> structs.EndpointSlice:
    labels = {"kubernetes.io/service-name": service, "service.kubernetes.io/headless": ""}
    return msgspec.convert(
        {"metadata": metadata(None, place, labels), "addressType": family, "endpoints": list(endpoints)},
        structs.EndpointSlice,
    )


def ingress(
    annotations: Any = None, *, class_name: str | None = "nginx", place: str = "shop/web", points: Any = (), **more: Any
) -> structs.Ingress:
    return msgspec.convert(
        {
            "metadata": metadata(annotations, place, more.pop("labels", None)),
            "spec": {"ingressClassName": class_name, "rules": [{"host": "rule.example.org"}]},
            "status": {"loadBalancer": {"ingress": list(points)}},
        },
        structs.Ingress,
    )


def gateway(
    annotations: Any = None,
    *hosts: str | None,
    class_name: str = "envoy",
    place: str = "shop/edge",
    status: Any = ACCEPTED,
) -> structs.Gateway:
    """A listener for each host; without hosts one for every name."""
    listeners = [
        {"name": f"l{number}", "protocol": "HTTPS", "port": 443, "hostname": host}
        for number, host in enumerate(hosts or (None,))
    ]
    return msgspec.convert(
        {
            "metadata": metadata(annotations, place),
            "spec": {"gatewayClassName": class_name, "listeners": listeners},
            "status": status,
        },
        structs.Gateway,
    )


def ingress_class(name: str, *, default: bool = False) -> IngressClass:
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"} if default else None
    return msgspec.convert({"metadata": {"name": name, "annotations": annotations}}, IngressClass)


def record(name: str | None, rtype: str | None, *targets: str | None) -> dict[str, Any]:
    """An endpoint of a DNSEndpoint."""
    return {"dnsName": name, "recordType": rtype, "targets": list(targets), "recordTTL": 60}


def dns_endpoint(
    *endpoints: Any, place: str = "shop/records", annotations: Any = None, created: str = CREATED, **more: Any
) -> DnsEndpoint:
    about = metadata(annotations, place, more.pop("labels", None)) | {"creationTimestamp": created}
    return msgspec.convert({"metadata": about, "spec": {"endpoints": list(endpoints)}, **more}, DnsEndpoint)
