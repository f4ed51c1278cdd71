"""Steering reading: what the replicas of `dnsproxy operate` say, for `dnsproxy status`.

The law: GET requests only. Each pod is asked directly, and through the API server where there is no route to pods. What
could not be asked is a reason, never an absence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import trio

from dnsproxy.admin.steering_document import LARGEST, PATH, SteeringDocument, parse_steering
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.own_service import slices_request
from dnsproxy.cluster_dns.requests import Denied, Fault, Kind, Request, Unreadable, fault_of
from sidecar.admin.asking import NoAnswer, get
from sidecar.kubernetes.endpoint_slices import SERVICE_NAME, Condition, EndpointSlice, condition_of
from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.names import LONGEST_SUBDOMAIN, SUBDOMAIN
from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.one_shot import list_all
from sidecar.kubernetes.watch_policy import Pace
from sidecar.values.endpoints import Endpoint, is_address
from sidecar.values.text import cut, one_line

SERVICE: Final = "operate"
"""The Service of its pods, in the namespace of dnsproxy's."""
PROGRAM: Final = "dnsproxy operate"
ADMIN_PORT: Final = 8085
SECONDS: Final = 3.0
"""For the direct answer of a pod, and for one of the API server."""
_ADMIN: Final = "admin"
_SUBDOMAIN: Final = re.compile(SUBDOMAIN)
_PROXIED: Final = Kind("Pod", "pods/proxy", "", bytes)
"""The answer of a pod's port through the API server."""
_LONGEST: Final = 300
"""Characters of what a pod says instead of its document."""
_PACE: Final = Pace(list_timeout=10.0)


@dataclass(frozen=True, slots=True)
class ReadSteering:
    """What is known of the steering."""

    document: SteeringDocument | None = None
    """That of the replica that leads, or of another one; None if none answered."""
    unknown: str = ""
    """Why there is no document; empty with one, and where `dnsproxy operate` does not run."""
    unread: Fault | None = None
    """The same, as a fault; None if nothing is to be read."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod and its admin port."""

    name: str
    endpoint: Endpoint


async def read_steering(client: ApiClient, own: ObjectRef) -> ReadSteering:
    """What the replicas beside dnsproxy's own Service say. Never raises."""
    try:
        pods = await _read_pods(client, own.namespace)
    except NotFound:
        return ReadSteering()
    except Forbidden as error:
        fault = fault_of(slices_request(ObjectRef(own.namespace, SERVICE)), Denied(str(error)))
        return ReadSteering(unknown=str(fault), unread=fault)
    except ApiError as error:
        fault = fault_of(slices_request(ObjectRef(own.namespace, SERVICE)), Unreadable(str(error)))
        return ReadSteering(unknown=str(fault), unread=fault)
    unread: list[Fault] = []
    found: SteeringDocument | None = None
    for pod in pods:
        try:
            document = parse_steering(await ask_pod(client, own.namespace, pod, PATH, program=PROGRAM, largest=LARGEST))
        except Forbidden as error:
            unread.append(fault_of_pod(own.namespace, pod, error))
            continue
        except (NoAnswer, ApiError, ValueError) as error:
            why = Unreadable(f"pod {pod.name}: {cut(one_line(str(error)), _LONGEST)}")
            unread.append(fault_of(Request(_PROXIED, own.namespace, pod.name), why))
            continue
        if document.leads:
            return ReadSteering(document)
        found = found or document
    if found is not None:
        return ReadSteering(found)
    return ReadSteering(None, next(map(str, unread), ""), next(iter(unread), None))


def fault_of_pod(namespace: str, pod: Pod, error: Forbidden) -> Fault:
    """What a pod that must not be asked through the API server is to a report."""
    return fault_of(Request(_PROXIED, namespace, pod.name), Denied(str(error)))


async def _read_pods(client: ApiClient, namespace: str) -> list[Pod]:
    """The ready pods. Raises ApiError."""
    slices = await list_slices(client, namespace, f"{SERVICE_NAME}={SERVICE}")
    return list({pod.name: pod for one in reversed(slices) for pod in pods_of(one, port=ADMIN_PORT)}.values())


async def list_slices(client: ApiClient, namespace: str, selector: str = "") -> list[EndpointSlice]:
    """The EndpointSlices of a namespace, those with IPv4 addresses first. Raises ApiError."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    collection = Collection("EndpointSlice", path, EndpointSlice, label_selector=selector)
    found = await list_all(client, collection, pace=_PACE)
    return sorted((one for one in found.values() if isinstance(one, EndpointSlice)), key=lambda one: one.address_type)


def pods_of(one: EndpointSlice, *, port: int) -> Iterator[Pod]:
    """The ready pods of a slice; `port` is their admin port, if the slice does not name it."""
    port = next((port.port for port in one.ports or () if port.name == _ADMIN and port.port), port)
    for endpoint in one.endpoints or ():
        address = next(filter(is_address, endpoint.addresses or ()), "")
        named = (endpoint.target_ref.name if endpoint.target_ref else None) or ""
        # Whoever writes an EndpointSlice writes this name; it becomes a part of a path.
        name = named if len(named) <= LONGEST_SUBDOMAIN and _SUBDOMAIN.fullmatch(named) else address
        if address and condition_of(endpoint) is Condition.READY:
            yield Pod(name, Endpoint(address, port))


async def ask_pod(client: ApiClient, namespace: str, pod: Pod, target: str, *, program: str, largest: int) -> bytes:
    """The answer of a pod to `GET target`; `program` is the command expected there. Raises NoAnswer or ApiError."""
    with trio.move_on_after(SECONDS):
        try:
            return (await get(pod.endpoint, target, program=program, largest=largest)).body
        except NoAnswer as error:
            if error.status:
                raise
    name = quote(f"{pod.name}:{pod.endpoint.port}", safe=":")
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/proxy{target}"
    return await client.get(path, seconds=SECONDS, largest=largest)
