"""The objects of a big cluster, as a list of kinds whose objects are numbered. Pure.

The law: an object has the fields that its writers leave behind in a real cluster (managed fields aside, which the API
server adds): a doctor that reads too much must pay for it here, too. Texts that have an object's number keep their
length, so that one stored object is the template of all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.kit.apiserver import ingress

ZONE: Final = "big.example.org"
NAMESPACES: Final = 100
CONTROLLERS: Final = 4
MOST: Final = 100_000
"""Objects of one kind."""
_IMAGES: Final = 50
"""On each node, which is what a kubelet reports at most."""
_REPLICAS: Final = 3
_IMAGE: Final = "registry.example.org/team/service-{}@sha256:" + "0123456789abcdef" * 4

Manifest = dict[str, Any]


def name_of(number: int) -> str:
    """What an object is called, whatever its kind."""
    return f"b{number:05}"


def namespace_of(number: int) -> str:
    """Where it is, if it is in a namespace."""
    return f"big-{number % NAMESPACES:02}"


def hostname_of(number: int) -> str:
    """The host of an Ingress."""
    return f"{name_of(number)}.{ZONE}"


def class_of(number: int) -> str:
    """The class of an Ingress."""
    return f"public-{number % CONTROLLERS}"


def balancer_of(number: int) -> str:
    """The address of the load balancer of its class."""
    return f"127.0.9.1{number % CONTROLLERS}"


def texts_of(number: int) -> tuple[str, ...]:
    """Everything in which an object differs from another one of its kind."""
    return name_of(number), namespace_of(number), class_of(number), balancer_of(number)


@dataclass(frozen=True, slots=True)
class BigKind:
    """A kind of objects."""

    name: str
    plural: str
    path: str
    """Its collection; `{}` is the namespace."""
    key: str
    """The folder in etcd."""
    make: Callable[[int], Manifest]
    status: Callable[[int], Manifest] | None = None

    def collection(self, number: int) -> str:
        """Where an object is created."""
        return self.path.format(namespace_of(number))

    def stored_at(self, number: int) -> str:
        """Where etcd has it."""
        inside = f"{namespace_of(number)}/" if "{}" in self.path else ""
        return f"{self.key}/{inside}{name_of(number)}"


def _ingress(number: int) -> Manifest:
    annotations = {
        "cert-manager.io/cluster-issuer": "letsencrypt",
        "nginx.ingress.kubernetes.io/ssl-redirect": "true",
        "kubectl.kubernetes.io/last-applied-configuration": str(ingress(name_of(number), [hostname_of(number)])),
    }
    made = ingress(
        name_of(number),
        [hostname_of(number)],
        namespace=namespace_of(number),
        ingress_class=class_of(number),
        annotations=annotations,
    )
    return made | {"metadata": made["metadata"] | {"labels": _labels(number)}}


def _balanced(number: int) -> Manifest:
    return {"loadBalancer": {"ingress": [{"ip": balancer_of(number)}]}}


def _labels(number: int) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": name_of(number),
        "app.kubernetes.io/managed-by": "Helm",
        "helm.sh/chart": "service-1.2.3",
    }


def _metadata(number: int, **more: Any) -> Manifest:
    return {"name": name_of(number), "namespace": namespace_of(number), "labels": _labels(number), **more}


def _service(number: int) -> Manifest:
    ports = [{"name": name, "port": port, "targetPort": name} for name, port in (("http", 80), ("metrics", 9090))]
    selector = {"app.kubernetes.io/name": name_of(number)}
    annotations = {"meta.helm.sh/release-name": "service", "prometheus.io/scrape": "true"}
    return {"metadata": _metadata(number, annotations=annotations), "spec": {"ports": ports, "selector": selector}}


def _slice(number: int) -> Manifest:
    labels = {"kubernetes.io/service-name": name_of(number)}
    endpoints = [
        {
            "addresses": [f"10.244.{at}.7"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "nodeName": f"node-{at}",
            "targetRef": {"kind": "Pod", "name": f"{name_of(number)}-{at}", "namespace": namespace_of(number)},
        }
        for at in range(_REPLICAS)
    ]
    ports = [{"name": "http", "port": 8080, "protocol": "TCP"}]
    metadata = {"name": name_of(number), "namespace": namespace_of(number), "labels": labels}
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": ports}


def _workload(number: int, **spec: Any) -> Manifest:
    labels = {"app.kubernetes.io/name": name_of(number)}
    container = {
        "name": "main",
        "image": _IMAGE.format("main"),
        "args": ["--listen=:8080", "--metrics=:9090", "--log-format=json"],
        "env": [{"name": f"SETTING_{at}", "value": "x" * 20} for at in range(10)],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}},
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {"metadata": _metadata(number), "spec": {"selector": {"matchLabels": labels}, "template": template, **spec}}


def _deployment(number: int) -> Manifest:
    return _workload(number, replicas=_REPLICAS)


def _node(number: int) -> Manifest:
    annotations = {
        "node.alpha.kubernetes.io/ttl": "0",
        "csi.volume.kubernetes.io/nodeid": '{"csi.example.org":"1"}',
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }
    labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": "a"}
    metadata = {"name": name_of(number), "annotations": annotations, "labels": labels}
    networks = ["10.244.0.0/24"]
    return {
        "metadata": metadata,
        "spec": {"podCIDR": networks[0], "podCIDRs": networks, "providerID": f"example://{name_of(number)}"},
    }


def _node_status(number: int) -> Manifest:
    since = "2026-11-01T00:00:00Z"
    conditions = [
        {"type": kind, "status": "True", "reason": f"Kubelet{kind}", "message": f"kubelet reports {kind}",
         "lastHeartbeatTime": since, "lastTransitionTime": since}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]  # fmt: skip
    images = [{"names": [_IMAGE.format(at), f"{_IMAGE.format(at)[:40]}:v1"], "sizeBytes": 1} for at in range(_IMAGES)]
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name_of(number)}]
    return {"addresses": addresses, "conditions": conditions, "images": images, "capacity": {"cpu": "8"}}


NODES: Final = BigKind("Node", "nodes", "/api/v1/nodes", "/registry/minions", _node, _node_status)
SERVICES: Final = BigKind("Service", "services", "/api/v1/namespaces/{}/services", "/registry/services/specs", _service)
SLICES: Final = BigKind(
    "EndpointSlice",
    "endpointslices",
    "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
    "/registry/endpointslices",
    _slice,
)
DEPLOYMENTS: Final = BigKind(
    "Deployment",
    "deployments",
    "/apis/apps/v1/namespaces/{}/deployments",
    "/registry/deployments",
    _deployment,
)
DAEMON_SETS: Final = BigKind(
    "DaemonSet", "daemonsets", "/apis/apps/v1/namespaces/{}/daemonsets", "/registry/daemonsets", _workload
)
INGRESSES: Final = BigKind(
    "Ingress",
    "ingresses",
    "/apis/networking.k8s.io/v1/namespaces/{}/ingresses",
    "/registry/ingress",
    _ingress,
    _balanced,
)


@dataclass(frozen=True, slots=True)
class Size:
    """How many objects there are."""

    ingresses: int = 10_000
    services: int = 2_000
    nodes: int = 500

    @property
    def counts(self) -> Mapping[BigKind, int]:
        """By kind. Each Service has a Deployment and an EndpointSlice; a cluster has few DaemonSets."""
        return {
            NODES: self.nodes,
            DAEMON_SETS: min(self.services, 20),
            DEPLOYMENTS: self.services,
            SLICES: self.services,
            SERVICES: self.services,
            INGRESSES: self.ingresses,
        }

    def __str__(self) -> str:
        return f"{self.ingresses:,} Ingresses, {self.services:,} Services, {self.nodes:,} nodes"
