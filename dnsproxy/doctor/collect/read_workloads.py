"""Reads workloads: the controllers' settings about the PROXY protocol, and the programs of the data plane.

The law: a controller is found by its Service's selector, its ConfigMap by the controller's arguments; kube-proxy and
CNI plugins are found by the names of their DaemonSets, their versions by the tags of the images. Only the settings that
a judgement needs are kept. A controller's defaults are not guessed: an absent key is absent. Tested in
tests/dnsproxy/doctor/collect/test_collecting.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from dnsproxy.cluster_dns.image import parse_image
from dnsproxy.cluster_dns.servers import labels_of, pod_of
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.collect.structs import FelixConfiguration, Node
from dnsproxy.doctor.facts.model import Component, Service
from dnsproxy.doctor.judge.short_circuit import ANTREA, CILIUM, KUBE_PROXY
from sidecar.kubernetes.structs.network import Service as RawService
from sidecar.kubernetes.structs.workload import Workload

KEYS: Final = ("use-proxy-protocol", "proxy-real-ip-cidr", "proxy-protocol", "use-forwarded-headers")
_CONFIG_MAP: Final = re.compile(r"--config-?map[= ](?:([^/]+)/)?(.+)")
_NAMESPACE: Final = re.compile(r"\$\((?:POD_)?NAMESPACE\)")
_TRUSTED: Final = re.compile(r"--entrypoints\.[\w-]+\.proxyprotocol\.trustedips=(.*)", re.IGNORECASE)
_INSECURE: Final = re.compile(r"--entrypoints\.[\w-]+\.proxyprotocol\.insecure(=true)?", re.IGNORECASE)
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


async def read_settings(
    reader: Reader, services: Iterable[Service], raw: Mapping[str, RawService]
) -> tuple[Service, ...]:
    """The Services with the settings of their controllers."""
    found: dict[str, list[Workload]] = {}
    done = []
    for service in services:
        namespace = service.key.partition("/")[0]
        selector = _selector(raw.get(service.key))
        if selector and namespace not in found:
            found[namespace] = await _read_workloads(reader, namespace)
        workload = next((one for one in found.get(namespace, ()) if selector.items() <= labels_of(one).items()), None)
        done.append(service if workload is None or not selector else await _with_settings(reader, service, workload))
    return tuple(done)


def _selector(raw: RawService | None) -> Mapping[str, str]:
    return (raw.spec.selector or {}) if raw is not None and raw.spec is not None else {}


async def _read_workloads(reader: Reader, namespace: str) -> list[Workload]:
    workloads: list[Workload] = []
    for plural in ("deployments", "daemonsets"):
        path = f"/apis/apps/v1/namespaces/{namespace}/{plural}"
        workloads += await reader.list(path, Workload, f"list {plural}.apps in namespace {namespace}") or []
    return workloads


async def _with_settings(reader: Reader, service: Service, workload: Workload) -> Service:
    namespace = workload.metadata.namespace or service.key.partition("/")[0]
    words = [
        word
        for container in pod_of(workload).containers or ()
        for word in (*(container.command or ()), *(container.args or ()))
    ]
    settings = settings_of_words(words)
    if settings:
        return replace(service, settings=settings, settings_from=f"workload {namespace}/{workload.metadata.name}")
    named = config_map_of(words, namespace)
    if named is None:
        return service
    where, name = named
    data = await reader.config_map(where, name)
    settings = {key: data[key] for key in KEYS if key in data}
    return replace(service, settings=settings, settings_from=f"ConfigMap {where}/{name}") if settings else service


def config_map_of(words: Iterable[str], namespace: str) -> tuple[str, str] | None:
    """Namespace and name of the ConfigMap in `--configmap=NAMESPACE/NAME`."""
    for word in words:
        found = _CONFIG_MAP.fullmatch(word)
        if found is not None:
            where = _NAMESPACE.sub(namespace, found[1] or namespace)
            name = _NAMESPACE.sub(namespace, found[2])
            return None if "$(" in where + name else (where, name)
    return None


def settings_of_words(words: Iterable[str]) -> dict[str, str]:
    """The networks from which Traefik accepts the header, by its arguments."""
    settings: dict[str, str] = {}
    for word in words:
        trusted = _TRUSTED.fullmatch(word)
        if trusted is not None:
            settings["trusted-ips"] = trusted[1]
        elif _INSECURE.fullmatch(word):
            settings["trusted-ips"] = "0.0.0.0/0,::/0"
    return settings


async def read_provider(reader: Reader) -> str:
    """The scheme of a node's providerID: `hcloud` of `hcloud://123`; empty if no node has one."""
    nodes = await reader.list("/api/v1/nodes", Node, "list nodes", most=1)
    named = next((node.spec.provider_id for node in nodes or () if node.spec and node.spec.provider_id), "")
    return re.split(r"[:.]", named, maxsplit=1)[0]


async def read_components(reader: Reader) -> tuple[Component, ...]:
    """The programs that carry connections in this cluster."""
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
    settings = await _read_component_settings(reader, name, namespace, words)
    return Component(name, f"DaemonSet {namespace}/{workload.metadata.name}", version, settings)


def _is_main(container: str, name: str) -> bool:
    return container in (name, f"{name}-agent", f"{name}-node", "cilium-agent", "antrea-agent", "kube-proxy")


async def _read_component_settings(reader: Reader, name: str, namespace: str, words: list[str]) -> dict[str, str]:
    data: Mapping[str, str] = {}
    if name in _CONFIG_MAPS:
        data = await reader.config_map(namespace, _CONFIG_MAPS[name])
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
    """The mode of kube-proxy from its flag or its file; empty without both, which means iptables on Linux."""
    flag = next((word.partition("=")[2] for word in words if word.startswith("--proxy-mode=")), "")
    found = _MODE.search(configuration)
    mode = flag or (found[1] if found else "")
    return {"mode": mode} if mode else {}
