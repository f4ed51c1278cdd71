"""Reads what --apply and --remove plan with: the policy, its binding, and Services.

The law: only GET, each within its deadline. An absent object is an answer, and one that may not be read
counts as absent, because rights.py names it before anything is written.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from dnsproxy.cluster_dns.requests import SERVICE, Request
from dnsproxy.doctor.collect.read_hosts import make_service
from dnsproxy.doctor.collect.read_nodes import read_nodes
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.ip_mode.present import PLURALS, Present, is_selected, object_path, ref_of, service_path
from dnsproxy.ip_mode.request import WriteRequest
from dnsproxy.ip_mode.selection import Selection
from sidecar.kubernetes.errors import Forbidden, NotFound, ServerTrouble
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection, Unreadable
from sidecar.kubernetes.one_shot import get_object, list_all
from sidecar.kubernetes.structs.network import Service
from sidecar.kubernetes.watch_policy import Pace

SECONDS: Final = 15.0
"""For one answer of the API server; webhooks may take 10 of them."""

T = TypeVar("T")


async def survey(client: ApiClient, version: str, request: WriteRequest, *, harm: bool = False) -> Present:
    """The present objects; `version` is empty if there can be no policy. Raises ApiError.

    `harm`: with what tells whether ipMode Proxy does harm, and to whom beside the named Services.
    """
    kinds = PLURALS if version else ()
    found = {kind: await _get(client, object_path(version, kind), dict[str, Any]) for kind in kinds}
    objects = {kind: one for kind, one in found.items() if one is not None}
    named = {ref: await _get(client, service_path(ref), Service) for ref in request.services}
    listed = tuple(await _list(client) or ()) if request.lists else ()
    annotated = await _annotated(client) if harm and not request.lists else ()
    seen = [*listed, *(annotated or ()), *(service for service in named.values() if service)]
    facts = {ref_of(service): make_service(service) for service in seen}
    scheme = await _scheme(client) if harm else ""
    return Present(version, objects, named, listed, facts, scheme, annotated)


async def _scheme(client: ApiClient) -> str:
    """Of the nodes' providerID. Raises ApiError, because an unknown provider is harmless only if there is none."""
    reader = Reader(client)
    nodes = await read_nodes(reader)
    for failure in reader.failures:
        if failure.what == "list nodes" and not failure.why.startswith("forbidden: "):
            raise ServerTrouble(f"{failure.what}: {failure.why}")
    return nodes.provider


async def _get(client: ApiClient, path: str, kind: type[T]) -> T | None:
    try:
        return await get_object(client, path, kind, seconds=SECONDS)
    except (NotFound, Forbidden):
        return None


async def _annotated(client: ApiClient) -> tuple[Service, ...] | None:
    found = await _list(client)
    return None if found is None else tuple(one for one in found if is_selected(one, Selection(())))


async def _list(client: ApiClient) -> list[Service] | None:
    collection = Collection(SERVICE.name, Request(SERVICE, "").path, Service)
    try:
        found = await list_all(client, collection, pace=Pace(list_timeout=SECONDS))
    except Forbidden:
        return None
    return [one for one in found.values() if not isinstance(one, Unreadable)]
