"""Ownership lookups: from a hostname to the finding that its claims are judged by.

The law: nothing here changes a verdict or waits for a turn; without an answer there is no finding. Tested in
test_ownership_watch.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from dnsproxy.dns import names
from dnsproxy.dns.addresses import PublicRecord, is_address
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.ownership import Finding, Mode, OwnershipSettings, Standing, standing_of
from dnsproxy.hostnames.public_suffixes import registrable_domain
from dnsproxy.hostnames.registry import Registry
from dnsproxy.serve.public_records import LONGEST_WILDCARD, Ask, PublicRecords, name_to_ask

_BALANCERS: Final = 16
"""Hostnames of load balancers that are resolved in one lookup."""
_SHARED: Final = 1000
"""Different findings that are remembered to be shared."""


class Unanswered(Exception):
    """A lookup got no answer."""


class OwnershipLookups:
    """Looks up one hostname at a time; may run side by side with itself."""

    def __init__(self, registry: Registry, *, settings: OwnershipSettings, ask: Ask, draw: Callable[[], float]) -> None:
        self.looks: Counter[str] = Counter({"record": 0, "none": 0, "unanswered": 0})
        """How many lookups found a record, found none, or got no answer."""
        self._registry = registry
        self._settings = settings
        self._enforce = settings.mode is Mode.ENFORCE
        self._records = PublicRecords(ask, timeout=settings.pace.timeout)
        self._draw = draw
        self._shared: dict[str, Finding] = {}
        self._leading: dict[tuple[str, str], str] = {}
        """Enforced: a hostname whose record leads here, by its registrable domain and its namespace."""
        self._unled: dict[str, set[str]] = {}
        """Enforced: hostnames that are judged by their registrable domain and excluded for a namespace, by domain."""

    async def find(self, hostname: str) -> Finding | None:
        """What contradicts claims to a hostname or, enforced, confirms them; None if nothing does.

        Raises Unanswered.
        """
        try:
            record = await self._record(hostname)
            self.looks["record" if record.addresses else "none"] += 1
            if record.addresses:
                return None if self._settings.trusts_address(record.addresses) else await self._judge(hostname, record)
            return await self._find_without_addresses(hostname, record) if self._enforce else None
        except Unanswered:
            self.looks["unanswered"] += 1
            raise

    async def _find_without_addresses(self, hostname: str, record: PublicRecord) -> Finding | None:
        if record.aliases:
            trusted = any(map(self._settings.trusts_name, record.aliases))
            return None if trusted else await self._judge(hostname, record)
        return await self._judge_domain(hostname) if record.exists or names.is_wildcard(hostname) else None

    async def _record(self, hostname: str) -> PublicRecord:
        if names.is_wildcard(hostname) and len(hostname) > LONGEST_WILDCARD:
            return PublicRecord()
        record = await self._records.resolve(name_to_ask(hostname, self._draw()))
        if record is None:
            raise Unanswered
        return record

    def led_by(self, hostname: str, finding: Finding | None) -> Iterable[str]:
        """The hostnames to look up again, because this one of their domain now leads here for another namespace."""
        domain = _domain_of(hostname)
        new = [namespace for namespace in self._owners(hostname, finding) if not self._leads_here(domain, namespace)]
        self._leading |= {(domain, namespace): hostname for namespace in new}
        return self._unled.pop(domain, ()) if new else ()

    async def _judge(self, hostname: str, record: PublicRecord) -> Finding:
        """Everything that the claims to a hostname are judged by."""
        claims = objects_of(self._registry, hostname)
        store = self._registry.store
        balancers = {claim.terms.ingress_class: store.balancers(claim.terms.ingress_class) for claim in claims}
        points = dict.fromkeys(
            point for claim in claims for point in (*claim.terms.status, *balancers[claim.terms.ingress_class])
        )
        resolved = {}
        for point in [point for point in points if not is_address(point)][:_BALANCERS]:
            balancer = await self._records.resolve(point)
            if balancer is not None and balancer.addresses:
                resolved[point] = balancer.addresses
        strict = bool(self._settings.networks)
        return self._share(Finding(record.addresses, record.aliases, resolved, balancers, strict))

    def _share(self, finding: Finding) -> Finding:
        """The same object for equal findings: enforced, each of half a million names has one."""
        if len(self._shared) >= _SHARED:
            self._shared.clear()
        return self._shared.setdefault(repr(finding), finding)

    async def _judge_domain(self, hostname: str) -> Finding | None:
        """A wildcard without a public one, or a name without addresses, is judged by its registrable domain."""
        domain = _domain_of(hostname)
        exists = await self._records.exists(domain)
        if exists is None:
            raise Unanswered
        if not exists:
            return None
        claimed = {claim.origin.namespace for claim in objects_of(self._registry, hostname)}
        led = {namespace for namespace in claimed if self._leads_here(domain, namespace)}
        for name in dict.fromkeys((hostname.removeprefix("*."), domain)):
            record = await self._record(name)
            if self._settings.trusts_address(record.addresses):
                return None
            if record.addresses:
                owners = self._owners(hostname, await self._judge(hostname, record))
                others = {claim.origin.namespace for claim in objects_of(self._registry, name)}
                # A name that another namespace has says nothing for this one, because both share the load balancer.
                led |= owners & others if others else owners
        if led < claimed:
            self._unled.setdefault(domain, set()).add(hostname)
        return Finding((), zone=domain, led=tuple(sorted(led)))

    def _leads_here(self, domain: str, namespace: str) -> bool:
        """Whether a name of the namespace in this domain leads here, as the last lookup of that name found."""
        name = self._leading.get((domain, namespace))
        return name is not None and namespace in self._owners(name, self._registry.record(name))

    def _owners(self, hostname: str, finding: Finding | None) -> set[str]:
        """The namespaces of which a claim to a hostname has a public record that leads here."""
        # Without the answers: the address of another's public record, chosen as a target, is no property of the domain.
        if finding is None or finding.zone:
            return set()
        return {
            claim.origin.namespace
            for claim in objects_of(self._registry, hostname)
            if standing_of(claim, answers=(), finding=finding) is Standing.OWNED
        }


def objects_of(registry: Registry, hostname: str) -> list[Claim]:
    """The claims of the cluster's objects; static names are never unverified."""
    return [claim for claim in registry.store.claims_for(hostname) if not claim.terms.addresses]


def points_of(registry: Registry, claim: Claim) -> tuple[str, ...]:
    """The load balancers that a public record is compared with."""
    return claim.terms.status or registry.store.balancers(claim.terms.ingress_class)


def _domain_of(hostname: str) -> str:
    base = hostname.removeprefix("*.")
    return registrable_domain(base) or base
