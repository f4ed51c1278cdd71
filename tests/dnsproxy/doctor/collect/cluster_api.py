"""An API server for the reader's tests: a mapping of paths, with failures and delays of requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import httpx2
import trio

from dnsproxy.cluster_dns.found import ServiceRef
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.doctor.collect.collecting import read_cluster
from dnsproxy.doctor.collect.places import Places
from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.judge.paths import find_paths
from sidecar.kubernetes.http import ApiClient
from tests.kit.faulty_api import cluster_at
from tests.kit.manifest_api import respond

GATEWAY_API: Final = "/apis/gateway.networking.k8s.io/v1"
PLACES: Final = Places(ServiceRef(), ObjectRef("switchback", "dnsproxy"))


class Api:
    """An API server that serves a mapping of paths; a list is served as `items`."""

    def __init__(
        self,
        objects: Mapping[str, Any],
        *,
        status: Mapping[str, int] | None = None,
        delay: Callable[[str], float] = lambda _: 0.0,
    ) -> None:
        self.objects = {"/version": {"gitVersion": "v1.34.4"}} | dict(objects)
        self.status = dict(status or {})
        self.delay = delay
        self.asked: list[tuple[str, str]] = []
        self.under_way = 0
        self.most_under_way = 0

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await trio.sleep(self.delay(request.url.path))
            return self.decide(request)
        finally:
            self.under_way -= 1

    def decide(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        self.asked.append((request.method, path))
        if path in self.status:
            return respond(self.status[path], b'{"kind": "Status", "message": "no"}')
        if path not in self.objects:
            return respond(404, b'{"kind": "Status", "code": 404}')
        found = self.objects[path]
        if isinstance(found, str):
            return respond(200, found.encode())
        if isinstance(found, list):
            start = int(request.url.params.get("continue", 0))
            size = int(request.url.params.get("limit", 500))
            more = {"continue": str(start + size)} if start + size < len(found) else {}
            found = {"metadata": more, "items": found[start : start + size]}
        return respond(200, json.dumps(found).encode())

    def client(self) -> ApiClient:
        return ApiClient(cluster_at("http://api.example.org"), transport=httpx2.MockTransport(self.answer))

    async def read(
        self, hostname: str = "", *, sources: tuple[str, ...] = (), progress: Callable[[str], None] = lambda _: None
    ) -> Facts:
        async with self.client() as client:
            facts, paths = await read_cluster(client, hostname, replace(PLACES, sources=sources), progress)
        assert paths == find_paths(facts)
        return facts


def workload(name: str, *, image: str = "x:1", namespace: str = "kube-system", args: Any = (), **fields: Any) -> Any:
    container = {"name": name, "image": image, "args": list(args), **fields}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"template": template}}


def service(name: str, namespace: str = "web", **spec: Any) -> Any:
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": name, "team": "secret-project"},
            "annotations": {
                "load-balancer.hetzner.cloud/location": "fsn1",
                "kubectl.kubernetes.io/last-applied-configuration": "a-secret",
            },
        },
        "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.80", "selector": {"app": name},
                 "ports": [{"port": 80, "name": "http"}, {"port": 443, "protocol": "UDP"}]} | spec,
        "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10", "ipMode": "VIP"}]}},
    }  # fmt: skip


INGRESS: Final[dict[str, Any]] = {
    "metadata": {"name": "shop", "namespace": "web"},
    "spec": {"rules": [{"host": "app.example.org"}, {"host": "bad host"}]},
    "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10"}]}},
}
INGRESSES: Final = "/apis/networking.k8s.io/v1/ingresses"
CLASSES: Final = "/apis/networking.k8s.io/v1/ingressclasses"
DAEMON_SETS: Final = "/apis/apps/v1/daemonsets"
MAPS: Final = "/api/v1/namespaces/kube-system/configmaps"
