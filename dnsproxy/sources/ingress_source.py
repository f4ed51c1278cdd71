"""The Ingress source: from changes of Ingresses and IngressClasses to changes of claims.

The law: pure; the claims depend only on the objects, never on the order of their changes. An Ingress without a class
gets the default class: its claims are kept, so that they can be replaced when the default class changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dnsproxy.hostnames.claim_sink import ClaimSink
from dnsproxy.hostnames.claims import Claim, Rejection
from dnsproxy.sources.classless import Classless
from dnsproxy.sources.ingress import Ingress, IngressClass, claims_of, default_class, nginx_classes, note_classes
from dnsproxy.sources.settings import IngressOptions
from dnsproxy.sources.unreadable import rejection_of_unreadable
from sidecar.kubernetes.objects import Unreadable

SOURCE: Final = "Ingress"

_Contribution = tuple[Sequence[Claim], Sequence[Rejection]]


class IngressSource:
    """Feeds one ClaimSink with the claims of Ingresses."""

    def __init__(self, store: ClaimSink, *, options: IngressOptions, most: int | None = None) -> None:
        """`most`: the hosts of one Ingress that are read."""
        self._store = store
        self._options = options
        self._most = most
        self._classes: dict[str, IngressClass] = {}
        self._class_names: dict[str, None] = {}
        self._default: str | None = None
        self._classless: dict[str, Classless] = {}

    @property
    def class_names(self) -> frozenset[str]:
        """The names of all IngressClasses, unreadable ones included."""
        return frozenset(self._class_names)

    @property
    def nginx_classes(self) -> frozenset[str]:
        """The names of those of ingress-nginx."""
        return nginx_classes(self._classes.values())

    def change_ingresses(self, changes: Mapping[str, Ingress | Unreadable | None]) -> frozenset[str]:
        """Apply changes of Ingresses, by `NAMESPACE/NAME`. Returns the hostnames whose claims changed."""
        touched: set[str] = set()
        for key, ingress in changes.items():
            self._classless.pop(key, None)
            found = self._contribution(ingress)
            if isinstance(ingress, Ingress) and ingress.class_name is None:
                kept = self._classless[key] = Classless(tuple(found[0]), tuple(found[1]))
                found = self._with_default_class(kept)
            touched |= self._store.replace(SOURCE, key, *found)
            if self._store.is_left_out(SOURCE, key):
                # It will be reported once more; until then, its claims must not take up memory here either.
                self._classless.pop(key, None)
        return frozenset(touched)

    def change_classes(self, changes: Mapping[str, IngressClass | Unreadable | None]) -> frozenset[str]:
        """Apply changes of IngressClasses, by name. Returns the hostnames whose claims changed."""
        note_classes(self._classes, changes)
        for name, one in changes.items():
            self._class_names.pop(name, None)
            if one is not None:
                self._class_names[name] = None
        chosen = default_class(self._classes.values())
        if chosen == self._default:
            return frozenset()
        self._default = chosen
        touched: set[str] = set()
        for key, found in self._classless.items():
            touched |= self._store.replace(SOURCE, key, *self._with_default_class(found))
        return frozenset(touched)

    def _contribution(self, ingress: Ingress | Unreadable | None) -> _Contribution:
        if ingress is None:
            return [], []
        if isinstance(ingress, Unreadable):
            return [], [rejection_of_unreadable(SOURCE, ingress)]
        wanted = self._options.classes
        if wanted and ingress.class_name is not None and ingress.class_name not in wanted:
            return [], []
        options = self._options
        return claims_of(ingress, tls_only=options.tls_only, tls_hosts=options.tls_hosts, most=self._most)

    def _with_default_class(self, found: Classless) -> _Contribution:
        wanted = self._options.classes
        if wanted and self._default not in wanted:
            return [], []
        return found.with_class(self._default)
