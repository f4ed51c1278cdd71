"""The Gateway API source: from changes of its objects to changes of claims.

The law: pure; once settled, the claims depend only on the objects, never on the order of their changes. A change costs
what it touches. One Gateway may touch all routes, so a change is recorded at once and settled in slices, so that other
tasks run in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dnsproxy.hostnames.claim_sink import ClaimSink
from dnsproxy.sources.gateway.contribution import contribution
from dnsproxy.sources.gateway.facts import Object, read_facts
from dnsproxy.sources.gateway.kinds import LISTENER_SETS, Ref
from dnsproxy.sources.gateway.object_graph import ObjectGraph
from dnsproxy.sources.gateway.structs import Namespace
from dnsproxy.sources.gateway.versions import NAMESPACES
from dnsproxy.sources.settings import GatewayOptions
from sidecar.kubernetes.objects import Unreadable


class GatewaySource:
    """Feeds one ClaimSink with the claims of Gateways, ListenerSets and routes."""

    def __init__(self, store: ClaimSink, *, options: GatewayOptions) -> None:
        self._store = store
        self._classes = options.classes
        self._graph = ObjectGraph()
        self._touched: dict[Ref, None] = {}
        self._below: dict[Ref | str, list[Ref]] = {}

    @property
    def is_settled(self) -> bool:
        """Whether the claims match the reported objects."""
        return not (self._touched or self._below)

    def is_empty(self) -> bool:
        """Whether no trace of any reported object is left."""
        return self.is_settled and self._graph.is_empty()

    def change(self, kind: str, changes: Mapping[str, Any]) -> frozenset[str]:
        """Record changes of objects of one kind (kinds.SOURCES, or Namespaces), by key."""
        if kind == NAMESPACES.kind:
            self._change_namespaces(changes)
        else:
            self._change_objects(kind, changes)
        return frozenset()

    def _change_objects(self, kind: str, changes: Mapping[str, Object | Unreadable | None]) -> None:
        for key, one in changes.items():
            namespace, _, name = key.rpartition("/")
            ref = Ref(kind, namespace, name)
            if self._graph.put(ref, None if one is None else read_facts(kind, one)):
                self._touched[ref] = None
                self._spread(ref, self._graph.children(ref))

    def _change_namespaces(self, changes: Mapping[str, Namespace | Unreadable | None]) -> None:
        for name, one in changes.items():
            labels = (one.metadata.labels or {}) if isinstance(one, Namespace) else None
            if self._graph.put_labels(name, labels):
                self._spread(name, self._graph.residents(name))

    def report(self, kind: str, key: str) -> frozenset[str]:
        """Evaluate one object again at once. Returns the hostnames whose claims changed."""
        namespace, _, name = key.rpartition("/")
        return self._evaluate(Ref(kind, namespace, name))

    def settle(self, limit: int) -> frozenset[str]:
        """Evaluate at most this many objects again. Returns the hostnames whose claims changed."""
        hostnames: set[str] = set()
        while limit > 0 and not self.is_settled:
            hostnames |= self._evaluate(self._next())
            limit -= 1
        return frozenset(hostnames)

    def _evaluate(self, ref: Ref) -> frozenset[str]:
        claims, rejections = contribution(ref, self._graph, classes=self._classes)
        return self._store.replace(ref.kind, f"{ref.namespace}/{ref.name}", claims, rejections)

    def _next(self) -> Ref:
        """Objects that changed come before those below a changed Gateway, because a user is waiting for them."""
        if self._touched:
            return self._touched.popitem()[0]
        above = next(iter(self._below))
        refs = self._below[above]
        ref = refs.pop()
        if not refs:
            del self._below[above]
        if ref.kind in LISTENER_SETS:
            self._spread(ref, self._graph.children(ref))
        return ref

    def _spread(self, above: Ref | str, refs: list[Ref]) -> None:
        """Queue the objects below an object or in a namespace, as they are now."""
        if refs:
            self._below[above] = refs
