"""Why Envoy Gateway serves other hostnames of the Gateway API than Switchback claims.

The law: pure; each sentence is in the guide. A route's hostname is explained if Envoy Gateway has a reason against each
listener that accepts the route. https://gateway.envoyproxy.io/docs/api/gateway_api/
"""

from __future__ import annotations

from functools import partial
from typing import Final

from dnsproxy.hostnames.claims import Claim
from tests.differential.common_reasons import is_because_of, is_unrouted, rejected_label
from tests.differential.differences import Explanation, Reasons
from tests.differential.gateway_hosts import (
    Fault,
    are_in_conflict,
    has_certificate,
    listeners_beside,
    listeners_of_route,
    object_of,
)
from tests.differential.gateway_listeners import Attached
from tests.differential.sets import ObjectSet
from tests.differential.universe import covers


def _lacks_certificate(objects: ObjectSet, claim: Claim, one: Attached) -> bool:  # noqa: ARG001
    return not has_certificate(objects, one)


def _allows_unfitting_kind(objects: ObjectSet, claim: Claim, one: Attached) -> bool:  # noqa: ARG001
    return not one.allowed_kinds <= one.fitting_kinds


def _is_narrower_beside(objects: ObjectSet, claim: Claim, one: Attached) -> bool:
    """Another listener of the port, which does not take the route, has the hostname or a narrower one."""
    mine = listeners_of_route(objects, object_of(objects, claim))
    own = one.listener.get("hostname", "")
    beside = (other for other in listeners_beside(one) if other.listener["port"] == one.listener["port"])
    others = (other.listener.get("hostname", "") for other in beside if other not in mine)
    name = claim.hostname
    return any(covers(name, other) or (covers(other, name) and len(other) > len(own)) for other in others)


def _is_in_conflict(objects: ObjectSet, claim: Claim, one: Attached) -> bool:  # noqa: ARG001
    """Another listener has its port for another protocol, or for the same hostname."""
    others = (other.listener for other in listeners_beside(one) if other != one)
    return any(are_in_conflict(other, one.listener) for other in others)


_FAULTS: Final[dict[str, Fault]] = {
    "Switchback reads no Secrets and no ReferenceGrants: it claims the hosts of a listener whose certificate is "
    "missing or not granted.": _lacks_certificate,
    "Envoy Gateway drops a listener that allows a kind of routes which does not fit its protocol; by the specification "
    "its other kinds are served.": _allows_unfitting_kind,
    "Of a Gateway's listeners with one port and one hostname, or with one port for HTTP and for TLS, Envoy Gateway "
    "serves none.": _is_in_conflict,
    "A route counts at each listener that accepts it; Envoy Gateway leaves a hostname to the listener of the port with "
    "the most specific hostname, even if that one does not accept the route.": _is_narrower_beside,
}


REASONS: Final = Reasons(
    explanations=(
        Explanation(
            "Switchback claims the exact hostname of a listener without a route; Envoy Gateway does not serve it.",
            is_unrouted,
        ),
        *(
            Explanation(sentence, partial(is_because_of, fault, _FAULTS.values()))
            for sentence, fault in _FAULTS.items()
        ),
    ),
    omissions=(rejected_label("Envoy Gateway"),),
)
