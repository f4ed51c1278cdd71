"""The source of Istio's names: from changes of Gateways and VirtualServices to changes of claims.

The law: pure; once settled, the claims depend only on the objects, never on the order of their changes. A change costs
what it touches. One Gateway may touch all VirtualServices, so a change is recorded at once and settled in slices, so
that other tasks run in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from dnsproxy.hostnames.claim_sink import ClaimSink
from dnsproxy.sources.istio.contribution import contribution
from dnsproxy.sources.istio.facts import Object, read_facts
from dnsproxy.sources.istio.kinds import ISTIO_GATEWAY, VIRTUAL_SERVICE
from dnsproxy.sources.istio.object_graph import ObjectGraph
from sidecar.kubernetes.objects import Unreadable


class IstioSource:
    """Feeds one ClaimSink with the claims of Gateways and VirtualServices."""

    def __init__(self, store: ClaimSink, *, classes: Set[str] = frozenset(), most: int | None = None) -> None:
        """`classes`: the selectors of the Gateways that count; empty: all but those for egress (binding.py).

        `most`: the hosts of one object that are read.
        """
        self._store = store
        self._classes = classes
        self._most = most
        self._graph = ObjectGraph()
        self._touched: dict[tuple[str, str], None] = {}
        self._below: dict[str, list[str]] = {}

    @property
    def is_settled(self) -> bool:
        """Whether the claims match the reported objects."""
        return not (self._touched or self._below)

    def is_empty(self) -> bool:
        """Whether no trace of any reported object is left."""
        return self.is_settled and self._graph.is_empty()

    def change(self, kind: str, changes: Mapping[str, Object | Unreadable | None]) -> frozenset[str]:
        """Record changes of objects of one kind, by `NAMESPACE/NAME`. Returns no hostname: settle() evaluates them."""
        for key, one in changes.items():
            facts = None if one is None else read_facts(kind, one, most=self._most)
            if self._graph.put(kind, key, facts):
                self._touched[kind, key] = None
                if kind == ISTIO_GATEWAY and (bound := self._graph.bound_to(key)):
                    self._below[key] = bound
        return frozenset()

    def report(self, kind: str, key: str) -> frozenset[str]:
        """Evaluate one object again at once. Returns the hostnames whose claims changed."""
        claims, rejections = contribution(kind, key, self._graph, classes=self._classes, most=self._most)
        return self._store.replace(kind, key, claims, rejections)

    def settle(self, limit: int) -> frozenset[str]:
        """Evaluate at most this many objects again. Returns the hostnames whose claims changed."""
        hostnames: set[str] = set()
        while limit > 0 and not self.is_settled:
            hostnames |= self.report(*self._next())
            limit -= 1
        return frozenset(hostnames)

    def _next(self) -> tuple[str, str]:
        """Objects that changed come before those bound to a changed Gateway, because a user is waiting for them."""
        if self._touched:
            return self._touched.popitem()[0]
        gateway = next(iter(self._below))
        bound = self._below[gateway]
        key = bound.pop()
        if not bound:
            del self._below[gateway]
        return VIRTUAL_SERVICE, key
