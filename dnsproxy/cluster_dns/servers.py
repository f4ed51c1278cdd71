"""Servers: from a workload to its DNS program, its Corefile and its stubDomains.

The law: the container that answers DNS is recognised by its image or its command. Every further step is read from the
manifest (arguments, mounts, volumes, keys); a missing step is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dnsproxy.cluster_dns.arguments import corefile_path, stub_domains_path, template_path
from dnsproxy.cluster_dns.found import FoundCorefile, Server, Source, StubDomains
from dnsproxy.cluster_dns.image import Program, coredns_version, program_of
from dnsproxy.cluster_dns.imports import Imports, find_imports
from dnsproxy.cluster_dns.kube_dns import STUB_DOMAINS, UPSTREAMS, Nameservers, Zones, parse_value
from dnsproxy.cluster_dns.owner import Habit, Owner, owner_of
from dnsproxy.cluster_dns.pod_files import PodFiles
from dnsproxy.cluster_dns.requests import CONFIG_MAP, Blame, Fault, Kind, Missing, Requests
from dnsproxy.cluster_dns.volumes import Backing, mount_above
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.upstream_form import NODE
from sidecar.kubernetes.structs.workload import ConfigMap, Container, PodSpec, Workload
from sidecar.values.endpoints import is_address
from sidecar.values.text import cut

_LONGEST: Final = 512
"""Characters of an image; a registry takes fewer, the API server any number."""


def make_server(requests: Requests, kind: Kind[Workload], workload: Workload) -> Server | None:
    """The DNS server of a workload; None, and a fault, if no container is known to be one."""
    pod = pod_of(workload)
    name = f"{kind.name} {workload.metadata.namespace}/{workload.metadata.name}"
    serving = [(container, program) for container in pod.containers or () if (program := _program(container))]
    if not serving:
        images = ", ".join(container.image or "none" for container in pod.containers or ())
        _report(requests, f"{name} has no known container of CoreDNS or kube-dns: its images are {images}")
        return None
    container, program = serving[0]
    files = PodFiles(requests, name, workload.metadata.namespace or "", pod, container)
    writes = program is Program.NODE_CACHE and not _is_mounted(files)
    ready, wanted = pods_of(workload)
    return Server(
        kind=kind.name,
        namespace=files.namespace,
        name=workload.metadata.name,
        container=container.name,
        image=cut(container.image or "", _LONGEST),
        program=program,
        version=coredns_version(container.image or "") if program is Program.COREDNS else None,
        ready=ready,
        wanted=wanted,
        corefile=None if program is Program.KUBE_DNS else _read_corefile(files, writes, workload),
        stub_domains=_read_stub_domains(files) if writes or program is Program.KUBE_DNS else None,
        nameservers=tuple(_nameservers(pod, container)),
    )


def pod_of(workload: Workload) -> PodSpec:
    """The spec of a workload's pods; empty if the workload has none."""
    template = workload.spec.template if workload.spec else None
    return (template.spec if template else None) or PodSpec()


def labels_of(workload: Workload) -> Mapping[str, str]:
    """The labels of its pods."""
    template = workload.spec.template if workload.spec else None
    metadata = template.metadata if template else None
    return (metadata.labels if metadata else None) or {}


def pods_of(workload: Workload) -> tuple[int, int]:
    """The number of ready pods, and the number wanted."""
    status = workload.status
    ready = (status.ready_replicas or status.number_ready or 0) if status else 0
    scheduled = status.desired_number_scheduled if status else None
    replicas = workload.spec.replicas if workload.spec else None
    return ready, next((number for number in (scheduled, replicas) if number is not None), 1)


def _nameservers(pod: PodSpec, container: Container) -> Iterator[str]:
    """What /etc/resolv.conf has in its pods.

    https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/
    """
    mount = mount_above(NODE, pod, container)
    if mount is not None and mount.backings:
        return
    if pod.dns_policy != "None":
        yield NODE
    yield from filter(is_address, (pod.dns_config.nameservers if pod.dns_config else None) or ())


