"""Claims: one object's request that one hostname be answered. Sources make claims; ranking.py and verdict.py choose.

The law: a claim is a value about one object and one hostname; it knows neither the table nor other claims. There can be
100,000 claims, so the garbage collector does not track them (gc=False): it would delay answers by 0.1 s each time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dnsproxy.dns.names import Reach


class Origin(msgspec.Struct, frozen=True, gc=False):
    """Where a claim comes from, in the terms that users search by."""

    kind: str
    """`Ingress`, `hosts file`, `flag` ..."""
    name: str
    """An object's name; `FILE:LINE` or the flag for static names."""
    namespace: str = ""
    created: str = ""
    """creationTimestamp as RFC 3339 in UTC, so that it sorts as text; empty for an origin without an age."""

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}"


class Terms(msgspec.Struct, frozen=True, gc=False):
    """How a claim is answered and ranked: all but its hostname, its reach and its object."""

    addresses: tuple[str, ...] = ()
    """Fixed addresses (static names); empty if the target decides."""
    ingress_class: str | None = None
    """The class of the Ingress or Gateway, whose target applies; None: the default target. That of an Istio Gateway is
    its selector, `istio=ingressgateway`."""
    target: str | None = None
    """The target that the object itself chose (`switchback.dev/target`), which overrides that of its class:
    `ADDRESS[,ADDRESS]` in canonical form, `service:NAMESPACE/NAME` or `status`; `own` for addresses that the object
    itself has, as those of its pods."""
    status: tuple[str, ...] = ()
    """The addresses and hostnames in the load balancer status of the object, or of the Gateway that serves it; with the
    target `own` the object's own addresses."""
    routed: bool = True
    """False for a listener without a route: it accepts connections for the name, but an object that routes it wins; and
    for an additional hostname of an Ingress (Claim.is_additional)."""
    annotated: bool = False
    """Whether the hostname comes only from an annotation or label of the object (`switchback.dev/hostname`)."""
    since: str = ""
    """RFC 3339 in UTC. Since when the claim counts for the ranking, where that is before the object's creation: a route
    takes a name from a listener with exactly this hostname, whose object may be older. Empty: the object's own age."""
    target_from: str = ""
    """The namespace of the object that chose the target, such as the Gateway of a route; empty: the claim's own."""
    gateway: str = ""
    """The Gateway that serves the name: `NAMESPACE/NAME` in the Gateway API, which route Services can be for, or
    `IstioGateway NAMESPACE/NAME`. Empty for an object of an API without Gateways."""
    accepted: bool = True
    """False for a Gateway, and what attaches to it, that no controller has accepted."""
    declared: tuple[str, ...] = ()
    """The addresses and hostnames to which the public record points, as the object's writer says (external-dns):
    they explain a record that points elsewhere, and prove nothing."""


PLAIN: Final = Terms()
"""All fields as they are by default."""
_FEW: Final = 16
"""Addresses and hostnames of terms that are shared, so that the shared ones never take more than some megabytes."""
_SHORT: Final = 512
"""Octets of their target and class; each address and hostname is short, as its parser has it."""


def share_terms(terms: Terms) -> Terms:
    """One value for equal terms: nearly all objects of a class have equal ones, and 100,000 would take 10 MB."""
    points = len(terms.addresses) + len(terms.status) + len(terms.declared)
    texts = len(terms.target or "") + len(terms.ingress_class or "")
    return terms if points > _FEW or texts > _SHORT else _share(terms)


@lru_cache(maxsize=1024)
def _share(terms: Terms) -> Terms:
    return terms


class Claim(msgspec.Struct, frozen=True, gc=False):
    """One object's request that one hostname be answered."""

    hostname: str
    """In the normal form of names.parse_hostname, `*.` in front of a wildcard."""
    reach: Reach
    origin: Origin
    terms: Terms = PLAIN
    """Of share_terms."""

    @property
    def is_additional(self) -> bool:
        """Whether the hostname is of an annotation of ingress-nginx, which no other controller serves."""
        return not self.terms.routed and self.origin.kind == "Ingress"


def with_terms(claim: Claim, **changes: Any) -> Claim:
    """The claim with other terms; `changes` are fields of Terms."""
    return Claim(claim.hostname, claim.reach, claim.origin, share_terms(replace(claim.terms, **changes)))


class Rejection(msgspec.Struct, frozen=True, gc=False):
    """A hostname or line that cannot be served, with the reason."""

    origin: Origin
    reason: str
    deliberate: bool = False
    """The user asked for it (a filter, a label): explained on request, but not a warning."""
