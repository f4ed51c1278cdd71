"""Reads settings: the controllers' programs, and their settings about the PROXY protocol.

The law: a controller is found by its Service's selector, its ConfigMap by its arguments, and each object is read once.
Settings that could not be read are unknown and never defaults. Tested in
tests/dnsproxy/doctor/collect/test_read_settings.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from dnsproxy.cluster_dns.servers import labels_of, pod_of
from dnsproxy.cluster_dns.volumes import Backing, Mount, mount_above
from dnsproxy.doctor.collect.client_traffic_policies import read_policies, with_policies
from dnsproxy.doctor.collect.controller_settings import (
    CONFIG_MAP_KEYS,
    CONTOUR_FLAG,
    SKIPPER,
    TRAEFIK_FILES,
    config_map_of,
    program_of,
    settings_of_skipper,
    settings_of_traefik,
    traefik_file_of,
    words_of,
)
from dnsproxy.doctor.collect.read_hosts import Selectors
from dnsproxy.doctor.collect.read_workloads import CILIUM_CONFIG
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.facts.model import Component, Service
from dnsproxy.doctor.judge.paths import Path
from dnsproxy.doctor.judge.short_circuit import CILIUM
from sidecar.kubernetes.structs.metadata import Metadata
from sidecar.kubernetes.structs.workload import ConfigMap, Container, Workload
from sidecar.loop.side_by_side import read_each

ConfigMaps = Mapping[tuple[str, str], Mapping[str, str] | None]
"""The data of ConfigMaps by namespace and name; None if one could not be read."""


@dataclass(frozen=True, slots=True)
class _Controlled:
    """A Service with the workload behind it."""

    service: Service
    program: str
    workload: Workload | None
    neighbours: Sequence[Workload]
    """The workloads of its namespace."""

    @property
    def namespace(self) -> str:
        return _namespace(self.service)

    @property
    def container(self) -> Container | None:
        """The container with the program: the one whose arguments name a ConfigMap, or the first."""
        containers = (pod_of(self.workload).containers or ()) if self.workload is not None else ()
        named = (one for one in containers if config_map_of(words_of(one), self.namespace))
        return next(named, containers[0] if containers else None)


async def read_settings(
    reader: Reader,
    paths: Iterable[Path],
    selectors: Selectors,
    daemon_sets: Sequence[Workload],
    controllers: Mapping[str, str],
) -> tuple[Service, ...]:
    """The Services of the paths with their programs and settings. `controllers`: those of the classes, by name."""
    paths = tuple(paths)
    selected = (path.service for path in paths if selectors.get(path.service.key))
    namespaces = tuple(dict.fromkeys(map(_namespace, selected)))
    lists = await read_each(lambda namespace: _read_deployments(reader, namespace), namespaces)
    workloads = dict(zip(namespaces, lists, strict=True))
    for one in daemon_sets:
        workloads.setdefault(one.metadata.namespace or "", []).append(one)
    found = [
        _match(path, selectors.get(path.service.key), workloads.get(_namespace(path.service), []), controllers)
        for path in paths
    ]
    wanted = tuple(dict.fromkeys(name for one in found for name in _wanted(one)))
    data = await read_each(lambda one: reader.config_map(*one), wanted)
    maps = dict(zip(wanted, data, strict=True))
    policies = await read_policies(reader, (one.service for one in found))
    return tuple(with_policies(_with_settings(one, maps), policies) for one in found)


def _namespace(service: Service) -> str:
    return service.key.partition("/")[0]


async def _read_deployments(reader: Reader, namespace: str) -> list[Workload]:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    return await reader.list(path, Workload, f"list deployments.apps in namespace {namespace}") or []


def _match(
    path: Path, selector: Mapping[str, str] | None, workloads: list[Workload], controllers: Mapping[str, str]
) -> _Controlled:
    workload = next((one for one in workloads if selector and selector.items() <= labels_of(one).items()), None)
    found = _Controlled(path.service, "", workload, workloads)
    classes = dict.fromkeys(controllers.get(host.ingress_class, "") for host in path.hosts)
    return _Controlled(path.service, program_of(path.service, classes, found.container), workload, workloads)


def _wanted(one: _Controlled) -> list[tuple[str, str]]:
    """The ConfigMaps to read for a Service, as namespace and name."""
    if one.container is None:
        return []
    if one.program == "traefik":
        return [(one.namespace, backing.name) for mount in _mounts(one) for backing in mount.by_precedence]
    named = config_map_of(words_of(one.container), one.namespace)
    return [named] if named is not None else []


def _mounts(one: _Controlled) -> list[Mount]:
    """The volumes in which Traefik looks for its file."""
    if one.workload is None or one.container is None:
        return []
    paths = traefik_file_of(one.container)
    found = [mount_above(path, pod_of(one.workload), one.container) for path in paths]
    return list(dict.fromkeys(mount for mount in found if mount is not None))


def _with_settings(one: _Controlled, maps: ConfigMaps) -> Service:
    service, container = replace(one.service, program=one.program), one.container
    if container is None or one.workload is None:
        return service
    if one.program == "traefik":
        return _with_traefik(service, one.workload, container, maps)
    if one.program == SKIPPER:
        origin = f"workload {one.namespace}/{one.workload.metadata.name}"
        return _sourced(service, settings_of_skipper(container), origin)
    named = config_map_of(words_of(container), one.namespace)
    data = maps.get(named) if named is not None else None
    if named is not None and data is not None:
        settings = {key: data[key] for key in CONFIG_MAP_KEYS if key in data}
        return replace(service, settings=settings, settings_from=f"ConfigMap {'/'.join(named)}")
    return _with_contour(one, service) if one.program == "contour" else service


def _with_traefik(service: Service, workload: Workload, container: Container, maps: ConfigMaps) -> Service:
    """With the settings of its file if it has one; unknown if the file may be where this module does not read."""
    namespace = _namespace(service)
    for path in traefik_file_of(container):
        mount = mount_above(path, pod_of(workload), container)
        for backing in mount.by_precedence if mount is not None else ():
            data = maps.get((namespace, backing.name))
            files = _files(mount, backing, data) if mount is not None and data is not None else {}
            if data is not None and path in files:
                settings = settings_of_traefik(container, data[files[path]])
                return _sourced(service, settings, f"ConfigMap {namespace}/{backing.name}")
            if data is None:
                return service
        if mount is not None and mount.others:
            return service
    if traefik_file_of(container) != TRAEFIK_FILES:
        return service
    return _sourced(service, settings_of_traefik(container), f"workload {namespace}/{workload.metadata.name}")


def _files(mount: Mount, backing: Backing, data: Mapping[str, str]) -> Mapping[str, str]:
    """The files of a ConfigMap in a volume: path in the container to key."""
    return mount.keys(backing, ConfigMap(Metadata(backing.name), dict(data)))


def _with_contour(one: _Controlled, service: Service) -> Service:
    """Contour's flag is at its own Deployment, beside Envoy's workload.

    https://github.com/projectcontour/contour cmd/contour/serve.go
    """
    words = [
        word for near in one.neighbours for container in pod_of(near).containers or () for word in words_of(container)
    ]
    flags = {word.partition("=")[0]: word.partition("=")[2] or "true" for word in words}
    value = flags.get(f"--{CONTOUR_FLAG}")
    return _sourced(service, {CONTOUR_FLAG: value} if value else {}, f"workloads in namespace {one.namespace}")


def _sourced(service: Service, settings: Mapping[str, str], origin: str) -> Service:
    return replace(service, settings=settings, settings_from=origin) if settings else service


def with_component_settings(services: Iterable[Service], components: Iterable[Component]) -> tuple[Service, ...]:
    """The Services of Cilium's own controllers with the settings in its ConfigMap."""
    cilium = next((one for one in components if one.name == CILIUM), None)
    if cilium is None or not cilium.settings:
        return tuple(services)
    origin = f"ConfigMap {cilium.workload.removeprefix('DaemonSet ').partition('/')[0]}/{CILIUM_CONFIG}"
    kept = {key: value for key, value in cilium.settings.items() if key.endswith("-proxy-protocol")}
    return tuple(
        replace(one, settings=kept, settings_from=origin) if one.program == CILIUM else one for one in services
    )