def _program(container: Container) -> Program | None:
    return program_of(container.image or "", command=container.program)


def _is_mounted(files: PodFiles) -> bool:
    """Whether the Corefile of a node-cache comes from a ConfigMap, as in kubespray.

    Then it cannot write the file from its template and stubDomains, and reads it as it is.
    """
    try:
        mount = mount_above(corefile_path(files.container), files.pod, files.container)
    except ValueError:
        # The look-up of its template reports the same.
        return False
    return mount is not None and bool(mount.backings)


def _read_corefile(files: PodFiles, writes: bool, workload: Workload) -> FoundCorefile | None:
    path = _path(files, template_path if writes else corefile_path)
    file = files.read(path) if path else None
    if file is None:
        return None
    try:
        found = find_imports(files, file.path, parse_corefile(file.text))
    except CorefileError as error:
        _report(files.requests, f"{file.key} in ConfigMap {file.source}, line {error.line}: {error}")
        found = Imports((), ())
    if not file.text.strip():
        _report(files.requests, f"{file.key} in ConfigMap {file.source} is empty")
    owner = _owner(file.source, workload)
    return FoundCorefile(
        file.source, file.key, file.path, file.text, owner, found.hooks, found.files, updates=file.updates
    )


def _owner(source: Source, workload: Workload) -> Owner:
    """The ConfigMap's owner; that of the workload if the ConfigMap shows none."""
    own = owner_of(source.object.metadata) if source.object else None
    if own is not None and own.habit is not Habit.UNKNOWN:
        return own
    beside = owner_of(workload.metadata)
    return beside if own is None or beside.habit is not Habit.UNKNOWN else own


def _read_stub_domains(files: PodFiles) -> StubDomains | None:
    """The ConfigMap that is mounted at the program's folder for stubDomains; None if there is none."""
    folder = _path(files, stub_domains_path)
    mount = mount_above(folder, files.pod, files.container) if folder else None
    if mount is None or not mount.backings:
        return None
    asked: dict[Backing, ConfigMap | Missing] = {}
    for backing in mount.by_precedence:
        answer = files.requests.get(CONFIG_MAP, files.namespace, backing.name)
        asked[backing] = answer
    if Missing.UNSEEN in asked.values():
        return None
    backing = next((one for one, found in asked.items() if _has_stub_domains(found)), mount.by_precedence[0])
    found = asked[backing]
    config_map = found if isinstance(found, ConfigMap) else None
    source = Source(files.namespace, backing.name, config_map, backing.optional)
    data = (config_map.data if config_map else None) or {}
    zones = _value(files.requests, source, STUB_DOMAINS, data.get(STUB_DOMAINS), Zones)
    upstreams = _value(files.requests, source, UPSTREAMS, data.get(UPSTREAMS), Nameservers)
    unreadable = tuple(key for key, value in ((STUB_DOMAINS, zones), (UPSTREAMS, upstreams)) if value is None)
    return StubDomains(source, zones or {}, upstreams or (), unreadable, updates=not mount.sub_path)


def _has_stub_domains(found: ConfigMap | Missing) -> bool:
    return isinstance(found, ConfigMap) and STUB_DOMAINS in (found.data or {})


def _value(requests: Requests, source: Source, key: str, text: str | None, shape: Any) -> Any:
    """The JSON of a key, empty if it is absent; None, and a fault, if it is invalid."""
    try:
        return parse_value(text, shape)
    except ValueError as error:
        _report(requests, f"{key} in ConfigMap {source} is not valid for kube-dns: {error}")
        return None


def _path(files: PodFiles, read: Callable[[Container], str]) -> str | None:
    try:
        return read(files.container)
    except ValueError as error:
        _report(files.requests, f"{files.workload}: {error}")
        return None


def _report(requests: Requests, text: str) -> None:
    requests.report(Fault(Blame.CONTENTS, text))
