"""Targets: the addresses that the cluster's names are answered with, such as those of the relay's Service.

The law: pure. An object's own target overrides that of its class, and that overrides the default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dnsproxy.dns.addresses import is_address, parse_addresses
from dnsproxy.hostnames.claims import Claim
from sidecar.kubernetes.names import LABEL
from sidecar.kubernetes.route_services import FOR, gateway_subject, ingress_class_subject, is_subject
from sidecar.values.text import quoted

AUTO: Final = "auto"
"""The target that Services of our own namespace decide, by the class or Gateway of a claim (sources/steering.py)."""
SERVICE: Final = "service:"
"""The prefix of a target that is a Service."""
OWN: Final = "own"
"""The target of a claim whose status has the object's own addresses, as those of its pods; no user can write it."""

MOST_ADDRESSES: Final = 64
"""Of one target: A and AAAA records of some 1.5 KB. An annotation may have 17,000, and each of its names kept them."""

_SERVICE: Final = re.compile(f"{SERVICE}{LABEL}/{LABEL}")


class BadTarget(ValueError):
    """A text that is not a target; the message quotes it."""


def parse_target(text: str, *, auto: bool = False) -> str:
    """`ADDRESS[,ADDRESS]...` in canonical form, `service:NAMESPACE/NAME`, `status`, or with `auto` that word.

    Raises BadTarget.
    """
    text = text.strip()
    if text == "status" or _SERVICE.fullmatch(text) or (auto and text == AUTO):
        return text
    if text.startswith(SERVICE):
        raise BadTarget(f"{quoted(text)} is not service:NAMESPACE/NAME")
    if text.count(",") >= MOST_ADDRESSES:
        raise BadTarget(f"it has more than {MOST_ADDRESSES} addresses")
    try:
        return ",".join(parse_addresses(text))
    except ValueError as error:
        raise BadTarget(f"{error}; it may also be service:NAMESPACE/NAME, or status") from None


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of claims without addresses of their own."""

    default: tuple[str, ...] = ()
    """Addresses, or one of `service:NAMESPACE/NAME` and `status`."""
    by_class: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    services: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The addresses of Services, by `NAMESPACE/NAME`."""
    unready: frozenset[str] = frozenset()
    """Those of the Services without a ready endpoint: their names are forwarded meanwhile."""
    steered: Mapping[str, str] = field(default_factory=dict)
    """For the target `auto`: the Services, `NAMESPACE/NAME`, by subject (sidecar/kubernetes/route_services.py)."""
    balancers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For the target `auto`: the addresses of load balancers that those Services name, by subject."""

    def addresses_for(self, claim: Claim) -> tuple[str, ...]:
        """The addresses that a claim is answered with; empty if there are none."""
        if claim.terms.addresses:
            return claim.terms.addresses
        target = self.target_of(claim)
        if target in (("status",), (OWN,)):
            return tuple(filter(is_address, claim.terms.status))
        if target and target[0].startswith(SERVICE):
            return self.services.get(target[0].removeprefix(SERVICE), ())
        return () if target == (AUTO,) else target

    def answers_of(self, gateway: str, class_name: str | None) -> tuple[str, ...]:
        """The addresses that names of a Gateway or class are answered with; empty if none, or each has its own."""
        if self.is_automatic(class_name):
            return self.addresses_of_subject(_subject(gateway, class_name))
        return self.addresses_of_class(class_name)

    def addresses_of_subject(self, subject: str) -> tuple[str, ...]:
        """The addresses of the Service that answers for a subject (`auto`); none while it has no ready endpoint."""
        service = self.steered.get(subject)
        return self.services.get(service, ()) if service is not None and service not in self.unready else ()

    def is_automatic(self, class_name: str | None) -> bool:
        """Whether the names of a class are those of the Service that is for it (`auto`), if there is one."""
        return (self.default if class_name is None else self.by_class.get(class_name, self.default)) == (AUTO,)

    def steers(self, subject: str) -> bool:
        """Whether the Service for a subject answers its names: a class may have a target of its own (--target-for)."""
        kind, _, name = subject.partition("/")
        return kind != "ingressclass" or self.is_automatic(name)

    def addresses_of_class(self, class_name: str | None) -> tuple[str, ...]:
        """The addresses that names of a class have; empty if they differ from name to name."""
        target = self.default if class_name is None else self.by_class.get(class_name, self.default)
        if target and target[0].startswith(SERVICE):
            return self.services.get(target[0].removeprefix(SERVICE), ())
        return () if target in ((AUTO,), ("status",)) else target

    def service_of(self, claim: Claim) -> str:
        """The Service that a claim is answered with, `NAMESPACE/NAME`; empty if its target is none."""
        target = () if claim.terms.addresses else self.target_of(claim)
        return target[0].removeprefix(SERVICE) if target and target[0].startswith(SERVICE) else ""

    def is_unready(self, claim: Claim) -> bool:
        """Whether no endpoint of the Service that a claim is answered with is ready."""
        return bool(self.unready) and self.service_of(claim) in self.unready

    def unsteered(self, claim: Claim) -> str | None:
        """Why no Service answers for a claim whose target is `auto`; None if one does, or if it has another target."""
        if claim.terms.addresses or self.target_of(claim) != (AUTO,):
            return None
        subject = _subject_of(claim)
        if is_subject(subject):
            return f"its target is {AUTO}, and no Service is for {subject} ({FOR})"
        about = claim.terms.ingress_class or claim.terms.gateway
        if about:
            return f"its target is {AUTO}, and no Service can be for {quoted(about)}: use --target-for or --target"
        return f"its target is {AUTO}, and it has neither an ingress class nor a Gateway"

    def named(self) -> list[str]:
        """Every part of every target."""
        return [*self.default, *(part for target in self.by_class.values() for part in target)]

    def target_of(self, claim: Claim) -> tuple[str, ...]:
        """The target that applies to a claim: the object's own, that of its class, or the default.

        `auto` becomes the Service that answers for the claim, if there is one.
        """
        chosen = claim.terms.target
        if chosen is not None:
            return tuple(chosen.split(","))
        target = self._given(claim)
        if target == (AUTO,):
            service = self.steered.get(_subject_of(claim))
            return (SERVICE + service,) if service else target
        return target

    def subject_of(self, claim: Claim) -> str:
        """The class or Gateway that decides with `auto` how a claim is answered, steered or not; empty if none does."""
        terms = claim.terms
        if terms.addresses or terms.target is not None or self._given(claim) != (AUTO,):
            return ""
        subject = _subject_of(claim)
        return subject if is_subject(subject) else ""

    def _given(self, claim: Claim) -> tuple[str, ...]:
        """The target of the claim's class, or the default."""
        name = claim.terms.ingress_class
        return self.default if name is None else self.by_class.get(name, self.default)


def _subject_of(claim: Claim) -> str:
    """No subject, as is_subject() has it, for an Istio Gateway, and for the annotated class of an Ingress: any text."""
    return _subject(claim.terms.gateway, claim.terms.ingress_class)


def _subject(gateway: str, class_name: str | None) -> str:
    if gateway:
        return gateway_subject(*gateway.split("/"))
    return ingress_class_subject(class_name) if class_name else ""
