"""The observation: everything that is followed, put together as facts.

The law: a thin shell; it judges nothing. Only endpoints of Services behind subjects that have hostnames are followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import trio

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.own_service import pods_of
from dnsproxy.hostnames.claimed_subjects import ClaimedSubject
from dnsproxy.operate.decide.controllers import controllers_of
from dnsproxy.operate.decide.facts import Facts, Route, ServiceFacts, Subject, SubjectFacts, parse_subject
from dnsproxy.operate.decide.route_manifest import route_of
from dnsproxy.operate.observe.data_plane import DataPlaneReader
from dnsproxy.operate.observe.endpoints import endpoints_of, leaving_of, ready_families, ready_pods
from dnsproxy.operate.observe.followed import EndpointFollowers, Followed, itself, slices_of_namespace
from dnsproxy.operate.observe.owners import backend_of, gateway_owner, owners_of
from dnsproxy.operate.observe.services import follow_services, service_facts
from dnsproxy.operate.observe.structs import GATEWAY_CLASSES, GATEWAYS, INGRESS_CLASSES
from dnsproxy.operate.observe.subjects import SubjectsFollower
from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.relay_routes import route_service_collection


@dataclass(frozen=True, slots=True)
class Places:
    """Which objects of the cluster are ours."""

    service: ObjectRef
    """dnsproxy's Service."""
    namespace: str
    """Of the route Services and the relay."""
    relay_selector: tuple[tuple[str, str], ...]
    """The labels by which a Service selects the relay's pods; sorted."""


class Observation:
    """Follows a cluster; run() must be running. `on_change` is called after each change."""

    def __init__(self, client: ApiClient, places: Places, on_change: Callable[[], None]) -> None:
        self._client = client
        self._places = places
        self._on_change = on_change
        self.services = follow_services(on_change)
        self.classes = Followed(INGRESS_CLASSES, itself, on_change)
        self.gateways = Followed(GATEWAYS, itself, on_change)
        self.gateway_classes = Followed(GATEWAY_CLASSES, itself, on_change)
        self.route_services = Followed(route_service_collection(places.namespace), itself, on_change)
        self.subjects = SubjectsFollower(on_change)
        self.plane = DataPlaneReader(client, on_change)
        self._slices = Followed(slices_of_namespace(places.namespace), itself, on_change)
        self._endpoints: EndpointFollowers | None = None

    async def run(self) -> None:
        """Follow until cancelled."""
        async with trio.open_nursery() as nursery:
            self._endpoints = EndpointFollowers(self._client, nursery, self._on_change)
            for followed in self._followed():
                nursery.start_soon(followed.run, self._client)
            nursery.start_soon(self.subjects.run)
            nursery.start_soon(self.plane.run)

    def _followed(self) -> tuple[Followed[Any, Any], ...]:
        classes = self.classes, self.gateway_classes
        return self.services, *classes, self.gateways, self.route_services, self._slices

    @property
    def statuses(self) -> tuple[FollowerStatus, ...]:
        """The statuses of the lists that the facts need."""
        return tuple(one.status for one in self._followed())

    @property
    def missing(self) -> tuple[str, ...]:
        """What was not read yet, or is not certain."""
        return (*self._unread, *([f"the data plane: {self.plane.reason}"] if self.plane.reason else []))

    @property
    def _unread(self) -> tuple[str, ...]:
        """Of that, what subjects and Services are made of: while there is any, none of these counts as absent."""
        lists = (f"{one.kind}: {one.describe()}" for one in self.statuses if not one.synced)
        return (*lists, *([f"dnsproxy's subjects: {self.subjects.doubt}"] if self.subjects.doubt else []))

    def facts(self) -> Facts:
        """What is known now, without probes and handshakes."""
        routes = tuple(map(route_of, self.route_services.objects.values()))
        relay = self._relay_slices(routes)
        subjects = tuple(map(self._subject, self.subjects.claimed))
        facts = Facts(
            self._places.namespace,
            self._places.relay_selector,
            ready_pods(relay),
            ready_families(relay),
            subjects=subjects,
            services=service_facts(self.services.objects, routes, subjects),
            plane=self.plane.plane,
            why_no_plane=self.plane.reason,
            routes=routes,
            complete=not self._unread,
        )
        return self._with_endpoints(facts)

    def _with_endpoints(self, facts: Facts) -> Facts:
        """The facts with the endpoints of the controllers, which are followed from now on."""
        controllers = controllers_of(facts)
        own = str(self._places.service)
        if self._endpoints is None:
            return facts
        self._endpoints.want({**controllers, own: None})
        self.subjects.follow(pods_of(self._endpoints.slices(own) or ()))
        found: dict[str, ServiceFacts] = {}
        for key, one in controllers.items():
            slices = self._endpoints.slices(key)
            if slices is not None:
                usable, leaving = endpoints_of(one.service, slices), leaving_of(one.service, slices)
                found[key] = replace(one, endpoints=usable, leaving=leaving)
        return replace(facts, services={**facts.services, **found})

    def _subject(self, claimed: ClaimedSubject) -> SubjectFacts:
        subject = parse_subject(claimed.subject)
        backend, owners = self._marks_of_gateway(subject) if subject.namespace else self._marks_of_class(subject)
        return SubjectFacts(subject, claimed.hostnames, claimed.examples, claimed.status, backend, owners)

    def _marks_of_class(self, subject: Subject) -> tuple[str | None, frozenset[str]]:
        """The annotation with its backend, and its owners."""
        found = self.classes.objects.get(subject.name)
        return (backend_of(found.metadata), owners_of(found.metadata)) if found is not None else (None, frozenset())

    def _marks_of_gateway(self, subject: Subject) -> tuple[str | None, frozenset[str]]:
        """The same; without an annotation of its own that of its class, whose owners own no Gateway."""
        own = frozenset([gateway_owner(subject.namespace, subject.name)])
        found = self.gateways.objects.get(f"{subject.namespace}/{subject.name}")
        if found is None:
            return None, own
        of_class = self.gateway_classes.objects.get(found.spec.gateway_class_name)
        backend = backend_of(found.metadata)
        if backend is None and of_class is not None:
            backend = backend_of(of_class.metadata)
        return backend, own | owners_of(found.metadata)

    def _relay_slices(self, routes: Iterable[Route]) -> tuple[EndpointSlice, ...]:
        """Those of the route Services, which all have the same pods."""
        ours = {route.name for route in routes if route.ours and route.relay_to}
        slices = self._slices.objects.values()
        return tuple(
            one for one in slices if one.metadata.labels is not None and one.metadata.labels.service_name in ours
        )
