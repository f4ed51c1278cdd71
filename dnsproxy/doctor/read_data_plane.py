"""Reading the data plane: kube-proxy and the CNI plugins that take its place, with the settings that count.

The law: recognised by the names of their DaemonSets and images, versions by the images' tags; of their ConfigMaps only
the few settings that a judgement needs are kept.
"""

from __future__ import annotations

import re
from typing import Final

from dnsproxy.cluster_dns.image import parse_image
from dnsproxy.cluster_dns.servers import pod_of
from dnsproxy.cluster_dns.structs import ConfigMap, Workload
from dnsproxy.doctor.facts import Component
from dnsproxy.doctor.reader import Reader
from dnsproxy.doctor.short_circuit import ANTREA, CILIUM, KUBE_PROXY
from dnsproxy.doctor.structs import FelixConfiguration, Node

_MODE: Final = re.compile(r"^mode:\s*[\"']?(\w*)", re.MULTILINE)
_PROXY_LOAD_BALANCER_IPS: Final = re.compile(r"^\s*proxyLoadBalancerIPs:\s*(\w+)", re.MULTILINE)
_NAMES: Final = {
    "kube-proxy": KUBE_PROXY,
    "cilium": CILIUM,
    "anetd": CILIUM,
    "antrea-agent": ANTREA,
    "calico-node": "calico",
    "ovnkube-node": "ovn-kubernetes",
    "kube-router": "kube-router",
}
_CONFIG_MAPS: Final = {
    KUBE_PROXY: "kube-proxy",
    CILIUM: "cilium-config",
    ANTREA: "antrea-config",
}
_FELIX: Final = "/apis/crd.projectcalico.org/v1/felixconfigurations/default"


async def read_provider(reader: Reader) -> str:
    """The scheme of a node's providerID: `hcloud` of `hcloud://123`; empty where nobody says."""
    nodes = await reader.list("/api/v1/nodes", Node, "list nodes", most=1)
    named = next((node.spec.provider_id for node in nodes or () if node.spec and node.spec.provider_id), "")
    return re.split(r"[:.]", named, maxsplit=1)[0]


async def read_components(reader: Reader) -> tuple[Component, ...]:
    """Who carries connections in this cluster."""
    workloads = await reader.list("/apis/apps/v1/daemonsets", Workload, "list daemonsets.apps")
    found = []
    for workload in workloads or ():
        name = _NAMES.get(workload.metadata.name)
        if name is not None:
            found.append(await _read_component(reader, name, workload))
    return tuple(sorted(found, key=lambda component: component.name))


async def _read_component(reader: Reader, name: str, workload: Workload) -> Component:
    namespace = workload.metadata.namespace or "default"
    containers = pod_of(workload).containers or ()
    main = next((one for one in containers if _is_main(one.name, name)), containers[0] if containers else None)
    version = parse_image(main.image or "").tag if main else ""
    words = [*(main.command or ()), *(main.args or ())] if main else []
    settings = await _read_settings(reader, name, namespace, words)
    return Component(name, f"DaemonSet {namespace}/{workload.metadata.name}", version, settings)


def _is_main(container: str, name: str) -> bool:
    return container in (name, f"{name}-agent", f"{name}-node", "cilium-agent", "antrea-agent", "kube-proxy")


async def _read_settings(reader: Reader, name: str, namespace: str, words: list[str]) -> dict[str, str]:
    data = {}
    if name in _CONFIG_MAPS:
        data = await _read_config_map(reader, namespace, _CONFIG_MAPS[name])
    if name == KUBE_PROXY:
        return mode_of(data.get("config.conf", ""), words)
    if name == CILIUM:
        keys = ("kube-proxy-replacement", "bpf-lb-sock")
        return {key: data[key] for key in keys if key in data}
    if name == ANTREA:
        found = _PROXY_LOAD_BALANCER_IPS.search(data.get("antrea-agent.conf", ""))
        return {"proxyLoadBalancerIPs": found[1]} if found else {}
    if name == "calico":
        felix = await reader.get(_FELIX, FelixConfiguration, "get felixconfigurations default", quiet=True)
        enabled = bool(felix and (felix.spec or {}).get("bpfEnabled") is True)
        return {"bpfEnabled": "true", "service-proxy": "true"} if enabled else {}
    if name == "kube-router":
        return {"service-proxy": "true"} if "--run-service-proxy=true" in words else {}
    return {"service-proxy": "true"}


def mode_of(configuration: str, words: list[str]) -> dict[str, str]:
    """The mode of kube-proxy by its flag or its file; nothing where neither says, which is iptables on Linux."""
    flag = next((word.partition("=")[2] for word in words if word.startswith("--proxy-mode=")), "")
    found = _MODE.search(configuration)
    mode = flag or (found[1] if found else "")
    return {"mode": mode} if mode else {}


async def _read_config_map(reader: Reader, namespace: str, name: str) -> dict[str, str]:
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
    found = await reader.get(path, ConfigMap, f"get configmaps {name} in namespace {namespace}")
    return (found.data or {}) if found else {}
