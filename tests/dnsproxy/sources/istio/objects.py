"""Objects of Istio as in a manifest, short enough for a table of tests."""

from __future__ import annotations

from typing import Any

import msgspec

from dnsproxy.sources.istio import structs

OLD, NEW = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"
INGRESS = {"istio": "ingressgateway"}
INGRESS_CLASS = "istio=ingressgateway"


def metadata(place: str, *, created: str = OLD, **more: Any) -> dict[str, Any]:
    """`place`: NAMESPACE/NAME."""
    namespace, _, name = place.rpartition("/")
    return {"name": name, "namespace": namespace, "creationTimestamp": created, "resourceVersion": "1", **more}


def gateway(*hosts: Any, place: str = "infra/main", selector: Any = INGRESS, **about: Any) -> structs.Gateway:
    """With one server that has these hosts; `about`: `created`, `annotations`, `labels`."""
    server = {"port": {"number": 443, "name": "https", "protocol": "HTTPS"}, "hosts": list(hosts)}
    spec = {"selector": selector, "servers": [server]}
    return msgspec.convert({"metadata": metadata(place, **about), "spec": spec}, structs.Gateway)


def service(
    *hosts: Any, place: str = "web/app", gateways: Any = ("infra/main",), export_to: Any = None, **about: Any
) -> structs.VirtualService:
    """Bound to the Gateway infra/main, unless `gateways` is given."""
    spec = {"hosts": list(hosts), "gateways": gateways and list(gateways), "exportTo": export_to}
    return msgspec.convert({"metadata": metadata(place, **about), "spec": spec}, structs.VirtualService)
