"""Requests: what discovery reads from a cluster, what it has read so far, and what it could not read.

The law: a Request is a value that names the verb and the object that RBAC has to grant. A look-up of an unread object
makes its request wanted and continues as if the object did not exist; once nothing is wanted, the result is complete. A
problem in the cluster is a Fault, never an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.structs.network import Ingress, Service
from sidecar.kubernetes.structs.workload import ConfigMap, Workload
from sidecar.values.text import cut

T = TypeVar("T")

MAXIMUM_REQUESTS: Final = 64
"""Far more than any real cluster needs; a chain of imports through countless ConfigMaps must not be read to its end."""


_LONGEST: Final = 1000
"""Characters of a fault."""


class Blame(Enum):
    """The kind of a fault."""

    ACCESS = "access"
    """An object could not be read: the result may be wrong."""
    CONTENTS = "contents"
    """The cluster is in this state."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One problem that discovery found."""

    blame: Blame
    text: str
    """What and where; may contain text from the cluster."""
    remedy: str = ""
    """What to do; empty if the text says it."""
    request: Request | None = None
    """What could not be read, and so the right that may be missing; None for contents."""

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of object that discovery reads."""

    name: str
    """In singular: `ConfigMap`."""
    plural: str
    """As in RBAC rules and paths: `configmaps`."""
    group: str
    """The API group; empty for the core."""
    type: type[T]

    @property
    def resource(self) -> str:
        """As `kubectl auth can-i` takes it: `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


SERVICE: Final = Kind("Service", "services", "", Service)
CONFIG_MAP: Final = Kind("ConfigMap", "configmaps", "", ConfigMap)
DEPLOYMENT: Final = Kind("Deployment", "deployments", "apps", Workload)
DAEMON_SET: Final = Kind("DaemonSet", "daemonsets", "apps", Workload)
ENDPOINT_SLICE: Final = Kind("EndpointSlice", "endpointslices", "discovery.k8s.io", EndpointSlice)
INGRESS: Final = Kind("Ingress", "ingresses", "networking.k8s.io", Ingress)


@dataclass(frozen=True, slots=True)
class Request:
    """One object, or all of one kind in a namespace."""

    kind: Kind[Any]
    namespace: str
    """Empty for a list over all namespaces."""
    name: str | None = None
    """None for a list."""
    label_selector: str = ""

    @property
    def verb(self) -> str:
        """The verb that RBAC has to allow."""
        return "list" if self.name is None else "get"

    @property
    def path(self) -> str:
        """The path in the API."""
        api = f"/apis/{self.kind.group}/v1" if self.kind.group else "/api/v1"
        inside = f"/namespaces/{quote(self.namespace, safe='')}" if self.namespace else ""
        collection = f"{api}{inside}/{self.kind.plural}"
        return collection if self.name is None else f"{collection}/{quote(self.name, safe='')}"

    def __str__(self) -> str:
        """Verb and object: `get configmaps coredns in namespace kube-system`."""
        where = f"in namespace {self.namespace}" if self.namespace else "in all namespaces"
        return f"{self.verb} {self.kind.resource}{f' {self.name}' if self.name else ''} {where}"


@dataclass(frozen=True, slots=True)
class Denied:
    """The answer to a request that RBAC refuses."""

    message: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The answer to a request whose object has fields of other types than its kind."""

    reason: str


def fault_of(request: Request, answer: Denied | Unreadable, instead: str = "") -> Fault:
    """What an object that could not be read is to the result; `instead` is what to do without the right."""
    if isinstance(answer, Unreadable):
        return Fault(Blame.ACCESS, f"the answer to {request} is unreadable: {answer.reason}", request=request)
    remedy = f"grant {request.verb} on it: {answer.message}"
    remedy = f"{instead}, or {remedy}" if instead else remedy
    return Fault(Blame.ACCESS, f"not allowed to {request}", remedy, request)


Answer = Any
"""The object (a tuple of them for a list), None if it does not exist, Denied or Unreadable."""


class Missing(Enum):
    """Why a look-up returns no object."""

    ABSENT = "absent"
    UNSEEN = "unseen"
    """Not read yet, or refused or unreadable, which is a fault."""


class Requests:
    """The answers so far, and the requests and faults of one run of discovery over them."""

    def __init__(self, answers: Mapping[Request, Answer]) -> None:
        self._answers = answers
        self.asked: dict[Request, None] = {}
        """Every request on which the result rests, in order."""
        self.faults: dict[Fault, None] = {}
        """In the order of their discovery."""

    @property
    def wanted(self) -> tuple[Request, ...]:
        """The requests that still have to be made."""
        return tuple(request for request in self.asked if request not in self._answers)

    def report(self, fault: Fault) -> None:
        """Add a fault, with its text cut: it may repeat paths and words of a pod's manifest and of a Corefile."""
        self.faults[replace(fault, text=cut(fault.text, _LONGEST))] = None

    def get(self, kind: Kind[T], namespace: str, name: str) -> T | Missing:
        """One object."""
        found: T | Missing = self._look_up(Request(kind, namespace, name))
        return found

    def peek(self, kind: Kind[T], namespace: str, name: str) -> T | Missing:
        """One object that may be what is looked for. A refusal is no fault: the look goes on elsewhere."""
        request = Request(kind, namespace, name)
        if isinstance(self._answers.get(request), Denied):
            return Missing.UNSEEN
        return self.get(kind, namespace, name)

    def list(
        self, kind: Kind[T], namespace: str, *, label_selector: str = "", instead: str = ""
    ) -> tuple[T, ...] | Missing:
        """All objects of one kind in a namespace; `instead` is what to do without the right to list them."""
        request = Request(kind, namespace, label_selector=label_selector)
        found: tuple[T, ...] | Missing = self._look_up(request, instead)
        return found

    def _look_up(self, request: Request, instead: str = "") -> Any:
        if request not in self.asked and len(self.asked) >= MAXIMUM_REQUESTS:
            self.report(Fault(Blame.CONTENTS, f"more than {MAXIMUM_REQUESTS} objects would have to be read"))
            return Missing.UNSEEN
        self.asked[request] = None
        answer = self._answers.get(request, Missing.UNSEEN)
        if isinstance(answer, Denied | Unreadable):
            self.report(fault_of(request, answer, instead))
            return Missing.UNSEEN
        return Missing.ABSENT if answer is None else answer
