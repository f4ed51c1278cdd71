"""Reads Gateways: the hostnames of the Gateway API with their objects, classes and load balancers.

The law: as in read_hosts, and as in read_kinds. Tested in tests/dnsproxy/doctor/collect/test_read_hosts.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from dnsproxy.doctor.collect.read_kinds import Objects, discover_kinds, read_objects, settle
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.collect.structs import ControlledClass
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.sources.gateway.kinds import GATEWAY, GROUP, LISTENER_SETS
from dnsproxy.sources.gateway.source import GatewaySource
from dnsproxy.sources.gateway.structs import Gateway, ListenerSet, Namespace
from dnsproxy.sources.gateway.versions import NAMESPACES, WATCHED
from dnsproxy.sources.settings import GatewayOptions
from dnsproxy.sources.watched_kinds import WatchedKind
from sidecar.kubernetes.objects import Collection
from sidecar.loop.side_by_side import side_by_side

_TLS: Final = ("HTTPS", "TLS")
_CLASSES: Final = Collection("GatewayClass", f"/apis/{GROUP}/v1/gatewayclasses", ControlledClass)

TlsClaims = frozenset[tuple[str, str]]
"""Origin and hostname of the claims that a listener with TLS serves."""


async def read_gateways(reader: Reader, store: ClaimStore) -> tuple[TlsClaims, Objects]:
    """Adds the claims of Gateways to a store. Returns those with TLS, and the GatewayClasses."""
    collections = await discover_kinds(reader, WATCHED, _name)
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


def _name(kind: WatchedKind) -> str:
    return f"list {kind.resource}"


def _claim(store: ClaimStore, objects: Mapping[str, Objects], namespaces: Mapping[str, Namespace]) -> None:
    source = GatewaySource(store, options=GatewayOptions())
    source.change(NAMESPACES.kind, namespaces)
    for kind, of_kind in objects.items():
        source.change(kind, of_kind)
    settle(source)


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
