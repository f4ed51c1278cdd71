"""Services and EndpointSlices for tests, and an API server in memory that has them."""

from __future__ import annotations

from typing import Any, Final

from tests.kit.live_api import LiveApi

SPACE: Final = "web"
READY: Final = {"ready": True, "serving": True, "terminating": False}
LEAVING: Final = {"ready": False, "serving": True, "terminating": True}
PORTS: Final = ({"name": "http", "port": 80}, {"name": "https", "port": 443}, {"name": "ssh", "port": 22})


def serving_api() -> LiveApi:
    """An API server without objects."""
    api = LiveApi(lists=())
    api.provide("v1", "services")
    api.provide("discovery.k8s.io/v1", "endpointslices")
    return api


def put_service(api: LiveApi, name: str) -> None:
    """A Service with PORTS."""
    metadata = {"name": name, "namespace": SPACE}
    api.put("", "services", {"metadata": metadata, "spec": {"ports": list(PORTS)}})


def put_slice(
    api: LiveApi, service: str, *hosts: str, port: int = 8443, name: str = "a", conditions: Any = READY
) -> None:
    """A slice whose pods have every port of PORTS at the same number."""
    api.put(
        "discovery.k8s.io",
        "endpointslices",
        {
            "metadata": {
                "name": f"{service}-{name}",
                "namespace": SPACE,
                "labels": {"kubernetes.io/service-name": service},
            },
            "addressType": "IPv4",
            "ports": [{"name": one["name"], "port": port, "protocol": "TCP"} for one in PORTS],
            "endpoints": [{"addresses": [host], "conditions": conditions} for host in hosts],
        },
    )
