"""Reads workloads: the programs of the data plane.

The law: kube-proxy and CNI plugins are found by their DaemonSets (data_plane_workloads.py), their versions by the tags
of the images. Only the settings that a judgement needs are kept; an absent key is absent, because a default is not
guessed. Tested in tests/dnsproxy/doctor/collect/test_read_workloads.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from dnsproxy.cluster_dns.image import parse_image
from dnsproxy.cluster_dns.servers import pod_of
from dnsproxy.doctor.collect.data_plane_workloads import CALICO, data_plane_workloads
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.collect.structs import FelixConfiguration
from dnsproxy.doctor.facts.model import Component
from dnsproxy.doctor.judge.short_circuit import ANTREA, CILIUM, EXPERIMENTAL_LB, KUBE_PROXY
from sidecar.kubernetes.structs.workload import Container, Workload
from sidecar.loop.side_by_side import read_each

_MODE: Final = re.compile(r"^mode:\s*[\"']?(\w*)", re.MULTILINE)
_CLUSTER_CIDR: Final = re.compile(r"^clusterCIDR:[ \t]*[\"']?([0-9A-Fa-f.:/,]+)", re.MULTILINE)
_PROXY_LOAD_BALANCER_IPS: Final = re.compile(r"^\s*proxyLoadBalancerIPs:\s*(\w+)", re.MULTILINE)
CILIUM_CONFIG: Final = "cilium-config"
_CONFIG_MAPS: Final = {
    KUBE_PROXY: "kube-proxy",
    CILIUM: CILIUM_CONFIG,
    ANTREA: "antrea-config",
}
CILIUM_KEYS: Final = (
    "kube-proxy-replacement", "bpf-lb-sock", "ipam", "cluster-pool-ipv4-cidr", "cluster-pool-ipv6-cidr",
    "enable-ingress-proxy-protocol", "enable-gateway-api-proxy-protocol", EXPERIMENTAL_LB,
)  # fmt: skip
_POOLS: Final = ("CALICO_IPV4POOL_CIDR", "CALICO_IPV6POOL_CIDR")
_FELIX: Final = "/apis/crd.projectcalico.org/v1/felixconfigurations/default"


async def read_daemon_sets(reader: Reader) -> list[Workload] | None:
    """Every DaemonSet of the cluster; None if they could not be read."""
    return await reader.list("/apis/apps/v1/daemonsets", Workload, "list daemonsets.apps")


async def read_components(reader: Reader, daemon_sets: Iterable[Workload]) -> tuple[Component, ...]:
    """The programs that carry connections in this cluster, one of each name."""
    found = await read_each(lambda one: _read_component(reader, *one), data_plane_workloads(daemon_sets))
    return tuple(sorted(found, key=lambda component: (component.name, component.workload)))


async def _read_component(reader: Reader, name: str, workload: Workload) -> Component:
    namespace = workload.metadata.namespace or "default"
    containers = pod_of(workload).containers or ()
    main = next((one for one in containers if _is_main(one.name, name)), containers[0] if containers else None)
    version = parse_image(main.image or "").tag if main else ""
    settings = await _read_component_settings(reader, name, namespace, main or Container(""))
    return Component(name, f"DaemonSet {namespace}/{workload.metadata.name}", version, settings)


def _is_main(container: str, name: str) -> bool:
    return container in (name, f"{name}-agent", f"{name}-node", "cilium-agent", "antrea-agent", "kube-proxy")


async def _read_component_settings(reader: Reader, name: str, namespace: str, container: Container) -> dict[str, str]:
    words = [*(container.command or ()), *(container.args or ())]
    data: Mapping[str, str] = {}
    if name in _CONFIG_MAPS:
        data = await reader.config_map(namespace, _CONFIG_MAPS[name]) or {}
    if name == KUBE_PROXY:
        configuration = data.get("config.conf", "")
        return mode_of(configuration, words) | cluster_cidr_of(configuration, words)
    if name == CILIUM:
        return {key: data[key] for key in CILIUM_KEYS if key in data}
    if name == ANTREA:
        found = _PROXY_LOAD_BALANCER_IPS.search(data.get("antrea-agent.conf", ""))
        return {"proxyLoadBalancerIPs": found[1]} if found else {}
    if name == CALICO:
        felix = await reader.get(_FELIX, FelixConfiguration, "get felixconfigurations default")
        enabled = bool(felix and (felix.spec or {}).get("bpfEnabled") is True)
        return ({"bpfEnabled": "true", "service-proxy": "true"} if enabled else {}) | _pools(container)
    if name == "kube-router":
        return {"service-proxy": "true"} if "--run-service-proxy=true" in words else {}
    return {"service-proxy": "true"}


def _pools(container: Container) -> dict[str, str]:
    """The networks of Calico's first pools, if its manifest names them."""
    return {one.name: one.value for one in container.env or () if one.name in _POOLS and one.value}


def mode_of(configuration: str, words: list[str]) -> dict[str, str]:
    """The mode of kube-proxy from its flag or its file; empty without both, which means iptables on Linux."""
    flag = next((word.partition("=")[2] for word in words if word.startswith("--proxy-mode=")), "")
    found = _MODE.search(configuration)
    mode = flag or (found[1] if found else "")
    return {"mode": mode} if mode else {}


def cluster_cidr_of(configuration: str, words: list[str]) -> dict[str, str]:
    """The networks of the pods from kube-proxy's flag or its file; empty without both."""
    flag = next((word.partition("=")[2] for word in words if word.startswith("--cluster-cidr=")), "")
    found = _CLUSTER_CIDR.search(configuration)
    networks = flag or (found[1] if found else "")
    return {"clusterCIDR": networks} if networks else {}
