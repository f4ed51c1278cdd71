"""Rights: whose annotations count, which targets an annotation may choose, and which classes are served.

The law: pure. Whoever may write an object may annotate it and name any class, but may neither label a namespace, nor
create an IngressClass, nor write a status: these decide. What was not read yet gives no right. Static names need none.

Own addresses (external-dns' headless Services) need the right of a target and no --target-network: they give a tenant
nothing that a target `service:` of its own namespace does not give.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from ipaddress import ip_address, ip_network
from typing import Final

from dnsproxy.dns.addresses import is_address
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.targets import OWN, Targets
from dnsproxy.replace.balancers import Network
from sidecar.values.special_addresses import special_kind
from sidecar.values.text import quoted

LABEL: Final = "switchback.dev/annotations"
"""On a Namespace with the value `allowed`: the annotations of its objects count."""
ALLOWED: Final = "allowed"

_HOW: Final = f"needs the label {LABEL}: {ALLOWED}, or --annotations all"


class Annotations(Enum):
    """Where annotations that add a hostname or choose a target count (`--annotations`)."""

    OFF = "off"
    LABELLED = "labelled"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Rights:
    """What is allowed; a claim is denied without a right."""

    annotations: Annotations = Annotations.LABELLED
    networks: tuple[Network, ...] = ()
    """The addresses that an annotation may choose (`--target-network`)."""
    services: frozenset[str] = frozenset()
    """Services that an annotation may choose from any namespace, as `service:NAMESPACE/NAME` (`--target-service`)."""
    named_classes: frozenset[str] = frozenset()
    """Classes that the operator named in flags: they need no IngressClass."""
    namespaces: frozenset[str] | None = None
    """Those with the label; None: not read yet."""
    classes: frozenset[str] | None = None
    """The names of all IngressClasses; None: not read yet. Without any, the cluster does not use them."""
    nginx_classes: frozenset[str] | None = None
    """Those of ingress-nginx, the only controller that serves additional hostnames; None: not read yet."""

    def denial(self, claim: Claim, *, targets: Targets) -> str | None:
        """Why a claim lacks a right; None if it does not."""
        if claim.terms.addresses:
            return None
        return self._unserved(claim) or self._hostname_denial(claim) or self._target_denial(claim, targets)

    def _unserved(self, claim: Claim) -> str | None:
        """Why no controller serves the object; None if one may.

        A status is a controller's word. A controller may serve Ingresses without a class, and writes that nowhere.
        """
        if not claim.terms.accepted:
            return "no controller has accepted its Gateway"
        name = claim.terms.ingress_class
        if claim.is_additional:
            return self._unknown_to_nginx(name)
        if claim.origin.kind != "Ingress" or claim.terms.status or name is None or name in self.named_classes:
            return None
        if self.classes is None:
            return "the IngressClasses were not read yet"
        if not self.classes or name in self.classes:
            return None
        return f"nobody serves it: there is no IngressClass {quoted(name)}, and it has no load balancer status"

    def _unknown_to_nginx(self, name: str | None) -> str | None:
        """Why ingress-nginx may not serve an object; no flag and no status shows which program does."""
        if self.nginx_classes is None:
            return "the IngressClasses were not read yet"
        if name in self.nginx_classes:
            return None
        known = f"no IngressClass {quoted(name)} names it as the controller" if name else "the object has no class"
        return f"server-alias and from-to-www-redirect count for ingress-nginx alone, and {known}"

    def _hostname_denial(self, claim: Claim) -> str | None:
        if not claim.terms.annotated:
            return None
        return self._missing(claim.origin.namespace, "a hostname by annotation or alias")

    def _target_denial(self, claim: Claim, targets: Targets) -> str | None:
        target = claim.terms.target
        if target is None:
            return None
        owner = _owner(claim)
        missing = self._missing(owner, "a target of its own")
        if missing is not None:
            return missing
        if target.startswith("service:"):
            if target in targets.named() or target in self.services:
                return None
            if not target.startswith(f"service:{owner}/"):
                return f"its target {target} is not in namespace {owner} (switchback.dev/target, --target-service)"
            return _never(targets.addresses_for(claim))
        if target in ("status", OWN):
            return _never(filter(is_address, claim.terms.status))
        return self._outside(target.split(","), targets)

    def _outside(self, addresses: Iterable[str], targets: Targets) -> str | None:
        """Why one of these addresses is no target; None if all of them may be."""
        others = [text for text in addresses if text not in targets.named()]
        for text in others:
            if not any(ip_address(text) in network for network in self.networks):
                return f"its target {text} is outside of --target-network (switchback.dev/target)"
        return _never(others)

    def _missing(self, namespace: str, choice: str) -> str | None:
        """Why an annotation of an object in a namespace does not count; None if it does."""
        if self.annotations is Annotations.ALL:
            return None
        if self.annotations is Annotations.OFF:
            return f"{choice} does not count (--annotations off)"
        if self.namespaces is None:
            return f"{choice}: the namespaces were not read yet"
        return None if namespace in self.namespaces else f"{choice} does not count: namespace {namespace} {_HOW}"


def parse_network(text: str) -> Network:
    """An address or a network. Raises ValueError."""
    try:
        return ip_network(text.strip())
    except ValueError as error:
        raise ValueError(f"{quoted(text)} is not a network such as 192.0.2.0/24: {error}") from None


def _owner(claim: Claim) -> str:
    """The namespace of the object whose annotation chose the target."""
    return claim.terms.target_from or claim.origin.namespace


def _never(addresses: Iterable[str]) -> str | None:
    for text in addresses:
        kind = special_kind(ip_address(text))
        if kind is not None:
            return f"its target {text} is {kind} (switchback.dev/target)"
    return None
