"""Objects of described kinds, decoded as a follower does, and a source with the store that it feeds."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.sources.described.custom import PREFIX, parse_custom
from dnsproxy.sources.described.kind import DescribedKind
from dnsproxy.sources.described.source import DescribedSource
from dnsproxy.sources.described.table import KINDS
from dnsproxy.sources.ingress import IngressClass

CREATED: Final = "2026-01-02T03:04:05Z"
ADMITTED: Final = {"type": "Admitted", "status": "True"}


def kind_named(name: str) -> DescribedKind:
    return parse_custom(name) if name.startswith(PREFIX) else next(kind for kind in KINDS if kind.name == name)


def decode(kind: DescribedKind, spec: Any = None, status: Any = None, key: str = "web/shop", **metadata: Any) -> Any:
    namespace, _, name = key.partition("/")
    identity = {"namespace": namespace, "name": name, "creationTimestamp": CREATED, "uid": "x"}
    whole = {"metadata": identity | metadata, "spec": spec, "status": status}
    return msgspec.json.decode(msgspec.json.encode(whole), type=kind.watched.type)


def ingress_class(name: str, controller: str | None, *, default: bool = False) -> IngressClass:
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"} if default else {}
    spec = {"controller": controller} if controller else None
    return msgspec.convert({"metadata": {"name": name, "annotations": annotations}, "spec": spec}, IngressClass)


def http_proxy(fqdn: str, *, current: str = "valid", key: str = "web/shop", **metadata: Any) -> Any:
    status = {"currentStatus": current, "description": "a reason"}
    return decode(kind_named("HTTPProxy"), {"virtualhost": {"fqdn": fqdn}}, status, key, **metadata)


class Fed:
    """A source and the store that it feeds."""

    def __init__(self, *kinds: str, classes: tuple[str, ...] = (), most: int | None = None) -> None:
        self.store = ClaimStore()
        rows = [kind_named(kind) for kind in kinds]
        self.source = DescribedSource(self.store, rows, classes=frozenset(classes), most=most)

    def names(self) -> dict[str, str | None]:
        """The claimed hostnames with their classes."""
        return {claim.hostname: claim.terms.ingress_class for claim in self.store.claims()}

    def reasons(self) -> list[str]:
        return [rejection.reason for rejection in self.store.rejections()]
