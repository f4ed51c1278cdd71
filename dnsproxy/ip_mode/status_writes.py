"""The requests on a Service's status, and the command lines that do the same.

The law: an empty merge patch writes an existing status through admission and decides nothing itself. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from shlex import quote
from typing import Any, Final

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.install.change.config_map import Write
from dnsproxy.ip_mode.present import points_of, service_path
from dnsproxy.ip_mode.status_patch import CONTENT_TYPE, make_patch
from sidecar.kubernetes.structs.network import LoadBalancerPoint, Service

VIP: Final = "VIP"
_MERGE_PATCH: Final = "application/merge-patch+json"


def status_path(ref: ObjectRef) -> str:
    """Where an API server has the status of a Service."""
    return f"{service_path(ref)}/status"


def make_trial(ref: ObjectRef, points: Sequence[LoadBalancerPoint], mode: str = VIP) -> Write:
    """Ask what would be stored if the provider wrote this ipMode now. Nothing is stored."""
    entries = [_entry(point, mode) for point in points]
    body = {"status": {"loadBalancer": {"ingress": entries}}}
    return Write("PATCH", status_path(ref), {"dryRun": "All"}, json.dumps(body).encode(), _MERGE_PATCH)


def make_empty(ref: ObjectRef) -> Write:
    """Write the status as it is, so that the policy sees it."""
    return Write("PATCH", status_path(ref), {}, b"{}", _MERGE_PATCH)


def make_vip(ref: ObjectRef, service: Service) -> Write:
    """Write VIP; valid only for this version of the Service."""
    operations = make_patch(points_of(service), mode=VIP, resource_version=service.metadata.resource_version)
    return Write("PATCH", status_path(ref), {}, json.dumps(operations).encode(), CONTENT_TYPE)


def format_kubectl(ref: ObjectRef, service: Service, mode: str) -> str:
    """The command line that writes the status anew: through the policy, or as VIP."""
    patch: Any = {}
    if mode == VIP:
        # Without the test of the version: a person may run it later.
        patch = make_patch(points_of(service), mode=VIP, resource_version="")[1:]
    return format_patch(ref, "json" if mode == VIP else "merge", patch)


def format_patch(ref: ObjectRef, kind: str, patch: Any) -> str:
    """The command line of a patch of the status; `kind` as kubectl has it: `json` or `merge`."""
    where = f"kubectl -n {quote(ref.namespace)} patch service {quote(ref.name)} --subresource=status"
    return f"{where} --type={kind} -p {quote(json.dumps(patch))}"


def _entry(point: LoadBalancerPoint, mode: str) -> dict[str, str]:
    address = {"ip": point.ip, "ipMode": mode} if point.ip else {}
    return {**address, **({"hostname": point.hostname} if point.hostname else {})}
