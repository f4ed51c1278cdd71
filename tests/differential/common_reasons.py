"""Reasons that hold for several controllers: how Switchback differs from all of them.

The law: pure; the guide has the sentences.
"""

from __future__ import annotations

from collections.abc import Collection

from dnsproxy.hostnames.claims import Claim
from tests.differential.differences import Omission
from tests.differential.gateway_hosts import Fault, listeners_of_claim
from tests.differential.gateway_listeners import Attached
from tests.differential.sets import ObjectSet
from tests.differential.universe import STRANGE_TO_US


def rejected_label(controller: str) -> Omission:
    """A served name that Switchback rejects (UTS 46)."""
    sentence = f"Switchback rejects an A-label that is not that of a name; {controller} compares octets."
    return Omission(sentence, _has_bad_label)


def is_unrouted(objects: ObjectSet, claim: Claim) -> bool:  # noqa: ARG001  # the form of all explanations
    """Whether a claim is that of a listener without a route."""
    return not claim.terms.routed


def is_because_of(fault: Fault, faults: Collection[Fault], objects: ObjectSet, claim: Claim) -> bool:
    """Whether none of a claim's listeners is without a fault, and one has this."""
    if not claim.terms.routed:
        return False
    found = [one for one in listeners_of_claim(objects, claim) if _is_of_class(one, claim)]
    is_served = not all(any(other(objects, claim, one) for other in faults) for one in found)
    return not is_served and any(fault(objects, claim, one) for one in found)


def _is_of_class(one: Attached, claim: Claim) -> bool:
    """A route may be accepted by a Gateway of another class, too, which the controller does not serve."""
    return bool(one.parent["spec"].get("gatewayClassName", claim.terms.ingress_class) == claim.terms.ingress_class)


def _has_bad_label(objects: ObjectSet, name: str) -> bool:
    return name.removesuffix(f".{objects.zone}") in STRANGE_TO_US
