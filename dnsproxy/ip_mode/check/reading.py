"""Reads what --check judges: the doctor's facts, the policy, the writers of the statuses, and the way out.

The law: GET, list, watch and a dry run alone. What cannot be read is unknown and named; only the API server itself,
unreachable or refusing the credentials, ends the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from dnsproxy.cluster_dns.found import ServiceRef
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.options import OWN_SERVICE, parse_object_ref
from dnsproxy.doctor.collect.collecting import read_cluster
from dnsproxy.doctor.collect.dial_targets import DialTarget
from dnsproxy.doctor.collect.dialling import Manner, dial
from dnsproxy.doctor.collect.places import Places
from dnsproxy.doctor.facts.model import Facts, Service
from dnsproxy.doctor.judge.controller import Controller, make_controller
from dnsproxy.doctor.judge.ip_mode_judgement import judge_ip_mode
from dnsproxy.doctor.judge.paths import Path, Paths
from dnsproxy.doctor.judge.short_circuit import KUBE_PROXY, data_plane
from dnsproxy.ip_mode.check.checked import Checked, Cluster
from dnsproxy.ip_mode.check.counting import count_writes
from dnsproxy.ip_mode.check.unlisted_port import WayOut, read_probe, unlisted_port
from dnsproxy.ip_mode.discovery import find_version
from dnsproxy.ip_mode.effect import prove
from dnsproxy.ip_mode.present import Present, is_selected, service_path
from dnsproxy.ip_mode.request import WriteRequest
from dnsproxy.ip_mode.selection import Selection
from dnsproxy.ip_mode.status_writers import ManagedService, status_writers
from dnsproxy.ip_mode.survey import SECONDS, survey
from sidecar.kubernetes.errors import ApiError
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.one_shot import get_object
from sidecar.loop.side_by_side import side_by_side
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import one_line

_IN_A_POD: Final = "KUBERNETES_SERVICE_HOST"
_DIAL_SECONDS: Final = 3.0

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """The flags of --check."""

    kubeconfig: str | None
    context: str | None
    host: str = ""
    services: tuple[ObjectRef, ...] = ()
    seconds: float = 0.0
    """How long to count the writes of the statuses; 0: not at all."""
    ends_connections: bool = False
    as_json: bool = False
    trial: bool = False
    yes: bool = False
    """Whether the user agreed to the trial on the command line."""


def is_in_pod() -> bool:
    """Whether this program runs in a pod, whose connections the data plane carries."""
    return _IN_A_POD in os.environ


async def read_check(
    client: ApiClient, request: CheckRequest, progress: Progress
) -> tuple[Cluster, tuple[Checked, ...]]:
    """The cluster and its Services. Raises StartError and ApiError."""
    places = Places(ServiceRef(), parse_object_ref(OWN_SERVICE))
    facts, paths = await read_cluster(client, request.host, places, progress)
    chosen = _chosen(facts, paths, request)
    progress("reading the policy")
    served = await find_version(client)
    asked = WriteRequest(
        request.kubeconfig, request.context, Selection(()), tuple(parse_object_ref(one.key) for one in chosen)
    )
    present = await survey(client, served.version, asked)
    plane = data_plane(facts)
    cluster = Cluster(
        plane.name,
        plane.why,
        facts.server_version,
        served.version,
        served.why_none,
        has_policy=bool(present.objects),
        unread=tuple(f"{failure.what}: {failure.why}" for failure in facts.refusals),
    )
    made = {path.service.key: make_controller(path, facts) for path in paths.paths}
    known = [made.get(one.key) or make_controller(Path(one, ()), facts) for one in chosen]
    async with side_by_side() as start:
        checks = [start(_check, client, one, facts, present, request, progress) for one in known]
    return cluster, tuple(check.value for check in checks)


def _chosen(facts: Facts, paths: Paths, request: CheckRequest) -> tuple[Service, ...]:
    """The Services to look at: those named, or those of the host, or every controller's. Raises StartError."""
    by_key = {service.key: service for service in facts.services}
    unknown = [str(ref) for ref in request.services if str(ref) not in by_key]
    if unknown:
        text = f"--service {unknown[0]}: there is no such Service, or it has no load balancer"
        raise StartError(text, status=ExitStatus.UNKNOWN)
    found = [by_key[str(ref)] for ref in request.services] or [path.service for path in paths.paths]
    if request.host and not found:
        text = f"no Service was found for {request.host}: `dnsproxy doctor {request.host}` follows its path"
        raise StartError(text, status=ExitStatus.UNKNOWN)
    found = found or [service for service in facts.services if service.type == "LoadBalancer"]
    if not found:
        decisive = (one for one in facts.refusals if one.what.startswith("list "))
        reason = "; ".join(f"{one.what}: {one.why}" for one in decisive) or "there is none"
        raise StartError(f"no Service with a load balancer was found: {reason}", status=ExitStatus.UNKNOWN)
    return tuple({service.key: service for service in found}.values())


async def _check(
    client: ApiClient,
    controller: Controller,
    facts: Facts,
    present: Present,
    request: CheckRequest,
    progress: Progress,
) -> Checked:
    service = controller.path.service
    judgement = judge_ip_mode(
        service,
        controller.provider,
        controller.plane,
        node_addresses=facts.node_addresses,
        ends_connections=request.ends_connections,
        server_version=facts.server_version,
    )
    checked = Checked(
        service,
        controller.path.hostnames,
        controller.provider.name,
        judgement,
        takes_bare=controller.takes_bare,
        ways=await _ways(facts, controller),
    )
    checked = await _with_policy(client, checked, present)
    return await _with_writers(client, checked, request.seconds, progress)


async def _with_policy(client: ApiClient, checked: Checked, present: Present) -> Checked:
    """With the answer of a dry run, if the policy is there and is for this Service."""
    raw = present.named.get(parse_object_ref(checked.service.key))
    if raw is None or not present.objects or not is_selected(raw, present.selection):
        return checked
    proof = await prove(client, raw, lambda _: None, seconds=0.0)
    return replace(checked, selected=True, proof=proof)


async def _with_writers(client: ApiClient, checked: Checked, seconds: float, progress: Progress) -> Checked:
    ref = parse_object_ref(checked.service.key)
    if seconds:
        progress(f"counting the writes of the status for {seconds:g} s")
        checked = replace(checked, count=await count_writes(client, ref, seconds))
    try:
        raw = await get_object(client, service_path(ref), ManagedService, seconds=SECONDS)
    except ApiError as error:
        why = one_line(f"Service {ref} could not be read again: {error}")
        raise StartError(why, status=ExitStatus.UNKNOWN) from None
    return replace(checked, writers=status_writers(raw.metadata.managed_fields))


async def _ways(facts: Facts, controller: Controller) -> tuple[WayOut, ...]:
    """The way to each address of the load balancer, seen from a pod; empty elsewhere."""
    service = controller.path.service
    if not is_in_pod():
        return ()
    # Without kube-proxy's own DaemonSet it is built into the distribution, or it is another data plane.
    modes = {one.name: one.settings.get("mode", "") for one in facts.components}
    plane = KUBE_PROXY if controller.plane.name.startswith(KUBE_PROXY) else controller.plane.name
    targets = [
        DialTarget(Endpoint(point.ip, unlisted_port(service)), "", tls=False) for point in service.points if point.ip
    ]
    probes = [await dial(target, Manner(_DIAL_SECONDS, _DIAL_SECONDS)) for target in targets]
    return tuple(read_probe(probe, plane=plane, mode=modes.get(KUBE_PROXY, "")) for probe in probes)
