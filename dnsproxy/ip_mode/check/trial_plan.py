"""The trial of --check: whether a Service may be tried, what is dialled, and what its result shows.

The law: a Service is tried only if nothing is in the way and nobody is cut off. What is restored is what was seen
before: an entry that was VIP becomes VIP again, and one that the provider wrote meanwhile is left alone. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.doctor.collect.dial_targets import MOST_PORTS, DialTarget
from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.judge.short_circuit import Answer
from dnsproxy.doctor.judge.web_ports import web_ports
from dnsproxy.install.change.config_map import Write
from dnsproxy.ip_mode.check.checked import Checked
from dnsproxy.ip_mode.results import Effect
from dnsproxy.ip_mode.selection import PROXY
from dnsproxy.ip_mode.status_patch import CONTENT_TYPE, Operation
from dnsproxy.ip_mode.status_writes import VIP, format_patch, status_path
from sidecar.kubernetes.structs.network import LoadBalancerPoint
from sidecar.values.endpoints import Endpoint

ANY_HOST: Final = "lb.example.org"
"""Asked for if no host of the Service is known; any answer, a 404 too, shows that the request was read."""


def why_no_trial(checked: Checked, *, in_pod: bool) -> str:
    """Why a Service is not tried; empty if it may be."""
    judgement = checked.judgement
    if not in_pod:
        return "a trial shows something only in a pod of the cluster, whose connections the data plane carries"
    if judgement.harms is Answer.YES:
        return judgement.why
    if checked.obstacles:
        return checked.obstacles[0]
    if judgement.harms is Answer.UNKNOWN:
        return f"{judgement.why}; if you know that it does, add --balancer-ends-connections"
    if judgement.already or checked.proof.effect is Effect.YES:
        return "its provider writes ipMode Proxy already, so there is nothing to try"
    return "" if web_ports(checked.service.ports) else "it has no port that is known to speak HTTP or TLS"


def trial_targets(service: Service, hostname: str) -> tuple[DialTarget, ...]:
    """The bare connections, to the first web ports of each address."""
    ports = web_ports(service.ports)[:MOST_PORTS]
    addresses = [point.ip for point in service.points if point.ip and point.ip_mode != PROXY]
    return tuple(
        DialTarget(Endpoint(address, port), hostname or ANY_HOST, tls) for address in addresses for port, tls in ports
    )


def modes_before(entries: Sequence[LoadBalancerPoint]) -> dict[str, str]:
    """The ipMode of each address that is tried: of one that has Proxy, nobody knows who takes it back, and when."""
    proxy = {entry.ip for entry in entries if entry.ip_mode == PROXY}
    return {entry.ip: entry.ip_mode or VIP for entry in entries if entry.ip and entry.ip not in proxy}


def restoring(entries: Sequence[LoadBalancerPoint], before: Mapping[str, str]) -> list[Operation]:
    """The operations that give each address its ipMode of before; empty if it has it, or was not there."""
    return [
        {"op": "add", "path": f"/status/loadBalancer/ingress/{number}/ipMode", "value": before[entry.ip]}
        for number, entry in enumerate(entries)
        if entry.ip and entry.ip in before and (entry.ip_mode or VIP) != before[entry.ip]
    ]


def format_restoring(ref: ObjectRef, entries: Sequence[LoadBalancerPoint], before: Mapping[str, str]) -> str:
    """The command line that restores the entries, whatever their ipMode is; it fails if their order has changed."""
    at = "/status/loadBalancer/ingress"
    operations: list[Operation] = []
    for number, entry in enumerate(entries):
        if entry.ip and entry.ip in before:
            operations.append({"op": "test", "path": f"{at}/{number}/ip", "value": entry.ip})
            operations.append({"op": "add", "path": f"{at}/{number}/ipMode", "value": before[entry.ip]})
    return format_patch(ref, "json", operations)


def make_write(ref: ObjectRef, operations: Sequence[Operation], resource_version: str) -> Write:
    """The operations as a request that is valid only for this version of the Service."""
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": resource_version}
    return Write("PATCH", status_path(ref), {}, json.dumps([test, *operations]).encode(), CONTENT_TYPE)
