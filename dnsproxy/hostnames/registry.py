"""The registry: the verdicts on the claims of all sources, by hostname.

The law: only the hostnames that a change touches are judged again. Without holds the result equals that of judging all
claims afresh, whatever the order of the changes; with holds it comes to that when their time is over (holds.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.answers.table import Host
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Rejection
from dnsproxy.hostnames.guards import Guards, refusal
from dnsproxy.hostnames.holds import Holds, Row, Tenure
from dnsproxy.hostnames.name_limits import NameLimits
from dnsproxy.hostnames.name_shares import NameShares
from dnsproxy.hostnames.outcomes import Outcomes
from dnsproxy.hostnames.ownership import LeavingBalancers, OwnershipSettings, find_balancers, with_addresses
from dnsproxy.hostnames.rights import Rights
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import Before, Verdict, judge
from dnsproxy.hostnames.wildcard_bar import is_barred, names_below
from dnsproxy.hostnames.wildcards import reaches
from dnsproxy.replace.balancers import Balancers


class Judgement(NamedTuple):
    """A row of the table, and the verdict behind it."""

    host: Host
    verdict: Verdict


class Registry:
    """A claim store, and the verdicts on its hostnames; objects of the cluster go into it through the shares."""

    def __init__(
        self,
        *,
        targets: Targets,
        guards: Guards,
        rights: Rights | None = None,
        ownership: OwnershipSettings | None = None,
        limits: NameLimits | None = None,
        holds: Holds | None = None,
    ) -> None:
        self.store = ClaimStore()
        self.shares = NameShares(self.store, limits=limits or NameLimits())
        self.rights = rights
        self.holds = holds or Holds()
        self.outcomes = Outcomes()
        self._targets = targets
        self._guards = guards
        self._touched: list[Iterable[str]] = []
        self._ownership = ownership or OwnershipSettings()
        self._balancers: tuple[tuple[Targets, int, int], Balancers] | None = None
        self._leaving = LeavingBalancers()
        self._now = 0.0
        self._balancer_addresses: Mapping[str, tuple[str, ...]] = {}
        self._resolved = 0
        """How often those have changed."""
        self._before: dict[Row, Before] = {}
        """How names were answered whose namespace has no claim to them any more, while they are held."""

    @property
    def guards(self) -> Guards:
        """What is denied."""
        return self._guards

    @property
    def denied(self) -> tuple[str, ...]:
        """Hostnames that are denied by name, also below wildcards."""
        return self._guards.deny

    @property
    def closed(self) -> tuple[str, ...]:
        """The search domains that no wildcard from above reaches into."""
        return self._guards.closed

    def set_guarded(self, *, search: tuple[str, ...], cluster_domains: tuple[str, ...]) -> bool:
        """Set the search domains, denied to the cluster's objects, and the cluster domains, denied to every claim.

        Returns whether they changed.
        """
        guards = dataclasses.replace(self._guards, search=search, cluster_domains=cluster_domains)
        if guards == self._guards:
            return False
        self._guards = guards
        self.touch(self.store.names())
        return True

    @property
    def targets(self) -> Targets:
        """The targets of claims without addresses of their own."""
        return self._targets

    def set_services(
        self,
        addresses: Mapping[str, tuple[str, ...]],
        *,
        unready: frozenset[str] = frozenset(),
        touching: Iterable[str] | None = None,
    ) -> None:
        """Set the addresses of the Services that targets name, by `NAMESPACE/NAME`, and those without a ready endpoint.

        `touching`: the hostnames to judge again; None: all.
        """
        self._targets = dataclasses.replace(self._targets, services=addresses, unready=unready)
        self.touch(self.store.names() if touching is None else touching)

    def set_steered(self, services: Mapping[str, str], balancers: Mapping[str, tuple[str, ...]] | None = None) -> None:
        """Set the Services that answer for the subjects of the target `auto`; every name is judged again.

        `balancers`: the addresses of the load balancers that these Services name, by subject.
        """
        self._targets = dataclasses.replace(self._targets, steered=services, balancers=balancers or {})
        self.touch(self.store.names())

    @property
    def balancers(self) -> Balancers:
        """The load balancers that lead here: in the statuses of the objects now, and those that have left lately.

        When one has left is counted from the first reading after that; the time is that of the last judgements().
        """
        key = self._targets, self.store.balancers_version, self._resolved
        before = self._balancers
        is_same = before is not None and before[0][0] is key[0] and before[0][1:] == key[1:]
        leaves = self._leaving.due
        if before is None or not is_same or (leaves is not None and leaves <= self._now):
            found = find_balancers(self._ownership, self.store.balancers(), self._targets)
            # The addresses of hostnames follow public DNS at once: a provider gives them to others when they change.
            found = with_addresses(self._leaving.keep(found, now=self._now), self._balancer_addresses)
            before = self._balancers = key, found
        return before[1]

    @property
    def due(self) -> float | None:
        """When the next hold is over, or the time of an address that has left a status; None if nothing is to come."""
        return min((one for one in (self.holds.due, self._leaving.due) if one is not None), default=None)

    def set_balancer_addresses(self, addresses: Mapping[str, tuple[str, ...]]) -> bool:
        """Set the addresses of load balancers' hostnames, by hostname. Returns whether they changed."""
        if addresses == self._balancer_addresses:
            return False
        self._balancer_addresses = addresses
        self._resolved += 1
        return True

    def claimed(self, claim: Claim) -> Claimed:
        """Whether public DNS has a say in the row of a claim."""
        return self._ownership.claimed(claim)

    def set_rights(self, **read: frozenset[str] | None) -> None:
        """Set what was read of the rights, by field. The names that this affects are to be touched by the caller."""
        if self.rights is not None:
            self.rights = dataclasses.replace(self.rights, **read)  # type: ignore[arg-type]

    def allows(self, claim: Claim) -> bool:
        """Whether a claim has the rights that it needs."""
        return self.rights is None or self.rights.denial(claim, targets=self._targets) is None

    def refusal(self, hostname: str) -> str | None:
        """Why every claim to this hostname is denied; None if it is not."""
        return refusal(hostname, self._guards)

    def replace(self, source: str, key: str, claims: Sequence[Claim], rejections: Sequence[Rejection] = ()) -> None:
        """Set the claims of one object of one source; no claims if it is gone."""
        old = self.store.claims_at(source, key) if self.holds.waits else ()
        changed = self.store.replace(source, key, claims, rejections)
        self.touch(changed)
        for claim in old if changed else ():
            tenure = self.holds.tenure(claim.hostname, claim.reach)
            if tenure is not None and tenure.holder.namespace == claim.origin.namespace:
                self._remember(claim)

    def _remember(self, claim: Claim) -> None:
        """Until its name is judged next, and as long as it is held then."""
        addresses = self._targets.addresses_for(claim)
        if addresses:
            self._before[claim.hostname, claim.reach] = Before(addresses, claim.terms.status)

    def touch(self, hostnames: Iterable[str]) -> None:
        """Note that the claims to these hostnames have changed in the store; constant time for any number."""
        self._touched.append(hostnames)

    @property
    def ttl(self) -> int | None:
        """Seconds for all answers, if a primary decides about them."""
        return None

    def every_name(self) -> Iterable[str]:
        """The hostnames that have a row, or would have one after retouching."""
        return (*self.store.names(), *self.holds.running())

    def begin(self) -> None:
        """Prepare for the judgements of the next table."""

    def changes(self, now: float = 0.0) -> Iterator[Host]:
        """The rows of judgements()."""
        return (judgement.host for judgement in self.judgements(now))

    def judgements(self, now: float = 0.0) -> Iterator[Judgement]:
        """The new row of each hostname touched since the last call; a row without addresses leaves the table.

        `now` in seconds since the epoch, from a clock that never jumps: names whose hold is over are touched too.
        """
        self._now = now
        for hostname in self.holds.end_due(now):
            self.touch((hostname,))
        lost: set[str] = set()
        while self._touched or lost:
            if not self._touched:
                # Once for all wildcards: a look at every held name for each would be their product.
                self.touch(names_below(lost, self.holds.running()))
                lost.clear()
            for hostname in self._touched.pop():
                for reach in reaches(hostname):
                    verdict = self._settle(hostname, reach, now)
                    self.outcomes.note((hostname, reach), verdict)
                    if reach is not Reach.NAME and verdict.owner is None:
                        lost.add(hostname)
                    yield Judgement(self._row(hostname, reach, verdict), verdict)

    def _row(self, hostname: str, reach: Reach, verdict: Verdict) -> Host:
        """A row keeps its addresses while their Service is not ready: the table forwards it by the Service."""
        claim = verdict.owner
        if claim is None:
            return Host(hostname, reach, (), self.is_barred(hostname))
        addresses, service = self._targets.addresses_for(claim), self._targets.service_of(claim)
        return Host(hostname, reach, addresses, service=service, claimed=self.claimed(claim))

    def is_barred(self, hostname: str) -> bool:
        """Whether no wildcard answers a name that no claim of its own answers (wildcard_bar.py)."""
        tenure = self.holds.tenure(hostname, Reach.NAME)
        return is_barred(hostname, tenure, lambda name, reach: self.verdict(name, reach).owner)

    def _settle(self, hostname: str, reach: Reach, now: float) -> Verdict:
        """The verdict, and what it changes in who has the name."""
        verdict = self.verdict(hostname, reach)
        winner = verdict.winner
        if winner is not None and winner.terms.addresses:
            return verdict  # the operator's own name; its holder among the objects stays the same
        # Whose answer is lent has the name only when its time is over.
        origin = winner.origin if winner is not None and not verdict.lent else None
        claimed = origin is not None or self._is_claimed_by_holder(hostname, reach)
        changed = self.holds.note((hostname, reach), winner=origin, rival=verdict.rival, claimed=claimed, now=now)
        tenure = self.holds.tenure(hostname, reach)
        if tenure is None or tenure.until is None:
            self._before.pop((hostname, reach), None)
        # The reasons have the time until which a claim waits.
        return self.verdict(hostname, reach) if changed else verdict

    def _is_claimed_by_holder(self, hostname: str, reach: Reach) -> bool:
        tenure = self.holds.tenure(hostname, reach)
        return tenure is not None and any(
            claim.reach is reach and claim.origin.namespace == tenure.holder.namespace
            for claim in self.store.claims_for(hostname)
        )

    def verdict(self, hostname: str, reach: Reach) -> Verdict:
        """Which claim to a hostname wins, and which are excluded."""
        claims = [claim for claim in self.store.claims_for(hostname) if claim.reach is reach]
        return judge(
            claims,
            targets=self._targets,
            guards=self._guards,
            rights=self.rights,
            tenure=self._tenure(hostname, reach),
            before=self._before.get((hostname, reach)),
        )

    def _tenure(self, hostname: str, reach: Reach) -> Tenure | None:
        """Who has a name; a wildcard that is held in one reach is held in the other one too."""
        tenure = self.holds.tenure(hostname, reach)
        if tenure is not None or reach is Reach.NAME:
            return tenure
        others = (self.holds.tenure(hostname, one) for one in reaches(hostname) if one is not reach)
        return next((one for one in others if one is not None and one.until is not None), None)
