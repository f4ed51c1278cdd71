"""Builders of the Kubernetes objects of a state, and the objects of the base cluster.

The law: an object is a complete manifest with its status; builders fill in only what the API server demands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.kit.apiserver import ingress as ingress_manifest
from tests.kit.gateway_api import GROUP
from tests.kit.manifest_cluster import manifests, pick

Object = dict[str, Any]

DNS_ADDRESS: Final = "10.96.0.10"
PUBLIC_DNS: Final = "192.0.2.53"
DNSPROXY: Final = "10.96.0.53"
"""The ClusterIP of an installed dnsproxy."""
CONTROLLER: Final = "10.96.0.80"
"""The ClusterIP of the controller in most states."""
BALANCER: Final = "203.0.113.10"
"""The address of its load balancer in most states."""
KEY: Final = "ingress-nginx/ingress-nginx-controller"
"""Its Service."""
NGINX: Final = "k8s.io/ingress-nginx"
TRAEFIK: Final = "traefik.io/ingress-controller"
WEB: Final = {"http": 80, "https": 443}
HEADER: Final = {"use-proxy-protocol": "true"}
NO_HEADER: Final = {"use-proxy-protocol": "false"}

_GROUPS: Final = {
    "ConfigMap": "/api/v1",
    "Node": "/api/v1",
    "Pod": "/api/v1",
    "Service": "/api/v1",
    "DaemonSet": "/apis/apps/v1",
    "Deployment": "/apis/apps/v1",
    "EndpointSlice": "/apis/discovery.k8s.io/v1",
    "Ingress": "/apis/networking.k8s.io/v1",
    "IngressClass": "/apis/networking.k8s.io/v1",
    "Gateway": f"/apis/{GROUP}/v1",
    "GatewayClass": f"/apis/{GROUP}/v1",
    "HTTPRoute": f"/apis/{GROUP}/v1",
}
_PLURALS: Final = {"Ingress": "ingresses", "IngressClass": "ingressclasses", "GatewayClass": "gatewayclasses"}
_CLUSTER_WIDE: Final = frozenset(["GatewayClass", "IngressClass", "Node"])


def collection_of(one: Object) -> str:
    """The path of an object's collection."""
    kind = one["kind"]
    plural = _PLURALS.get(kind, f"{kind.lower()}s")
    if kind in _CLUSTER_WIDE:
        return f"{_GROUPS[kind]}/{plural}"
    return f"{_GROUPS[kind]}/namespaces/{one['metadata']['namespace']}/{plural}"


def path_of(one: Object) -> str:
    """The path of an object."""
    return f"{collection_of(one)}/{one['metadata']['name']}"


def point(address: str, mode: str = "VIP") -> dict[str, str]:
    """An entry of a load balancer's status: an address with its ipMode, or a hostname."""
    if address.replace(".", "").isdigit() or ":" in address:
        return {"ip": address, "ipMode": mode}
    return {"hostname": address}


def service(
    key: str,
    cluster_ips: Sequence[str] | str,
    *,
    points: Sequence[dict[str, str]] = (),
    kind: str = "LoadBalancer",
    ports: Mapping[str, int] = WEB,
    labels: Mapping[str, str] | None = None,
    selector: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    protocol: str = "TCP",
    **spec: Any,
) -> Object:
    """A Service that selects the `workload` of its namespace.

    `points` is its load balancer's status; `spec` overrides fields.
    """
    namespace, _, name = key.partition("/")
    ips = [cluster_ips] if isinstance(cluster_ips, str) else list(cluster_ips)
    app = {"app.kubernetes.io/name": namespace, "app.kubernetes.io/component": "controller"}
    body = {
        "type": kind,
        "clusterIP": ips[0],
        "clusterIPs": ips,
        "ports": [{"name": name_of_port, "port": port, "protocol": protocol} for name_of_port, port in ports.items()],
        "selector": dict(app if selector is None else selector),
    }
    metadata = {
        "namespace": namespace,
        "name": name,
        "labels": dict(app if labels is None else labels),
        "annotations": dict(annotations or {}),
    }
    made = _made("Service", metadata, body | spec)
    return made | {"status": {"loadBalancer": {"ingress": list(points)}}} if points else made


def workload(
    key: str,
    *arguments: str,
    kind: str = "Deployment",
    image: str = "registry.k8s.io/ingress-nginx/controller:v1.13.3",
    labels: Mapping[str, str] | None = None,
    replicas: int = 1,
    variables: Mapping[str, str] | None = None,
) -> Object:
    """A Deployment or DaemonSet of one container, whose labels are those of `service` of the same namespace."""
    namespace, _, name = key.partition("/")
    app = dict(labels or {"app.kubernetes.io/name": namespace, "app.kubernetes.io/component": "controller"})
    env = [{"name": variable, "value": value} for variable, value in (variables or {}).items()]
    pod = {"containers": [{"name": name, "image": image, "args": list(arguments), "env": env}]}
    spec: dict[str, Any] = {
        "selector": {"matchLabels": app},
        "template": {"metadata": {"labels": app}, "spec": pod},
    }
    if kind == "Deployment":
        spec["replicas"] = replicas
    return _made(kind, {"namespace": namespace, "name": name, "labels": app}, spec)


