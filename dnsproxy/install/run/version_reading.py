"""Version reading: which build each running program states in its metrics, for `dnsproxy status`.

The law: GET requests only, all pods at once, and a few of each program: a DaemonSet may have thousands. A pod that
states no build is a reason, never an absence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.requests import ENDPOINT_SLICE, Denied, Fault, Request, fault_of
from dnsproxy.install.report.version_rows import ProgramBuilds, Versions
from dnsproxy.install.run.steering_reading import (
    ADMIN_PORT,
    PROGRAM,
    SERVICE,
    Pod,
    ask_pod,
    fault_of_pod,
    list_slices,
    pods_of,
)
from sidecar.admin.asking import NoAnswer
from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.loop.side_by_side import read_each
from sidecar.values.build import UNKNOWN, Build, own_build
from sidecar.values.text import cut, one_line

MOST_PODS: Final = 3
"""Of each program."""
_LARGEST: Final = 4 << 20
"""Octets of the metrics of a pod."""
_LONGEST_LABEL: Final = 64
"""Characters: a revision has 40."""
_METRICS: Final = "/metrics"
_LABEL: Final = re.compile(r'(?<=[{,])([a-z]+)="([^"\\]*)"')
"""Of one line: the parser of prometheus_client takes longer to import than all pods to answer."""
_RELAY: Final = "relay-"
"""The beginning of the names of the relay's pods: each of them may be behind many route Services."""


@dataclass(frozen=True, slots=True)
class _Program:
    command: str
    prefix: str
    """Of its metrics."""
    port: int
    """Its admin port."""


_SERVE: Final = _Program("dnsproxy serve", "dnsproxy", 8081)
_OPERATE: Final = _Program(PROGRAM, "dnsproxy", ADMIN_PORT)
_PROXY: Final = _Program("proxy", "proxy", 8082)


async def read_versions(client: ApiClient, own: ObjectRef) -> Versions:
    """The builds in the namespace of dnsproxy's own Service. Never raises."""
    command = own_build()
    try:
        slices = await list_slices(client, own.namespace)
    except NotFound:
        return Versions(command)
    except Forbidden as error:
        fault = fault_of(Request(ENDPOINT_SLICE, own.namespace), Denied(str(error)))
        return Versions(command, unknown=str(fault), faults=(fault,))
    except ApiError as error:
        return Versions(command, unknown=f"the pods of namespace {own.namespace} could not be listed: {error}")
    found = _pods_by_program(slices, own.name)
    asked = [(program, pod) for program, pods in found.items() for _, pod in sorted(pods.items())[:MOST_PODS]]
    answers = await read_each(lambda one: _read_build(client, own.namespace, *one), asked)
    programs = []
    for program, pods in found.items():
        said = {pod.name: answer for (of, pod), answer in zip(asked, answers, strict=True) if of is program}
        builds = {pod: answer for pod, answer in said.items() if isinstance(answer, Build)}
        unread = {pod: str(answer) for pod, answer in said.items() if not isinstance(answer, Build)}
        programs.append(ProgramBuilds(program.command, len(pods), builds, unread))
    return Versions(command, tuple(programs), faults=tuple(one for one in answers if isinstance(one, Fault)))


def parse_build(metrics: str, prefix: str) -> Build:
    """The build that metrics in Prometheus' text format state. Raises ValueError without one."""
    name = f"{prefix}_build_info"
    line = next((line for line in metrics.splitlines() if line.startswith(f"{name}{{")), None)
    if line is None:
        raise ValueError(f"its metrics have no {name}: it is older, or another program")
    labels = dict(_LABEL.findall(line))
    said = (cut(labels.get(label, ""), _LONGEST_LABEL) for label in ("version", "revision", "python"))
    return Build(*(one or UNKNOWN for one in said))


def _pods_by_program(slices: Iterable[EndpointSlice], own: str) -> Mapping[_Program, Mapping[str, Pod]]:
    found: dict[_Program, dict[str, Pod]] = {}
    services = {own: _SERVE, SERVICE: _OPERATE}
    for one in slices:
        service = (one.metadata.labels and one.metadata.labels.service_name) or ""
        program = services.get(service, _PROXY)
        for pod in pods_of(one, port=program.port):
            if program is not _PROXY or pod.name.startswith(_RELAY):
                found.setdefault(program, {}).setdefault(pod.name, pod)
    return dict(sorted(found.items(), key=lambda item: item[0].command))


async def _read_build(client: ApiClient, namespace: str, program: _Program, pod: Pod) -> Build | Fault | str:
    """The build, or why there is none: a Fault if a right is missing."""
    try:
        body = await ask_pod(client, namespace, pod, _METRICS, program=program.command, largest=_LARGEST)
        return parse_build(body.decode(errors="replace"), program.prefix)
    except Forbidden as error:
        return fault_of_pod(namespace, pod, error)
    except (NoAnswer, ApiError, ValueError) as error:
        return one_line(str(error))
