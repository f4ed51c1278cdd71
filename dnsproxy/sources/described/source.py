"""The source of described kinds: from changes of their objects to changes of claims.

The law: pure; the claims depend only on the objects, never on the order of their changes. Objects are not kept, because
there may be 100,000: only the claims of those that name no class are, so that they can be replaced when the class of
their controller changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from dnsproxy.hostnames.claim_sink import ClaimSink
from dnsproxy.hostnames.claims import Claim, Rejection
from dnsproxy.sources.classless import Classless
from dnsproxy.sources.described.classes import class_of_controller
from dnsproxy.sources.described.contribution import contribution
from dnsproxy.sources.described.kind import DescribedKind
from dnsproxy.sources.ingress import IngressClass, note_classes
from dnsproxy.sources.unreadable import rejection_of_unreadable
from sidecar.kubernetes.objects import Unreadable


class DescribedSource:
    """Feeds one ClaimSink with the claims of the kinds of one `--source`; an ObjectSource."""

    def __init__(
        self,
        store: ClaimSink,
        kinds: Sequence[DescribedKind],
        *,
        classes: Set[str] = frozenset(),
        most: int | None = None,
    ) -> None:
        """`classes`: only objects of these; empty: all. `most`: the hosts of one object that are read."""
        self._store = store
        self._kinds = {kind.name: kind for kind in kinds}
        self._wanted = classes
        self._most = most
        self._ingress_classes: dict[str, IngressClass] = {}
        self._defaults: dict[str, str | None] = {}
        self._classless: dict[str, dict[str, Classless]] = {kind.name: {} for kind in kinds}
        """By kind, then by key."""

    @property
    def is_settled(self) -> bool:
        """Always: no object depends on another."""
        return True

    def settle(self, limit: int) -> frozenset[str]:  # noqa: ARG002  # of ObjectSource
        """Nothing is left to evaluate."""
        return frozenset()

    def change(self, kind: str, changes: Mapping[str, Any]) -> frozenset[str]:
        """Take in changes of objects of one kind, by `NAMESPACE/NAME`; any other kind is IngressClasses, by name."""
        if kind not in self._kinds:
            return self._change_classes(changes)
        touched: set[str] = set()
        for key, one in changes.items():
            self._classless[kind].pop(key, None)
            touched |= self._store.replace(kind, key, *self._contribution(self._kinds[kind], key, one))
            if self._store.is_left_out(kind, key):
                self._classless[kind].pop(key, None)
        return frozenset(touched)

    def _contribution(self, kind: DescribedKind, key: str, one: Any) -> tuple[Sequence[Claim], Sequence[Rejection]]:
        if one is None:
            return [], []
        if isinstance(one, Unreadable):
            return [], [rejection_of_unreadable(kind.name, one)]
        named = kind.classes(one)
        if not named and kind.controller:
            claims, rejections = contribution(kind, one, class_name=None, most=self._most)
            found = self._classless[kind.name][key] = Classless(tuple(claims), tuple(rejections))
            return self._with_default(kind, found)
        chosen = (
            next((name for name in named if name in self._wanted), None) if self._wanted else next(iter(named), None)
        )
        if self._wanted and chosen is None:
            return [], []
        return contribution(kind, one, class_name=chosen, most=self._most)

    def _change_classes(self, changes: Mapping[str, Any]) -> frozenset[str]:
        note_classes(self._ingress_classes, changes)
        touched: set[str] = set()
        for controller in {kind.controller for kind in self._kinds.values() if kind.controller}:
            chosen = class_of_controller(self._ingress_classes.values(), controller)
            if chosen != self._defaults.get(controller):
                self._defaults[controller] = chosen
                touched |= self._replace_classless(controller)
        return frozenset(touched)

    def _replace_classless(self, controller: str) -> set[str]:
        touched: set[str] = set()
        for name, kind in self._kinds.items():
            for key, found in self._classless[name].items() if kind.controller == controller else ():
                touched |= self._store.replace(name, key, *self._with_default(kind, found))
        return touched

    def _with_default(self, kind: DescribedKind, found: Classless) -> tuple[Sequence[Claim], Sequence[Rejection]]:
        chosen = self._defaults.get(kind.controller)
        if self._wanted and chosen not in self._wanted:
            return [], []
        return found.with_class(chosen)
