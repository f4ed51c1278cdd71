"""What is in the cluster now: the policy and its binding as an API server returns them, and the Services.

The law: an object of our name is ours only with our label; what the API server filled in by itself is no difference.
Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import yaml

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.doctor.facts.model import Service as FactsService
from dnsproxy.doctor.judge.mutating_admission import BINDINGS, GROUP, PLURAL
from dnsproxy.ip_mode.policy import NAME
from dnsproxy.ip_mode.selection import Selection
from sidecar.kubernetes.structs.network import LoadBalancerPoint, Service

PLURALS: Final = {
    "MutatingAdmissionPolicy": PLURAL,
    "MutatingAdmissionPolicyBinding": BINDINGS,
}
"""Of the two kinds of object that are written, in the order of writing them."""
CLASSES: Final = "loadBalancerClasses"
"""The variable of the policy with the classes of its selection."""
_OURS: Final = ("app.kubernetes.io/part-of", "switchback")
# What an API server adds to a policy or a binding that leaves it out, of admissionregistration.k8s.io v1 and v1beta1.
_DEFAULTS: Final[Mapping[str, Any]] = {
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
}

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Present:
    """The objects of a cluster."""

    version: str
    """Of the policies' API; empty if the API server serves none, and then there is no policy."""
    objects: Mapping[str, Manifest]
    """The policy and the binding that exist, by kind."""
    named: Mapping[ObjectRef, Service | None]
    """The Services that the command names; None for one that does not exist."""
    listed: tuple[Service, ...] = ()
    """The Services of the whole cluster, if they were listed."""
    facts: Mapping[ObjectRef, FactsService] = field(default_factory=dict)
    """All of these Services as the doctor's judgements take them."""
    scheme: str = ""
    """Of the nodes' providerID: `hcloud`; empty if unknown, or nothing is to be judged."""
    annotated: tuple[Service, ...] | None = ()
    """Those that somebody else annotated, if the Services were listed for that; None if they may not be listed."""

    @property
    def selection(self) -> Selection:
        """Of the policy in the cluster."""
        policy = self.objects.get("MutatingAdmissionPolicy", {})
        variables = (policy.get("spec") or {}).get("variables") or ()
        return Selection(next((_classes(one) for one in variables if one.get("name") == CLASSES), ()))


def object_path(version: str, kind: str) -> str:
    """Where an API server has the policy or the binding."""
    return f"/apis/{GROUP}/{version}/{PLURALS[kind]}/{NAME}"


def service_path(ref: ObjectRef) -> str:
    """Where an API server has a Service."""
    return f"/api/v1/namespaces/{quote(ref.namespace, safe='')}/services/{quote(ref.name, safe='')}"


def is_ours(manifest: Manifest) -> bool:
    """Whether Switchback wrote it, with this command or as YAML."""
    return labels_of(manifest).get(_OURS[0]) == _OURS[1]


def labels_of(manifest: Manifest) -> Mapping[str, str]:
    """The labels of an object."""
    return (manifest.get("metadata") or {}).get("labels") or {}


def without_defaults(value: Any) -> Any:
    """The value without what an API server fills in."""
    if isinstance(value, Mapping):
        kept = {key: without_defaults(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if key not in _DEFAULTS or item != _DEFAULTS[key]}
    if isinstance(value, list):
        return [without_defaults(item) for item in value]
    return value


def format_object(manifest: Manifest | None) -> str:
    """The YAML of what a person writes of an object; empty for None."""
    if manifest is None:
        return ""
    shown = {key: manifest[key] for key in ("apiVersion", "kind") if key in manifest}
    shown["metadata"] = {"name": NAME, "labels": dict(sorted(labels_of(manifest).items()))}
    shown["spec"] = without_defaults(manifest.get("spec") or {})
    # Sorted keys: an API server returns them in another order than the manifest.
    return yaml.safe_dump(shown, width=1000)


def ref_of(service: Service) -> ObjectRef:
    """The namespace and name of a Service."""
    return ObjectRef(service.metadata.namespace or "", service.metadata.name)


def points_of(service: Service) -> tuple[LoadBalancerPoint, ...]:
    """The entries of a Service's status, those without an address too."""
    balancer = service.status.load_balancer if service.status else None
    return (balancer.ingress if balancer else None) or ()


def modes_of(service: Service) -> tuple[str, ...]:
    """The ipMode of each entry with an address, which is VIP if it has none."""
    return tuple(point.ip_mode or "VIP" for point in points_of(service) if point.ip)


def is_selected(service: Service, selection: Selection) -> bool:
    """Whether the policy changes the Service's status."""
    return selection.selects(service.metadata.annotations or {}, class_of(service))


def class_of(service: Service) -> str:
    """The loadBalancerClass of a Service, empty if it has none."""
    return (service.spec.load_balancer_class if service.spec else None) or ""


def _classes(variable: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        found = json.loads(variable.get("expression") or "")
    except (ValueError, TypeError):
        # Somebody wrote another CEL expression there.
        return ()
    is_names = isinstance(found, Sequence) and all(isinstance(name, str) for name in found)
    return tuple(found) if is_names and not isinstance(found, str) else ()