def config_map(key: str, data: Mapping[str, str]) -> Object:
    namespace, _, name = key.partition("/")
    return {"kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}, "data": dict(data)}


def ingress_class(name: str = "nginx", controller: str = NGINX) -> Object:
    return _made("IngressClass", {"name": name}, {"controller": controller})


def ingress(
    host: str,
    *addresses: str,
    name: str = "shop",
    namespace: str = "web",
    class_name: str | None = "nginx",
    tls: bool = True,
) -> Object:
    """An Ingress for one host; `addresses` are those of its status."""
    made = ingress_manifest(name, [host], namespace=namespace, ingress_class=class_name)
    if not tls:
        del made["spec"]["tls"]
    points = [{"ip": one} if "ip" in point(one) else point(one) for one in addresses]
    return made | {"status": {"loadBalancer": {"ingress": points}}} if points else made


def endpoint_slice(key: str, *addresses: str, ready: bool = True, ports: Mapping[str, int] = WEB) -> Object:
    """The EndpointSlice of a Service; without addresses it has no endpoint."""
    namespace, _, name = key.partition("/")
    metadata = {"namespace": namespace, "name": name, "labels": {"kubernetes.io/service-name": name}}
    return {
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": "IPv6" if any(":" in one for one in addresses) else "IPv4",
        "endpoints": [{"addresses": [one], "conditions": {"ready": ready}} for one in addresses],
        "ports": [{"name": name_of_port, "port": port, "protocol": "TCP"} for name_of_port, port in ports.items()],
    }


def node(provider: str = "", pod_network: str = "10.244.0.0/24", name: str = "one") -> Object:
    """A node; `provider` is its providerID: `hcloud://1`."""
    spec: dict[str, Any] = {"podCIDR": pod_network, "podCIDRs": [pod_network]}
    return _made("Node", {"name": name}, spec | ({"providerID": provider} if provider else {}))


def kube_proxy(version: str = "v1.34.4") -> Object:
    """The DaemonSet of kube-proxy."""
    image = f"registry.k8s.io/kube-proxy:{version}"
    return workload("kube-system/kube-proxy", kind="DaemonSet", image=image, labels={"k8s-app": "kube-proxy"})


def cilium(version: str = "v1.18.3", **settings: str) -> tuple[Object, ...]:
    """Cilium instead of kube-proxy; `settings` of cilium-config have underscores for hyphens."""
    image = f"quay.io/cilium/cilium:{version}"
    data = {"kube-proxy-replacement": "true"} | {key.replace("_", "-"): value for key, value in settings.items()}
    return (
        workload("kube-system/cilium", kind="DaemonSet", image=image, labels={"k8s-app": "cilium"}),
        config_map("kube-system/cilium-config", data),
    )


def antrea(version: str = "v2.4.1", *, takes_addresses: bool) -> tuple[Object, ...]:
    """Antrea instead of kube-proxy; `takes_addresses` is its antreaProxy.proxyLoadBalancerIPs."""
    settings = f"antreaProxy:\n  enable: true\n  proxyLoadBalancerIPs: {str(takes_addresses).lower()}\n"
    image = f"docker.io/antrea/antrea-agent-ubuntu:{version}"
    return (
        workload("kube-system/antrea-agent", kind="DaemonSet", image=image, labels={"component": "antrea-agent"}),
        config_map("kube-system/antrea-config", {"antrea-agent.conf": settings}),
    )


def nginx_controller(
    *points: dict[str, str],
    settings: Mapping[str, str] = HEADER,
    key: str = KEY,
    cluster_ip: str = CONTROLLER,
    class_name: str = "nginx",
    replicas: int = 1,
    **options: Any,
) -> tuple[Object, ...]:
    """ingress-nginx with its IngressClass, Service, Deployment and ConfigMap; `options` as for `service`."""
    words = ("/nginx-ingress-controller", f"--configmap=$(POD_NAMESPACE)/{key.partition('/')[2]}")
    return (
        ingress_class(class_name),
        service(key, cluster_ip, points=points, **options),
        workload(key, *words, replicas=replicas),
        config_map(key, settings),
    )


def _made(kind: str, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Object:
    return {"kind": kind, "metadata": dict(metadata), "spec": dict(spec)}


def _from_corpus(kind: str, name: str) -> Object:
    """An object of the corpus, without the fields that the API server sets."""
    one = pick(manifests("kubeadm"), kind, name)
    kept = {key: one["metadata"][key] for key in ("name", "labels", "annotations") if key in one["metadata"]}
    made = {key: value for key, value in one.items() if key not in ("status", "apiVersion")}
    return made | {"metadata": kept | {"namespace": "kube-system"}}


KUBE_PROXY: Final = kube_proxy()
BASE: Final = (
    _from_corpus("Service", "kube-dns"),
    _from_corpus("ConfigMap", "coredns"),
    _from_corpus("Deployment", "coredns"),
    node(),
)
"""The objects of every state, beside those of its plane. The pods' network is 10.244.0.0/24."""
