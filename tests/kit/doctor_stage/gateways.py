"""Builders of the objects of the Gateway API for a state."""

from __future__ import annotations

from typing import Any, Final

from tests.kit import gateway_api
from tests.kit.doctor_stage.objects import Object, point

ENVOY: Final = "gateway.envoyproxy.io/gatewayclass-controller"
CLASS: Final = "public"
_NAMESPACE: Final = "web"


def gateway_class(controller: str = ENVOY) -> Object:
    return _made(
        {"kind": "GatewayClass", "metadata": {"name": CLASS}, "spec": {"controllerName": controller}}, namespace=None
    )


def gateway(hostname: str, *addresses: str, tls: bool = False) -> Object:
    """A Gateway with one listener; `addresses` are those of its status."""
    secret: dict[str, Any] = {"certificateRefs": [{"name": "tls"}]}
    more = {"protocol": "HTTPS", "port": 443, "tls": secret} if tls else {}
    made = _made(gateway_api.gateway(gateway_api.listener("web", hostname, **more)), namespace=_NAMESPACE)
    entries = [{"type": "IPAddress" if "ip" in point(one) else "Hostname", "value": one} for one in addresses]
    return made | {"status": {"addresses": entries}}


def http_route(hostname: str) -> Object:
    """An HTTPRoute of the Gateway."""
    made = gateway_api.route("HTTPRoute", hostname)
    return _made(made | {"metadata": {"name": "shop"}}, namespace=_NAMESPACE)


def _made(one: Object, *, namespace: str | None) -> Object:
    metadata = one["metadata"] | ({"namespace": namespace} if namespace else {})
    return {**one, "apiVersion": f"{gateway_api.GROUP}/v1", "metadata": metadata}
