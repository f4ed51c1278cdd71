"""Claimed names: what Switchback's pure core answers from the objects of an API server.

The law: the objects as the API server lists them, with its defaults and the statuses of controllers, through the same
structs, sources and verdicts as in `dnsproxy serve`; no loop, no watch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Rejection
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.rights import Rights
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.wildcards import wider
from dnsproxy.sources.described.source import DescribedSource
from dnsproxy.sources.described.table import kinds_of
from dnsproxy.sources.gateway.source import GatewaySource
from dnsproxy.sources.gateway.versions import NAMESPACES
from dnsproxy.sources.gateway.versions import WATCHED as GATEWAY_WATCHED
from dnsproxy.sources.ingress import INGRESS_CLASSES, INGRESSES
from dnsproxy.sources.ingress_source import IngressSource
from dnsproxy.sources.settings import GatewayOptions, IngressOptions, SourceOptions
from sidecar.kubernetes.objects import Collection, Unreadable
from sidecar.kubernetes.protocol import Decoder
from tests.differential.sets import ObjectSet
from tests.kit.apiserver import TOKEN, ApiServer

RELAY: Final = "192.0.2.53"
"""The address of every answer."""


class Claimed:
    """The verdicts on all names of a cluster."""

    def __init__(
        self,
        *,
        ingress: IngressOptions | None = None,
        gateway: GatewayOptions | None = None,
        others: Iterable[SourceOptions] = (),
    ) -> None:
        self._ingress, self._gateway, self._others = ingress, gateway, tuple(others)
        rights = Rights(named_classes=ingress.classes if ingress else frozenset())
        self.registry = Registry(targets=Targets(default=(RELAY,)), guards=Guards(), rights=rights)

    def read(self, server: ApiServer) -> None:
        """Take all objects of the sources from an API server."""
        if self._ingress is not None:
            self._read_ingresses(server, self._ingress)
        if self._gateway is not None:
            self._read_gateways(server, self._gateway)
        for options in self._others:
            self._read_described(server, options)

    def _read_described(self, server: ApiServer, options: SourceOptions) -> None:
        kinds = kinds_of(options.name)
        source = DescribedSource(self.registry.store, kinds, classes=options.classes)
        source.change(INGRESS_CLASSES.kind, listed(server, INGRESS_CLASSES))
        for kind in kinds:
            for version in kind.watched.versions[:1]:
                source.change(kind.name, listed(server, kind.watched.collection(version)))

    def _read_ingresses(self, server: ApiServer, options: IngressOptions) -> None:
        source = IngressSource(self.registry.store, options=options)
        source.change_classes(listed(server, INGRESS_CLASSES))
        source.change_ingresses(listed(server, INGRESSES))
        self.registry.set_rights(classes=source.class_names, nginx_classes=source.nginx_classes, namespaces=frozenset())

    def _read_gateways(self, server: ApiServer, options: GatewayOptions) -> None:
        source = GatewaySource(self.registry.store, options=options)
        source.change(NAMESPACES.kind, listed(server, NAMESPACES))
        for kind in GATEWAY_WATCHED:
            for version in kind.versions[:1]:
                source.change(kind.kind, listed(server, kind.collection(version)))
        while not source.is_settled:
            source.settle(1000)

    def winner(self, name: str) -> Claim | None:
        """The claim by which a name is answered: its own, or that of the narrowest wildcard that covers it."""
        return next((claim for claim in self._winners(name) if claim is not None), None)

    def claims(self, objects: ObjectSet, name: str) -> list[Claim]:  # noqa: ARG002  # the form for find_differences
        """The claims to a name; none if it is not answered."""
        return self.covering(name) if self.winner(name) is not None else []

    def covering(self, name: str) -> list[Claim]:
        """Every claim that is answered for a name, or would be if the others did not exist."""
        return [
            claim
            for hostname, reach in _rows_for(name)
            for claim in self.registry.store.claims_for(hostname)
            if claim.reach is reach and self.registry.allows(claim)
        ]

    def rejections(self, namespaces: Iterable[str]) -> Iterator[Rejection]:
        """What was rejected of the objects of some namespaces."""
        wanted = frozenset(namespaces)
        return (one for one in self.registry.store.rejections() if one.origin.namespace in wanted)

    def _winners(self, name: str) -> Iterator[Claim | None]:
        for hostname, reach in _rows_for(name):
            yield self.registry.verdict(hostname, reach).winner


def _rows_for(name: str) -> Iterator[tuple[str, Reach]]:
    """The rows of a table that cover a name, in the order in which the table looks them up."""
    yield name, Reach.NAME
    for number, wildcard in enumerate(wider(name)):
        if not number:
            yield wildcard, Reach.ONE_LABEL
        yield wildcard, Reach.ANY_LABELS


def listed(server: ApiServer, collection: Collection[Any]) -> Mapping[str, Any | Unreadable]:
    """The objects of a collection by key, decoded as `dnsproxy serve` does; none if the server lacks the collection."""
    decoder: Decoder[Any] = Decoder(collection.type)
    with server.connection() as connection:
        connection.request("GET", collection.path, headers={"authorization": f"Bearer {TOKEN}"})
        response = connection.getresponse()
        body = response.read()
    if response.status == 404:
        return {}
    assert response.status == 200, body
    return {entry.key: entry.value for entry in decoder.decode_items(decoder.split_page(body).items)}
