"""Reads Gateways: the hostnames of the Gateway API with their objects, classes and load balancers.

The law: as in read_hosts. A version that the API server does not have is an absence; if its discovery failed, the kinds
that it may have are lists that could not be read. Tested in tests/dnsproxy/doctor/collect/test_read_hosts.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.collect.side_by_side import read_each, side_by_side
from dnsproxy.doctor.collect.structs import ControlledClass
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.sources.gateway.kinds import GATEWAY, GROUP, LISTENER_SETS
from dnsproxy.sources.gateway.source import GatewaySource
from dnsproxy.sources.gateway.structs import Gateway, ListenerSet, Namespace
from dnsproxy.sources.gateway.versions import (
    GROUP_VERSIONS,
    NAMESPACES,
    RESOURCES,
    GatewayCollection,
    choose_collections,
    parse_resources,
)
from dnsproxy.sources.settings import GatewayOptions
from sidecar.kubernetes.errors import ApiError, NotFound
from sidecar.kubernetes.objects import Collection, Resource, key_of

_SETTLE: Final = 1000
_TLS: Final = ("HTTPS", "TLS")
_CLASSES: Final = Collection("GatewayClass", f"/apis/{GROUP}/v1/gatewayclasses", ControlledClass)

Objects = dict[str, Any]
"""Objects of one kind by `NAMESPACE/NAME`, or by name."""
TlsClaims = frozenset[tuple[str, str]]
"""Origin and hostname of the claims that a listener with TLS serves."""


async def read_gateways(reader: Reader, store: ClaimStore) -> tuple[TlsClaims, Objects]:
    """Adds the claims of Gateways to a store. Returns those with TLS, and the GatewayClasses."""
    collections = await _discover(reader)
    if not collections:
        return frozenset(), {}
    async with side_by_side() as start:
        found = {kind: start(read_objects, reader, collection) for kind, collection in collections.items()}
        namespaces = start(read_objects, reader, NAMESPACES)
        classes = start(read_objects, reader, _CLASSES)
    objects = {kind: one.value for kind, one in found.items()}
    _claim(store, objects, namespaces.value)
    with_tls = ClaimStore()
    _claim(with_tls, _with_tls(objects), namespaces.value)
    return frozenset((str(claim.origin), claim.hostname) for claim in with_tls.claims()), classes.value


async def read_objects(reader: Reader, collection: Collection[Any]) -> Objects:
    """The objects of a collection; none if it could not be read."""
    found: list[Resource] = await reader.list(collection.path, collection.type, list_of(collection.path)) or []
    return {key_of(one.metadata): one for one in found}


def list_of(path: str) -> str:
    """The name of a list request."""
    return f"list {path.rpartition('/')[2]}"


async def _discover(reader: Reader) -> dict[str, GatewayCollection]:
    answers = await read_each(lambda version: _ask_version(reader, version), GROUP_VERSIONS)
    found = dict(zip(GROUP_VERSIONS, answers, strict=True))
    chosen = choose_collections({version: one for version, one in found.items() if isinstance(one, frozenset)})
    failed = {version: one for version, one in found.items() if isinstance(one, ApiError)}
    for kind, collection in choose_collections(dict.fromkeys(failed, RESOURCES)).items():
        if kind not in chosen:
            version = collection.path.removeprefix("/apis/").rpartition("/")[0]
            reader.note(failed[version], list_of(collection.path), f"/apis/{version}")
    return chosen


async def _ask_version(reader: Reader, version: str) -> frozenset[str] | ApiError:
    """The resources of a `GROUP/VERSION`, or why they are unknown."""
    path = f"/apis/{version}"
    try:
        return parse_resources((await reader.text(path, f"discover {version}")).encode())
    except NotFound:
        return frozenset()
    except ApiError as error:
        return error


def _claim(store: ClaimStore, objects: Mapping[str, Objects], namespaces: Mapping[str, Namespace]) -> None:
    source = GatewaySource(store, options=GatewayOptions())
    source.change_namespaces(namespaces)
    for kind, of_kind in objects.items():
        source.change(kind, of_kind)
    while not source.is_settled:
        source.settle(_SETTLE)


def _with_tls(objects: Mapping[str, Objects]) -> dict[str, Objects]:
    """The same objects, with only those listeners that have TLS."""
    kinds = (GATEWAY, *LISTENER_SETS)
    return {
        kind: {key: _only_tls(one) for key, one in of_kind.items()} if kind in kinds else of_kind
        for kind, of_kind in objects.items()
    }


def _only_tls(one: Gateway | ListenerSet) -> Gateway | ListenerSet:
    listeners = one.spec.listeners or ()
    kept = tuple(listener for listener in listeners if listener is not None and listener.protocol in _TLS)
    return replace(one, spec=replace(one.spec, listeners=kept))
