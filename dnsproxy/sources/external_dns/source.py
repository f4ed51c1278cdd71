"""The source of external-dns' annotations: from changes of objects to changes of claims.

The law: pure; once settled, the claims depend only on the objects, never on the order of their changes. A change is
recorded at once and evaluated in slices: one slice of pods touches one Service, the default class all Ingresses without
a class.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final

from dnsproxy.hostnames.claim_sink import ClaimSink
from dnsproxy.sources.external_dns.contribution import contribution
from dnsproxy.sources.external_dns.facts import Facts, IngressFacts, ServiceFacts, read
from dnsproxy.sources.external_dns.headless import HeadlessEndpoints
from dnsproxy.sources.external_dns.kinds import CLASSES, GATEWAY, INGRESS, SERVICE, SLICE
from dnsproxy.sources.external_dns.structs import EndpointSlice, Gateway, Ingress
from dnsproxy.sources.ingress import IngressClass, default_class, note_classes
from dnsproxy.sources.unreadable import unreadable_facts
from sidecar.kubernetes.objects import Unreadable

_SHOWN: Final = {SERVICE: "Service", INGRESS: "Ingress", GATEWAY: "Gateway"}

_Place = tuple[str, str]
"""A kind, and `NAMESPACE/NAME`."""


class ExternalDnsSource:
    """Feeds one ClaimSink with the claims of annotated Services, Ingresses and Gateways."""

    def __init__(self, store: ClaimSink, *, classes: Set[str] = frozenset(), most: int | None = None) -> None:
        """`classes`: only Ingresses and Gateways of these; empty: all. `most`: the hostnames of one object read."""
        self._store = store
        self._wanted_classes = classes
        self._most = most
        self._facts: dict[_Place, Facts] = {}
        self._endpoints = HeadlessEndpoints()
        self._classes: dict[str, IngressClass] = {}
        self._default: str | None = None
        self._classless: dict[_Place, None] = {}
        self._touched: dict[_Place, None] = {}

    @property
    def is_settled(self) -> bool:
        """Whether the claims match the reported objects."""
        return not self._touched

    def is_empty(self) -> bool:
        """Whether no trace of any reported object is left."""
        kept = self._facts or self._classes or self._classless or self._touched
        return not kept and self._endpoints.is_empty()

    def change(self, kind: str, changes: Mapping[str, Any]) -> frozenset[str]:
        """Record changes of objects of one kind of kinds.WATCHED and kinds.BESIDE, by key."""
        if kind == CLASSES.kind:
            self._change_classes(changes)
        elif kind == SLICE:
            self._change_slices(changes)
        else:
            return self._change_objects(kind, changes)
        return frozenset()

    def report(self, kind: str, key: str) -> frozenset[str]:
        """Evaluate one object again at once. Returns the hostnames whose claims changed."""
        place = kind, key
        self._touched.pop(place, None)
        facts = self._facts.get(place)
        if facts is None or (place in self._classless and self._filters_out(self._default)):
            return self._store.replace(kind, key, [])
        found = contribution(
            facts, endpoints=self._endpoints_of(facts, key), default_class=self._default_for(facts), most=self._most
        )
        return self._store.replace(kind, key, *found)

    def settle(self, limit: int) -> frozenset[str]:
        """Evaluate at most this many objects. Returns the hostnames whose claims changed."""
        hostnames: set[str] = set()
        while self._touched and limit > 0:
            # The last one first: a user waits for it, and a change of the default class touches many.
            place, _ = self._touched.popitem()
            hostnames |= self.report(*place)
            limit -= 1
        return frozenset(hostnames)

    def _change_objects(self, kind: str, changes: Mapping[str, Any]) -> frozenset[str]:
        gone: set[str] = set()
        for key, one in changes.items():
            place = kind, key
            facts = self._read(kind, one)
            self._classless.pop(place, None)
            if facts is None:
                # Most objects: nothing is kept, and nothing waits to be evaluated.
                self._facts.pop(place, None)
                gone |= self.report(kind, key)
                continue
            if isinstance(facts, IngressFacts) and facts.class_name is None:
                self._classless[place] = None
            self._facts[place] = facts
            self._touch(place)
        return frozenset(gone)

    def _read(self, kind: str, one: Any) -> Facts | None:
        match one:
            case None:
                return None
            case Unreadable():
                return unreadable_facts(_SHOWN[kind], one)
            case Ingress(class_name=str() as name) if self._filters_out(name):
                return None
            case Gateway() if self._filters_out(one.spec.gateway_class_name):
                return None
        return read(one, most=self._most)

    def _filters_out(self, class_name: str | None) -> bool:
        return bool(self._wanted_classes) and class_name not in self._wanted_classes

    def _change_slices(self, changes: Mapping[str, EndpointSlice | Unreadable | None]) -> None:
        for key, part in changes.items():
            for service in self._endpoints.put(key, part if isinstance(part, EndpointSlice) else None):
                facts = self._facts.get((SERVICE, service))
                if isinstance(facts, ServiceFacts) and facts.headless:
                    self._touch((SERVICE, service))

    def _change_classes(self, changes: Mapping[str, IngressClass | Unreadable | None]) -> None:
        note_classes(self._classes, changes)
        chosen = default_class(self._classes.values())
        if chosen != self._default:
            self._default = chosen
            # Before the others, which come first.
            self._touched = dict.fromkeys(self._classless) | self._touched

    def _touch(self, place: _Place) -> None:
        self._touched.pop(place, None)
        self._touched[place] = None

    def _endpoints_of(self, facts: Facts, key: str) -> Any:
        if isinstance(facts, ServiceFacts) and facts.headless:
            return self._endpoints.of(key, unready=facts.publishes_unready)
        return ()

    def _default_for(self, facts: Facts) -> str | None:
        return self._default if isinstance(facts, IngressFacts) else None
