"""Reads the requests of discovery from the API server, round by round.

The law: only GET, only the requests of the pure modules, all of a round at once, each within its deadline. An absent
object and a refusal by RBAC are answers; any other failure of the API server ends in one StartError with status 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import trio

from dnsproxy.cluster_dns.find import find
from dnsproxy.cluster_dns.found import Found, ServiceRef
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.own_service import FoundOwn, find_own, pods_of, slices_request
from dnsproxy.cluster_dns.requests import SERVICE, Answer, Denied, Fault, Request, Unreadable, fault_of
from sidecar.kubernetes import objects
from sidecar.kubernetes.cluster import could_not_ask
from sidecar.kubernetes.config import find_cluster
from sidecar.kubernetes.errors import ApiError, Forbidden, Garbled, NotFound, TimedOut
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.one_shot import get_object, list_all
from sidecar.kubernetes.reads import Reads
from sidecar.kubernetes.watch_policy import Pace
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds that the API server has."""

    response: float = 10.0
    """For one response."""
    rounds: float = 30.0
    """For all rounds; there are about five."""


DEADLINES: Final = Deadlines()

Answers = Mapping[Request, Answer]


async def load_client(*, kubeconfig: str | None, context: str | None) -> ApiClient:
    """A client, not yet opened, for the selected cluster. Raises StartError with status 3."""
    return ApiClient(await find_cluster(kubeconfig=kubeconfig, context=context, status=ExitStatus.UNKNOWN))


async def discover(client: Reads, where: ServiceRef | None = None, *, deadlines: Deadlines = DEADLINES) -> Found:
    """What serves the cluster's DNS. Raises StartError with status 3 if the API server does not answer."""
    answers = await gather(client, lambda answers: find(answers, where).wanted, deadlines=deadlines)
    return find(answers, where)


async def gather(
    client: Reads, wanted: Callable[[Answers], Iterable[Request]], *, deadlines: Deadlines = DEADLINES
) -> Answers:
    """The answers to all wanted requests, read until none is wanted. Raises StartError with status 3."""
    reader = _Reader(client, deadlines.response)
    try:
        with trio.fail_after(deadlines.rounds):
            while requests := tuple(wanted(reader.answers)):
                await reader.read(requests)
                if reader.failures:
                    message = could_not_ask(client.cluster, reader.failures[0])
                    raise StartError(message, status=ExitStatus.UNKNOWN)
    except trio.TooSlowError:
        message = could_not_ask(client.cluster, f"not all answers came within {deadlines.rounds:g} s")
        raise StartError(message, status=ExitStatus.UNKNOWN) from None
    return reader.answers


class _Reader:
    def __init__(self, client: Reads, seconds: float) -> None:
        self._client = client
        self._seconds = seconds
        self.answers: dict[Request, Answer] = {}
        self.failures: list[str] = []

    async def read(self, wanted: Iterable[Request]) -> None:
        """Read one round: answers and failures."""
        async with trio.open_nursery() as nursery:
            for request in wanted:
                nursery.start_soon(self._read, request)

    async def _read(self, request: Request) -> None:
        try:
            self.answers[request] = await _answer(self._client, request, self._seconds)
        except TimedOut as error:
            self.failures.append(f"{request}: {error}")
        except ApiError as error:
            self.failures.append(str(error))


async def _answer(client: Reads, request: Request, seconds: float) -> Answer:
    """The answer to one request; a refusal is an answer. Raises ApiError for any other failure."""
    try:
        if request.name is not None:
            return await get_object(client, request.path, request.kind.type, seconds=seconds)
        return await _list(client, request, seconds)
    except Forbidden as error:
        return Denied(str(error))
    except NotFound:
        return None
    except Garbled as error:
        return Unreadable(str(error))


async def _list(client: Reads, request: Request, seconds: float) -> Answer:
    kind = request.kind
    collection = Collection(kind.name, request.path, kind.type, label_selector=request.label_selector)
    found = await list_all(client, collection, pace=Pace(list_timeout=seconds))
    bad = (one for one in found.values() if isinstance(one, objects.Unreadable))
    # Without the unreadable object, the list would pass for complete.
    return next((Unreadable(one.reason) for one in bad), tuple(found.values()))


async def read_one(client: Reads, request: Request) -> Any | Fault:
    """The answer to one request, None if the object does not exist, or why it could not be read. Raises StartError."""
    answer = (await gather(client, lambda answers: () if request in answers else (request,)))[request]
    return fault_of(request, answer) if isinstance(answer, Denied | Unreadable) else answer


async def read_own_addresses(client: ApiClient, ref: ObjectRef) -> tuple[Endpoint, ...] | Fault:
    """The addresses of dnsproxy's Service, none if it does not exist. Raises StartError."""
    request = Request(SERVICE, ref.namespace, ref.name)
    found = await read_one(client, request)
    return found if isinstance(found, Fault) else find_own({request: found}, ref).endpoints


async def read_own_pods(client: ApiClient, ref: ObjectRef) -> tuple[Endpoint, ...] | Fault:
    """The admin ports of dnsproxy's ready pods. Raises StartError."""
    found = await read_one(client, slices_request(ref))
    return found if isinstance(found, Fault) else pods_of(found or ())


async def read_own(
    client: Reads, ref: ObjectRef, cluster_dns: tuple[str, ...] = (), *, deadlines: Deadlines = DEADLINES
) -> FoundOwn:
    """The own Service of dnsproxy. Raises StartError with status 3."""
    answers = await gather(client, lambda answers: find_own(answers, ref, cluster_dns).wanted, deadlines=deadlines)
    return find_own(answers, ref, cluster_dns)
