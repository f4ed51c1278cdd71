"""Facts: what was read from the cluster so far, what is still wanted, and what could not be read.

The law: a Request is a value and says itself which verb on which object RBAC has to grant. Whoever looks something up
that nobody has read makes it wanted, and goes on as if it were not there; once nothing is wanted, all was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.structs.network import Ingress, Service
from sidecar.kubernetes.structs.workload import ConfigMap, Workload

T = TypeVar("T")

MAXIMUM_REQUESTS: Final = 64
"""Far more than any real cluster needs; imports that name ConfigMaps without end must not have us read all of them."""


class Blame(Enum):
    """Where a fault lies."""

    ACCESS = "access"
    """Something could not be read: what is said of the cluster may be wrong."""
    CONTENTS = "contents"
    """All was read, and this is how the cluster is."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong."""

    blame: Blame
    text: str
    """What and where; may hold text from the cluster."""
    remedy: str = ""
    """What to do; empty where the text says it."""

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of object that discovery reads."""

    name: str
    """As people say it: `ConfigMap`."""
    plural: str
    """As RBAC and paths say it: `configmaps`."""
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
    """Empty for all of them, where a kind is listed."""
    name: str | None = None
    """None for all of them."""
    label_selector: str = ""

    @property
    def verb(self) -> str:
        """What RBAC has to allow."""
        return "list" if self.name is None else "get"

    @property
    def path(self) -> str:
        """Where the API server has it."""
        api = f"/apis/{self.kind.group}/v1" if self.kind.group else "/api/v1"
        inside = f"/namespaces/{quote(self.namespace, safe='')}" if self.namespace else ""
        collection = f"{api}{inside}/{self.kind.plural}"
        return collection if self.name is None else f"{collection}/{quote(self.name, safe='')}"

    def __str__(self) -> str:
        """Verb and object, as a person is to be told: `get configmaps coredns in namespace kube-system`."""
        where = f"in namespace {self.namespace}" if self.namespace else "in all namespaces"
        return f"{self.verb} {self.kind.resource}{f' {self.name}' if self.name else ''} {where}"


@dataclass(frozen=True, slots=True)
class Denied:
    """The answer to a request that RBAC does not allow."""

    message: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The answer to a request whose object is not of the types its kind promises."""

    reason: str


Answer = Any
"""The object (a list of them as a tuple), None where there is none, Denied or Unreadable."""


class Missing(Enum):
    """Why there is no object."""

    ABSENT = "absent"
    UNSEEN = "unseen"
    """Not read yet, or not readable: a fault says so."""


class Requests:
    """Answers by request, and notes on those that were missed. One for each time that a Found is made."""

    def __init__(self, answers: Mapping[Request, Answer]) -> None:
        self._answers = answers
        self.asked: dict[Request, None] = {}
        """Every request that discovery depends on, in order."""
        self.faults: dict[Fault, None] = {}
        """In the order in which they were met."""

    @property
    def wanted(self) -> tuple[Request, ...]:
        """What has to be read before the result counts."""
        return tuple(request for request in self.asked if request not in self._answers)

    def tell(self, fault: Fault) -> None:
        """Note what is wrong with the cluster."""
        self.faults[fault] = None

    def get(self, kind: Kind[T], namespace: str, name: str) -> T | Missing:
        """One object."""
        found: T | Missing = self._look_up(Request(kind, namespace, name))
        return found

    def list(self, kind: Kind[T], namespace: str, *, label_selector: str = "") -> tuple[T, ...] | Missing:
        """All objects of one kind in a namespace."""
        found: tuple[T, ...] | Missing = self._look_up(Request(kind, namespace, label_selector=label_selector))
        return found

    def _look_up(self, request: Request) -> Any:
        if request not in self.asked and len(self.asked) >= MAXIMUM_REQUESTS:
            self.tell(Fault(Blame.CONTENTS, f"more than {MAXIMUM_REQUESTS} objects would have to be read"))
            return Missing.UNSEEN
        self.asked[request] = None
        answer = self._answers.get(request, Missing.UNSEEN)
        if isinstance(answer, Denied):
            self.tell(Fault(Blame.ACCESS, f"not allowed to {request}", f"grant {request.verb} on it: {answer.message}"))
            return Missing.UNSEEN
        if isinstance(answer, Unreadable):
            self.tell(Fault(Blame.ACCESS, f"what came for {request} is unreadable: {answer.reason}"))
            return Missing.UNSEEN
        return Missing.ABSENT if answer is None else answer
