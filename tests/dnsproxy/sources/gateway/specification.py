"""The specification as a slow reference implementation, name by name: the source is compared with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from dnsproxy.sources.annotations import AnnotationFields
from dnsproxy.sources.gateway import structs
from dnsproxy.sources.gateway.kinds import GATEWAY, HTTP_ROUTE, ROUTES, TLS_ROUTE
from sidecar.kubernetes.objects import Unreadable
from tests.dnsproxy.sources.gateway.histories import Key


def name_stands_in(hostname: str | None, name: str) -> bool:
    if hostname is None:
        return True
    return name.endswith(hostname[1:]) if hostname.startswith("*") else name == hostname


def is_open(allowed: Any, home: str, guest: str, labels: Mapping[str, Any], *, default: str) -> bool:
    namespaces = allowed.namespaces if allowed is not None else None
    match (namespaces.from_ if namespaces is not None else None) or default:
        case "All":
            return True
        case "Same":
            return home == guest
        case "Selector":
            return (labels.get(guest) or {}).get("team") == "web"
    return False


def doors(objects: Mapping[Key, Any], labels: Mapping[str, Any], ref: Any) -> Sequence[Any]:
    parent: Any = objects.get((ref.kind or "", f"{ref.namespace}/{ref.name}"))
    if not is_used(parent):
        return ()
    if isinstance(parent, structs.Gateway):
        return distinct(parent.spec.listeners or ())
    above = parent.spec.parent_ref
    gate: Any = objects.get((GATEWAY, f"{above.namespace}/{above.name}"))
    home, guest = above.namespace, parent.metadata.namespace
    if not is_used(gate) or not is_open(gate.spec.allowed_listeners, home, guest, labels, default="None"):
        return ()
    return distinct(parent.spec.listeners or ())


def distinct(listeners: Sequence[Any]) -> list[Any]:
    """The listeners without another one of equal protocol, port and hostname."""
    about = [(one.protocol, one.port, one.hostname) for one in listeners]
    return [one for one, what in zip(listeners, about, strict=True) if about.count(what) == 1]


def is_used(one: Any) -> bool:
    return (
        one is not None
        and not isinstance(one, Unreadable)
        and (one.metadata.annotations or AnnotationFields()).ignore is None
    )


def redirects(one: Any) -> bool:
    rules = json.loads(bytes(one.spec.rules))
    return bool(rules) and all("RequestRedirect" in json.dumps(rule) for rule in rules)


def is_wild(hostname: str | None) -> bool:
    return hostname is not None and hostname.startswith("*")


def routes_of(objects: Mapping[Key, Any]) -> Iterator[tuple[str, Any]]:
    for (kind, _), one in objects.items():
        if kind in ROUTES and is_used(one):
            yield kind, one


def served_names(objects: Mapping[Key, Any], names: Iterable[str]) -> set[str]:
    labels = {place: one.metadata.labels for (kind, place), one in objects.items() if not kind and one is not None}
    found = set()
    for (kind, one), name in product(routes_of(objects), names):
        own = one.spec.hostnames or ()
        marked = (one.metadata.annotations or AnnotationFields()).hostname
        wishes = [hostname for hostname in (*own, *([marked] if marked else [])) if name_stands_in(hostname, name)]
        for ref in one.spec.parent_refs or ():
            for door in doors(objects, labels, ref):
                fits = door.protocol == ("TLS" if kind == TLS_ROUTE else "HTTPS")
                meant = ref.section_name in (None, "", door.name)
                welcome = is_open(door.allowed_routes, ref.namespace, one.metadata.namespace, labels, default="Same")
                taken = not own and door.hostname is not None
                if kind == HTTP_ROUTE and redirects(one) and is_wild(door.hostname):
                    # Of what both have, only what the route names itself.
                    named = any(name_stands_in(door.hostname, wish.removeprefix("*")) for wish in wishes)
                else:
                    named = bool(wishes) or taken
                if fits and meant and welcome and named and name_stands_in(door.hostname, name):
                    found.add(name)
    return found
