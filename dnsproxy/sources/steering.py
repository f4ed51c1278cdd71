"""Steering: which Service answers for the names of an ingress class or a Gateway, as its annotation says.

The law: pure; the order of the Services does not matter. Of two Services for one subject the older one counts, then the
first by name; a Service with an annotation that cannot be read counts for nothing, and changes nothing for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable
from sidecar.kubernetes.route_services import BALANCERS, FOR, parse_balancers, parse_subjects
from sidecar.values.text import cut_list


class _Annotations(msgspec.Struct, frozen=True, gc=False):
    subjects: str | None = msgspec.field(default=None, name=FOR)
    balancers: str | None = msgspec.field(default=None, name=BALANCERS)


class _Metadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    annotations: _Annotations | None = None


class SteeringService(msgspec.Struct, frozen=True, gc=False):
    """The fields of a Service that steer names to it."""

    metadata: _Metadata


@dataclass(frozen=True, slots=True)
class Steering:
    """The Services by subject, and what is wrong with some."""

    services: Mapping[str, str] = field(default_factory=dict)
    """By subject: `NAMESPACE/NAME`."""
    balancers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By subject: the addresses of the load balancer that the Service names."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """By Service: why its annotation does not count, as part of a sentence."""


def steering_collection(namespace: str) -> Collection[SteeringService]:
    """All Services of our own namespace. RBAC: list and watch services there."""
    return Collection("route Service", f"/api/v1/namespaces/{namespace}/services", SteeringService)


def find_steering(services: Mapping[str, SteeringService | Unreadable]) -> Steering:
    """What the Services, by `NAMESPACE/NAME`, steer."""
    chosen: dict[str, str] = {}
    balancers: dict[str, tuple[str, ...]] = {}
    faults: dict[str, str] = {}
    for key, service in sorted(services.items(), key=lambda item: (_created(item[1]), item[0])):
        try:
            subjects = _subjects_of(service)
        except ValueError as error:
            faults[key] = f"{FOR}: {error}"
            continue
        taken = [f"{one} has {chosen[one]}" for one in subjects if one in chosen]
        if taken:
            faults[key] = f"{FOR}: {cut_list(taken)} already"
        try:
            addresses = _balancers_of(service)
        except ValueError as error:
            addresses = ()
            faults[key] = f"{BALANCERS}: {error}"
        for one in subjects:
            if one not in chosen:
                chosen[one] = key
                balancers |= {one: addresses} if addresses else {}
    return Steering(chosen, balancers, faults)


def _balancers_of(service: SteeringService | Unreadable) -> tuple[str, ...]:
    annotations = None if isinstance(service, Unreadable) else service.metadata.annotations
    return parse_balancers(annotations.balancers) if annotations is not None and annotations.balancers else ()


def _subjects_of(service: SteeringService | Unreadable) -> Iterable[str]:
    if isinstance(service, Unreadable) or service.metadata.annotations is None:
        return ()
    text = service.metadata.annotations.subjects
    return parse_subjects(text) if text is not None else ()


def _created(service: SteeringService | Unreadable) -> str:
    return service.metadata.creation_timestamp or ""
