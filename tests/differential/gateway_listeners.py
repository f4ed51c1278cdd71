"""The listeners of a set that accept a route, read from the manifests.

The law: pure; the specification in its plainest form, for what the sets of gateway_sets.py have.
https://gateway-api.sigs.k8s.io/reference/spec/
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.differential.differences import find_object
from tests.differential.sets import TEAMS, Manifest, ObjectSet
from tests.differential.universe import covers

_WEB: Final = frozenset({"HTTPRoute", "GRPCRoute"})
_FITTING: Final = {"HTTP": _WEB, "HTTPS": _WEB, "TLS": frozenset({"TLSRoute"})}


@dataclass(frozen=True)
class Attached:
    """A listener that accepts a route, and the Gateway or ListenerSet that has it."""

    parent: Manifest
    listener: Manifest

    @property
    def fitting_kinds(self) -> frozenset[str]:
        """The kinds of routes that the protocol can carry."""
        return _FITTING[self.listener["protocol"]]

    @property
    def allowed_kinds(self) -> frozenset[str]:
        """The kinds of routes that the listener names; none: all that fit."""
        kinds = self.listener.get("allowedRoutes", {}).get("kinds", ())
        return frozenset(one["kind"] for one in kinds)

    @property
    def certificates(self) -> list[Manifest]:
        """The references to its certificates."""
        return list(self.listener.get("tls", {}).get("certificateRefs", ()))


def attached_listeners(objects: ObjectSet, route: Manifest, hostname: str) -> Iterator[Attached]:
    """The listeners that accept a route and have all names of a hostname that is claimed for it."""
    for reference in route["spec"]["parentRefs"]:
        for one in listeners_of_parent(objects, route, reference):
            # Neither a route nor a listener has the name where both are for every name.
            is_named = "hostnames" in route["spec"] or "hostname" in one.listener
            if is_named and is_meant(reference, one.listener) and accepts(one, route) and has(one, hostname):
                yield one


def listeners_of_parent(objects: ObjectSet, route: Manifest, reference: Manifest) -> Iterator[Attached]:
    """All listeners of an object that a route names."""
    home = route["metadata"]["namespace"]
    parent = find_object(objects, reference["kind"], reference.get("namespace", home), reference["name"])
    if parent is not None:
        yield from (Attached(parent, listener) for listener in parent["spec"]["listeners"])


def is_meant(reference: Manifest, listener: Manifest) -> bool:
    """Whether a reference names a listener, or all of them."""
    section, port = reference.get("sectionName"), reference.get("port")
    return section in (None, listener["name"]) and port in (None, listener["port"])


def accepts(one: Attached, route: Manifest) -> bool:
    """Whether a listener takes the route's kind, and from its namespace."""
    kind = route["kind"]
    if kind not in one.fitting_kinds or (one.allowed_kinds and kind not in one.allowed_kinds):
        return False
    namespaces = one.listener.get("allowedRoutes", {}).get("namespaces", {"from": "Same"})
    return is_admitted(namespaces, one.parent["metadata"]["namespace"], route["metadata"]["namespace"])


def is_admitted(namespaces: Manifest, home: str, guest: str) -> bool:
    """Whether `allowedRoutes.namespaces` or `allowedListeners.namespaces` of a namespace admits another one."""
    match namespaces["from"]:
        case "All":
            return True
        case "Same":
            return home == guest
        case "Selector":
            return _selects(namespaces["selector"], next(team for team in TEAMS if guest.endswith(f"-{team}")))
    return False


def _selects(selector: dict[str, Any], team: str) -> bool:
    wanted = selector.get("matchLabels", {}).get("team", team)
    return wanted == team and all(_meets(one, team) for one in selector.get("matchExpressions", ()))


def _meets(requirement: Manifest, team: str) -> bool:
    match requirement["operator"]:
        case "In":
            return team in requirement["values"]
        case "NotIn":
            return team not in requirement["values"]
        case operator:
            return bool(operator == "Exists")


def has(one: Attached, hostname: str) -> bool:
    """Whether a listener serves all names of a hostname."""
    own = one.listener.get("hostname", hostname)
    return bool(own == hostname or covers(own, hostname))
