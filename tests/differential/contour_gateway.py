"""Why Contour serves other hostnames of the Gateway API than Switchback claims.

The law: pure; each sentence is in the guide. A route's hostname is explained if Contour has a reason against each
listener that accepts the route. https://projectcontour.io/docs/1.33/config/gateway-api/
"""

from __future__ import annotations

from functools import partial
from typing import Final

from dnsproxy.dns.names import is_wildcard
from dnsproxy.hostnames.claims import Claim
from tests.differential.common_reasons import is_because_of, is_unrouted, rejected_label
from tests.differential.differences import Explanation, Omission, Reasons, of_kind
from tests.differential.gateway_hosts import (
    Fault,
    are_in_conflict,
    has_certificate,
    hosts_at,
    listeners_beside,
    listeners_of_route,
    object_of,
)
from tests.differential.gateway_listeners import Attached
from tests.differential.sets import WEB, ObjectSet
from tests.differential.universe import covers


def _is_of_listener_set(objects: ObjectSet, claim: Claim, one: Attached) -> bool:  # noqa: ARG001
    return bool(one.parent["kind"] == "ListenerSet")


def _lacks_certificate(objects: ObjectSet, claim: Claim, one: Attached) -> bool:  # noqa: ARG001
    return not has_certificate(objects, one)


def _comes_second(objects: ObjectSet, claim: Claim, one: Attached) -> bool:  # noqa: ARG001
    """An earlier listener has its port for another protocol, or for the same hostname."""
    beside = listeners_beside(one)
    earlier = (other.listener for other in beside[: beside.index(one)])
    return any(are_in_conflict(other, one.listener) for other in earlier)


def _is_narrower_elsewhere(objects: ObjectSet, claim: Claim, one: Attached) -> bool:
    """Another listener of the Gateway, which does not take the route, has the hostname or a narrower wildcard."""
    mine = listeners_of_route(objects, object_of(objects, claim))
    own = one.listener.get("hostname", "")
    others = (other.listener.get("hostname", "") for other in listeners_beside(one) if other not in mine)
    name = claim.hostname
    return any(other == name or (covers(other, name) and len(other) > len(own)) for other in others)


def _is_wider_at_route(objects: ObjectSet, claim: Claim, one: Attached) -> bool:
    """All names that the route has there come from a wildcard of the listener within one of the route."""
    route = object_of(objects, claim)
    hosts = {host for host in hosts_at(one, route) if covers(host, claim.hostname)}
    own = route["spec"].get("hostnames", ())
    return bool(own) and all(is_wildcard(host) and host not in own for host in hosts)


def _conflicts(objects: ObjectSet, claim: Claim, one: Attached) -> bool:
    """Another route has a hostname of this one at the port, or this one has it at another listener of the port."""
    route = object_of(objects, claim)
    mine = hosts_at(one, route)
    return any(
        (other, door) != (route, one) and _are_at_one_port(door, one) and mine & hosts_at(door, other)
        for kind in ("HTTPRoute", "GRPCRoute")
        for other in of_kind(objects, kind)
        for door in listeners_of_route(objects, other)
    )


def _are_at_one_port(first: Attached, second: Attached) -> bool:
    return first.parent == second.parent and bool(first.listener["port"] == second.listener["port"])


def _lacks_services(objects: ObjectSet, claim: Claim, one: Attached) -> bool:  # noqa: ARG001
    route = object_of(objects, claim)
    backends = [backend["name"] for rule in route["spec"]["rules"] for backend in rule.get("backendRefs", ())]
    return route["kind"] == "TLSRoute" and WEB not in backends


_FAULTS: Final[dict[str, Fault]] = {
    "Contour 1.33 reads no ListenerSets.": _is_of_listener_set,
    "Switchback reads no Secrets and no ReferenceGrants: it claims the hosts of a listener whose certificate is "
    "missing or not granted.": _lacks_certificate,
    "Of a Gateway's listeners with one port and one hostname, or with one port for HTTP and for TLS, Contour serves "
    "the first.": _comes_second,
    "A route counts at each listener that accepts it; Contour leaves a hostname to the listener of the Gateway with "
    "the most specific hostname, even if that one does not accept the route.": _is_narrower_elsewhere,
    "Where the wildcard of a route is wider than that of the listener, the listener's is claimed; Contour 1.33 does "
    "not serve it.": _is_wider_at_route,
    "Contour drops a rule of a route, for all hostnames, if an older route has the same match at one of them, or if "
    "two listeners of one port accept the route for one of them.": _conflicts,
    "Switchback reads no backends: it claims the hosts of a TLSRoute whose Services are missing.": _lacks_services,
}


def _is_named_by_tls_listener(objects: ObjectSet, name: str) -> bool:
    """A listener for TLS allows other routes, and has the name."""
    return any(
        listener["protocol"] == "TLS"
        and covers(listener.get("hostname", name), name)
        and any(one["kind"] != "TLSRoute" for one in listener.get("allowedRoutes", {}).get("kinds", ()))
        for gateway in of_kind(objects, "Gateway")
        for listener in gateway["spec"]["listeners"]
    )


def _is_of_another_namespace(objects: ObjectSet, name: str) -> bool:
    """A route of another namespace names a Gateway without its namespace, and has the name."""
    homes = {one["metadata"]["name"]: one["metadata"]["namespace"] for one in of_kind(objects, "Gateway")}
    return any(
        "namespace" not in reference and homes.get(reference["name"], home) != home
        for kind in ("HTTPRoute", "GRPCRoute", "TLSRoute")
        for route in of_kind(objects, kind)
        for home in (route["metadata"]["namespace"],)
        if any(covers(host, name) for host in route["spec"].get("hostnames", (name,)))
        for reference in route["spec"]["parentRefs"]
    )


REASONS: Final = Reasons(
    explanations=(
        Explanation(
            "Switchback claims the exact hostname of a listener without a route; Contour does not serve it.",
            is_unrouted,
        ),
        *(
            Explanation(sentence, partial(is_because_of, fault, _FAULTS.values()))
            for sentence, fault in _FAULTS.items()
        ),
    ),
    omissions=(
        rejected_label("Contour"),
        Omission(
            "A listener for TLS accepts only TLSRoutes; at Contour also HTTPRoutes and GRPCRoutes, if it allows their "
            "kind.",
            _is_named_by_tls_listener,
        ),
        Omission(
            "A reference to a Gateway without a namespace means the route's own; for Contour, it means a Gateway of "
            "that name in any namespace.",
            _is_of_another_namespace,
        ),
    ),
)
