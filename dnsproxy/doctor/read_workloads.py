"""Reading controllers: what the settings behind a Service say of the PROXY protocol.

The law: from the Service's selector to its workload, from that to the ConfigMap that its arguments name; of it only the
keys below are kept. What a controller does by default nobody claims to know: an absent key is absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from dnsproxy.cluster_dns.servers import labels_of, pod_of
from dnsproxy.cluster_dns.structs import ConfigMap, Workload
from dnsproxy.doctor.facts import Service
from dnsproxy.doctor.reader import Reader
from dnsproxy.doctor.structs import Service as RawService

KEYS: Final = ("use-proxy-protocol", "proxy-real-ip-cidr", "proxy-protocol", "use-forwarded-headers")
_CONFIG_MAP: Final = re.compile(r"--config-?map[= ](?:([^/]+)/)?(.+)")
_NAMESPACE: Final = re.compile(r"\$\((?:POD_)?NAMESPACE\)")
_TRUSTED: Final = re.compile(r"--entrypoints\.[\w-]+\.proxyprotocol\.trustedips=(.*)", re.IGNORECASE)
_INSECURE: Final = re.compile(r"--entrypoints\.[\w-]+\.proxyprotocol\.insecure(=true)?", re.IGNORECASE)


async def read_settings(
    reader: Reader, services: Iterable[Service], raw: Mapping[str, RawService]
) -> tuple[Service, ...]:
    """The Services with the settings of what is behind them."""
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
    path = f"/api/v1/namespaces/{where}/configmaps/{name}"
    found = await reader.get(path, ConfigMap, f"get configmaps {name} in namespace {where}")
    data = (found.data or {}) if found else {}
    settings = {key: data[key] for key in KEYS if key in data}
    return replace(service, settings=settings, settings_from=f"ConfigMap {where}/{name}") if settings else service


def config_map_of(words: Iterable[str], namespace: str) -> tuple[str, str] | None:
    """The ConfigMap that `--configmap=NAMESPACE/NAME` names, as namespace and name."""
    for word in words:
        found = _CONFIG_MAP.fullmatch(word)
        if found is not None:
            where = _NAMESPACE.sub(namespace, found[1] or namespace)
            name = _NAMESPACE.sub(namespace, found[2])
            return None if "$(" in where + name else (where, name)
    return None


def settings_of_words(words: Iterable[str]) -> dict[str, str]:
    """What Traefik's arguments say: whose headers it believes."""
    settings: dict[str, str] = {}
    for word in words:
        trusted = _TRUSTED.fullmatch(word)
        if trusted is not None:
            settings["trusted-ips"] = trusted[1]
        elif _INSECURE.fullmatch(word):
            settings["trusted-ips"] = "0.0.0.0/0,::/0"
    return settings
