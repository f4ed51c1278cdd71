"""Why Traefik serves other hosts of the Gateway API than Switchback claims.

The law: pure; each sentence is in the guide. A route's host is explained if Traefik has a reason against each listener
that accepts the route. https://doc.traefik.io/traefik/reference/routing-configuration/kubernetes/gateway-api/
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import permutations
from typing import Final

from dnsproxy.hostnames.claims import Claim
from tests.differential.common_reasons import is_unrouted, rejected_label
from tests.differential.differences import Explanation, Omission, Reasons, find_object, of_kind
from tests.differential.gateway_listeners import (
    Attached,
    accepts,
    attached_listeners,
    has,
    is_meant,
    listeners_of_parent,
)
from tests.differential.gateway_sets import STRAY_PORT, Choices
from tests.differential.sets import CERTIFICATE, Manifest, ObjectSet
from tests.differential.universe import covers

UNROUTED: Final = "Switchback claims the exact hostname of a listener without a route; Traefik has no route for it."
_SETS: Final = "Traefik 3.6 reads no ListenerSets."
_PORT: Final = (
    "Traefik serves no listener on a port that is none of its entry points; Switchback knows no entry points."
)
_KINDS: Final = (
    "Traefik drops a listener that allows a kind of routes which does not fit its protocol; by the specification its "
    "other kinds are served."
)
_CERTIFICATE: Final = (
    "Switchback reads no Secrets and no ReferenceGrants: it claims the hosts of a listener whose certificate is "
    "missing or not granted."
)
_OVERWRITTEN: Final = (
    "Of the listeners of one Gateway on one port that accept a TLSRoute, Traefik 3.6 serves the names of the last one "
    "only."
)
_UNREPORTED: Final = (
    "Traefik 3.6 cannot write the status of a Gateway of which a listener allows two kinds of routes that do not fit "
    "its protocol; it serves the other listeners, but no controller has accepted the Gateway."
)
_CROSSED: Final = (
    "Traefik compares the section and port of each of a route's references with the listeners of all its Gateways, "
    "also of those that the reference does not name."
)
_FAULTS: Final = (_SETS, _PORT, _KINDS, _CERTIFICATE)


def _fault(objects: ObjectSet, one: Attached) -> str | None:
    """Why Traefik does not serve a listener; None if it does."""
    if one.parent["kind"] != "Gateway":
        return _SETS
    if one.listener["port"] == STRAY_PORT:
        return _PORT
    if not one.fitting_kinds >= one.allowed_kinds:
        return _KINDS
    return _CERTIFICATE if not all(_is_usable(objects, one, ref) for ref in one.certificates) else None


def _is_usable(objects: ObjectSet, one: Attached, reference: Manifest) -> bool:
    home = one.parent["metadata"]["namespace"]
    namespace = reference.get("namespace", home)
    return reference["name"] == CERTIFICATE and (namespace == home or _is_granted(objects, home, namespace))


def _is_granted(objects: ObjectSet, home: str, namespace: str) -> bool:
    grants = (one for one in of_kind(objects, "ReferenceGrant") if one["metadata"]["namespace"] == namespace)
    return any(source["namespace"] == home for one in grants for source in one["spec"]["from"])


def _faults_of(objects: ObjectSet, claim: Claim) -> Iterator[str | None]:
    route = find_object(objects, claim.origin.kind, claim.origin.namespace, claim.origin.name)
    assert route is not None, claim
    return (_fault(objects, one) for one in attached_listeners(objects, route, claim.hostname))


def _is_because_of(sentence: str, objects: ObjectSet, claim: Claim) -> bool:
    if not claim.terms.routed:
        return False
    faults = set(_faults_of(objects, claim))
    return sentence in faults and None not in faults


def _is_crossed(objects: ObjectSet, name: str) -> bool:
    """Whether a listener has the name that only another of a route's references would name, by section or port."""
    return any(
        is_meant(reference, one.listener) and accepts(one, route) and has(one, name)
        for route in (item for kind in Choices().routes for item in of_kind(objects, kind))
        if any(covers(host, name) for host in route["spec"].get("hostnames", (name,)))
        for reference, other in permutations(route["spec"]["parentRefs"], 2)
        for one in listeners_of_parent(objects, route, other)
    )


def _kept(objects: ObjectSet, route: Manifest) -> list[Attached]:
    """Of the listeners that Traefik serves a TLSRoute by, the last one of each Gateway and port."""
    kept: dict[tuple[str, str, int], Attached] = {}
    references = route["spec"]["parentRefs"]
    for reference in references:
        for other in references:
            for one in listeners_of_parent(objects, route, other):
                about = one.parent["metadata"]
                if _fault(objects, one) is None and is_meant(reference, one.listener) and _serves(one, route):
                    kept[about["namespace"], about["name"], one.listener["port"]] = one
    return list(kept.values())


def _serves(one: Attached, route: Manifest) -> bool:
    own = one.listener.get("hostname")
    hosts = route["spec"]["hostnames"]
    return accepts(one, route) and any(own is None or covers(own, host) or covers(host, own) for host in hosts)


def _is_overwritten(objects: ObjectSet, claim: Claim) -> bool:
    if claim.origin.kind != "TLSRoute":
        return False
    route = find_object(objects, "TLSRoute", claim.origin.namespace, claim.origin.name)
    assert route is not None, claim
    is_served = None in _faults_of(objects, claim)
    return is_served and not any(has(one, claim.hostname) for one in _kept(objects, route))


def _is_unreported(objects: ObjectSet, name: str) -> bool:
    """Whether a Gateway with such a listener has another one with the name."""
    for gateway in of_kind(objects, "Gateway"):
        listeners = [Attached(gateway, listener) for listener in gateway["spec"]["listeners"]]
        if any(len(one.allowed_kinds - one.fitting_kinds) > 1 for one in listeners):
            return any(has(one, name) for one in listeners)
    return False


REASONS: Final = Reasons(
    (
        Explanation(UNROUTED, is_unrouted),
        *(Explanation(sentence, partial(_is_because_of, sentence)) for sentence in _FAULTS),
        Explanation(_OVERWRITTEN, _is_overwritten),
    ),
    (
        rejected_label("Traefik"),
        Omission(_CROSSED, _is_crossed),
        Omission(_UNREPORTED, _is_unreported),
    ),
)
