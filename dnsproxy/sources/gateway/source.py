"""The Gateway API source: from changes of its objects to changes of claims.

The law: pure; once settled, what it gives depends on the objects alone and not on the order in which their changes
came. A change costs what it touches; and because one Gateway may touch all routes there are, a change is taken in at
once and settled in slices, so that others run in between.
"""

from __future__ import annotations

from collections.abc import Mapping

from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.sources.gateway.contribution import contribution
from dnsproxy.sources.gateway.facts import Object, read_facts
from dnsproxy.sources.gateway.kinds import LISTENER_SETS, Ref
from dnsproxy.sources.gateway.object_graph import State
from dnsproxy.sources.gateway.structs import Namespace
from dnsproxy.sources.settings import GatewayOptions
from sidecar.kubernetes.objects import Unreadable


class GatewaySource:
    """Feeds one ClaimStore with the claims of Gateways, ListenerSets and routes."""

    def __init__(self, store: ClaimStore, *, options: GatewayOptions) -> None:
        self._store = store
        self._classes = options.classes
        self._state = State()
        self._touched: dict[Ref, None] = {}
        self._below: dict[Ref | str, list[Ref]] = {}

    @property
    def is_settled(self) -> bool:
        """Whether the claims are those of the objects that were told."""
        return not (self._touched or self._below)

    def is_empty(self) -> bool:
        """Whether nothing is left of any object that was told."""
        return self.is_settled and self._state.is_empty()

    def change(self, kind: str, changes: Mapping[str, Object | Unreadable | None]) -> None:
        """Take changes of objects of one kind (kinds.SOURCES) in, by `NAMESPACE/NAME`."""
        for key, one in changes.items():
            namespace, _, name = key.rpartition("/")
            ref = Ref(kind, namespace, name)
            if self._state.put(ref, None if one is None else read_facts(kind, one)):
                self._touched[ref] = None
                self._spread(ref, self._state.children(ref))

    def change_namespaces(self, changes: Mapping[str, Namespace | Unreadable | None]) -> None:
        """Take changes of Namespaces in, by name."""
        for name, one in changes.items():
            labels = (one.metadata.labels or {}) if isinstance(one, Namespace) else None
            if self._state.put_labels(name, labels):
                self._spread(name, self._state.residents(name))

    def settle(self, limit: int) -> frozenset[str]:
        """Look at so many objects again, at most. The hostnames whose claims changed."""
        hostnames: set[str] = set()
        while limit > 0 and not self.is_settled:
            ref = self._next()
            claims, rejections = contribution(ref, self._state, classes=self._classes)
            hostnames |= self._store.replace(ref.kind, f"{ref.namespace}/{ref.name}", claims, rejections)
            limit -= 1
        return frozenset(hostnames)

    def _next(self) -> Ref:
        """What was itself changed comes first: somebody waits for it, while a change of a Gateway goes its way."""
        if self._touched:
            return self._touched.popitem()[0]
        above = next(iter(self._below))
        refs = self._below[above]
        ref = refs.pop()
        if not refs:
            del self._below[above]
        if ref.kind in LISTENER_SETS:
            self._spread(ref, self._state.children(ref))
        return ref

    def _spread(self, above: Ref | str, refs: list[Ref]) -> None:
        """All that is below an object or in a namespace: a list that is worked off, however its members change."""
        if refs:
            self._below[above] = refs
