"""What was read and measured: subjects, controller Services, probes, handshakes, route Services.

The law: values alone, no judgement. The last decisions are the route Services themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

LABEL: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "switchback-operate"
"""A route Service with this label value is ours; every other one belongs to people."""

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, order=True)
class ServiceName:
    """A Service of the cluster."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """What is steered: an ingress class, or with a namespace a Gateway."""

    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"gateway/{self.namespace}/{self.name}" if self.namespace else f"ingressclass/{self.name}"


@dataclass(frozen=True, slots=True)
class Point:
    """An entry of `status.loadBalancer.ingress`; an empty mode means VIP."""

    ip: str = ""
    hostname: str = ""
    ip_mode: str = ""


@dataclass(frozen=True, slots=True)
class SubjectFacts:
    """What is known about a subject."""

    subject: Subject
    hostnames: int = 0
    """How many names its objects have here."""
    examples: tuple[str, ...] = ()
    backend: str | None = None
    """The annotation `switchback.dev/backend` as it is written."""
    points: tuple[Point, ...] = ()
    """The entries in the statuses of its Ingresses, or of its Gateway."""
    controller: str = ""
    """`spec.controller` of the class."""
    owner_namespace: str = ""
    """Where the owner of that controller is; empty if no owner was found."""
    owner_labels: Labels = ()
    """The labels of the owner's pods."""


@dataclass(frozen=True, slots=True)
class ControllerService:
    """A Service that a controller may be behind."""

    name: ServiceName
    type: str = "LoadBalancer"
    ports: tuple[int, ...] = ()
    """Its TCP ports."""
    points: tuple[Point, ...] = ()
    external_traffic_policy: str = "Cluster"
    selector: Labels = ()
    fingerprint: str = ""
    """Changes with the Service, its pods and their settings."""


class Reaction(StrEnum):
    """What a port did with a connection that has no PROXY header, and with one that has it."""

    PLAIN = "takes plain connections"
    HEADER = "demands the header"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Probe:
    """The last probe of a controller's port; times in seconds of one clock."""

    reaction: Reaction
    since: float = 0.0
    failures: int = 0
    """How many inconclusive probes in a row."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """Handshakes through the relay of a subject, end to end."""

    succeeded: bool = False
    """Whether one succeeded since the relay Service has its backend."""
    failures: int = 0
    """How many failed in a row since the last success."""


@dataclass(frozen=True, slots=True)
class RoutePort:
    """A port of a route Service, and where the relay listens for it."""

    port: int
    target_port: int


@dataclass(frozen=True, slots=True)
class RouteService:
    """A Service of our namespace with `switchback.dev/relay-to`, or one whose name we might take."""

    name: str
    resource_version: str = ""
    managed_by: str = ""
    relay_to: str = ""
    header: str = "v1"
    subjects: tuple[str, ...] = ()
    """The annotation `switchback.dev/for`, split."""
    ports: tuple[RoutePort, ...] = ()
    selector: Labels = ()

    @property
    def ours(self) -> bool:
        """Whether `operate` manages it."""
        return self.managed_by == MANAGER


@dataclass(frozen=True, slots=True)
class Facts:
    """One reading of the cluster."""

    namespace: str
    """Ours."""
    relay_labels: Labels = ()
    """The labels of our relay's pods."""
    subjects: tuple[SubjectFacts, ...] = ()
    services: tuple[ControllerService, ...] = ()
    honours_ip_mode: bool | None = None
    """Whether the data plane leaves `ipMode: Proxy` alone; None if nobody knows."""
    probes: Mapping[tuple[ServiceName, int], Probe] = field(default_factory=dict)
    handshakes: Mapping[Subject, Handshake] = field(default_factory=dict)
    routes: tuple[RouteService, ...] = ()
    """Every Service of our namespace, also those without a route: their names are taken."""
    complete: bool = False
    """Whether every list was read; otherwise a subject that is missing here may still exist."""
