"""Services and policies as an API server returns them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.doctor.collect.read_hosts import make_service
from dnsproxy.ip_mode.policy import make_policy
from dnsproxy.ip_mode.present import Present, ref_of
from dnsproxy.ip_mode.request import WriteRequest
from dnsproxy.ip_mode.selection import ANNOTATION, Selection
from sidecar.kubernetes.structs.network import Service

WEB = ObjectRef("shop", "web")


def service_json(
    name: str = "web",
    *,
    kind: str = "LoadBalancer",
    cls: str = "",
    annotation: str | None = None,
    annotations: Mapping[str, str] = MappingProxyType({}),
    ingress: list[dict[str, str]] | None = None,
) -> dict[str, Any]:
    ours = {} if annotation is None else {ANNOTATION: annotation}
    entries = [{"ip": "192.0.2.1", "ipMode": "VIP"}] if ingress is None else ingress
    return {
        "metadata": {"name": name, "namespace": "shop", "resourceVersion": "7", "annotations": {**annotations, **ours}},
        "spec": {"type": kind, **({"loadBalancerClass": cls} if cls else {})},
        "status": {"loadBalancer": {"ingress": entries}},
    }


def service(name: str = "web", **changes: Any) -> Service:
    return msgspec.convert(service_json(name, **changes), Service)


def stored(selection: Selection = Selection(), *, version: str = "v1") -> dict[str, dict[str, Any]]:  # noqa: B008
    """The policy and its binding with what an API server fills in."""
    policy, binding = map(copy.deepcopy, make_policy(version, selection))
    policy["spec"]["matchConstraints"] |= {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    for number, one in enumerate((policy, binding)):
        one["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": f"{number + 40}", "generation": 1}
    return {one["kind"]: one for one in (policy, binding)}


def present(
    objects: Mapping[str, Any] | None = None,
    *,
    named: tuple[Service | None, ...] = (),
    listed: tuple[Service, ...] = (),
    scheme: str = "",
    annotated: tuple[Service, ...] | None = (),
) -> Present:
    refs = {WEB if one is None else ObjectRef("shop", one.metadata.name): one for one in named}
    facts = {ref_of(one): make_service(one) for one in (*named, *listed, *(annotated or ())) if one}
    return Present("v1", objects or {}, refs, listed, facts, scheme, annotated)


def request(*, classes: tuple[str, ...] = (), **changes: Any) -> WriteRequest:
    return WriteRequest(None, None, Selection(classes), **changes)
