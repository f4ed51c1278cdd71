"""The verdict on one hostname: which claim wins, the addresses of the answer, and why the other claims are excluded.

The law: the result depends only on the set of claims and on who has the name, never on their order. Of the claims that
no guard denies and whose target has an address, the first by rank wins (ranking.py), unless another namespace has the
name: then the namespace's claim is answered, or none, until the time of holds.py is over; one whose answer is that of
before, in place of the same load balancer, is answered while it waits. A name without an answer is forwarded, because a
wrong answer is worse.

A target without a ready endpoint takes no name away from its claim: only another claim of the same namespace is
answered meanwhile. Otherwise the name of a relay that restarts would go to whoever claims it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.guards import Guards, overreach, refusal
from dnsproxy.hostnames.holds import Tenure
from dnsproxy.hostnames.ranking import age_of, rank
from dnsproxy.hostnames.rights import Rights
from dnsproxy.hostnames.targets import Targets


class Excluded(msgspec.Struct, frozen=True, gc=False):
    """A claim that is not answered, with the reason."""

    claim: Claim
    reason: str


class LedElsewhere(msgspec.Struct, frozen=True, gc=False):
    """A name that an object claims and whose public record leads elsewhere."""

    hostname: str
    """The name that was asked, which a wildcard may cover."""
    claim: Claim
    """The claim whose row covers the name."""
    leads: tuple[str, ...]
    """Some of the addresses of the record that lead elsewhere."""
    answered: bool = False
    """Whether the row answers it all the same (`--ownership warn`)."""

    @property
    def reason(self) -> str:
        """What its record says, for users."""
        done = "it is answered all the same" if self.answered else "that is left as it is"
        return f"its public record leads elsewhere ({', '.join(self.leads)}): {done}"


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """The result for one hostname."""

    winner: Claim | None
    addresses: tuple[str, ...]
    excluded: tuple[Excluded, ...]
    waits: bool = False
    """Whether the hostname is forwarded because no target of its claims has an address, or a ready endpoint."""
    rival: Origin | None = None
    """The first by rank, where another namespace has the name."""
    unready: Claim | None = None
    """The claim that has the name, which is forwarded because no endpoint of the claim's target is ready."""
    contenders: tuple[Claim, ...] = ()
    """The claims that have the name or come first, and those that would if a Service answered for them (`auto`)."""
    lent: bool = False
    """Whether the winner waits for the name and is answered meanwhile, because the answer is the one of before."""

    @property
    def owner(self) -> Claim | None:
        """The claim that has the name, answered or not."""
        return self.winner or self.unready


class Before(NamedTuple):
    """How a name was answered by the last claim of the namespace that has it."""

    addresses: tuple[str, ...]
    status: tuple[str, ...]
    """The load balancer of its object, to which the public record leads; empty if unknown."""


class _Trial(NamedTuple):
    claim: Claim
    addresses: tuple[str, ...]
    refused: bool
    """Whether a guard or a right denies the claim, whatever its target is."""
    denial: str | None
    unready: bool = False

    @property
    def namespace(self) -> str:
        return self.claim.origin.namespace


def judge(
    claims: Iterable[Claim],
    *,
    targets: Targets,
    guards: Guards,
    rights: Rights | None = None,
    tenure: Tenure | None = None,
    before: Before | None = None,
) -> Verdict:
    """Choose between the claims to one hostname and reach. `rights`: None allows every annotation and class.

    `tenure`: who has the name; `before`: how it was answered, where that namespace has no claim left.
    """
    holder = tenure.holder if tenure is not None else None
    trials: list[_Trial] = []
    for claim in sorted(claims, key=lambda claim: rank(claim, holder)):
        addresses = targets.addresses_for(claim)
        denial = _denial(claim, guards) or (rights.denial(claim, targets=targets) if rights else None)
        refused = denial is not None
        denial = denial or targets.unsteered(claim)
        trials.append(_Trial(claim, addresses, refused, denial, targets.is_unready(claim)))
    if len(trials) == 1 and trials[0].addresses and trials[0].denial is None and not trials[0].unready:
        only = trials[0]
        # Nearly every name: its one claim, of the namespace that has the name already.
        if tenure is None or tenure.holder.namespace == only.claim.origin.namespace:
            return Verdict(only.claim, only.addresses, (), contenders=(only.claim,))
    able = [one for one in trials if one.denial is None]
    first = next((one for one in able if one.addresses), None)
    owner = _owner_of(able, first, tenure)
    rival = first.claim.origin if first is not None and owner is not first else None
    lent = first if owner is None and first is not None and _is_as_before(first, before) else None
    winner = lent or _stand_in(able, owner)
    excluded = tuple(_excluded(trials, winner, rival, targets=targets, tenure=tenure))
    contenders = tuple(_contenders(trials, targets=targets, tenure=tenure))
    if winner is None:
        unready = owner.claim if owner is not None else None
        waits = bool(able) and (rival is None or unready is not None)
        return Verdict(None, (), excluded, waits=waits, rival=rival, unready=unready, contenders=contenders)
    return Verdict(
        winner.claim,
        winner.addresses,
        excluded,
        rival=rival,
        contenders=contenders,
        lent=lent is not None,
    )


def _owner_of(able: Iterable[_Trial], first: _Trial | None, tenure: Tenure | None) -> _Trial | None:
    """The claim that has the name; `first` would have it by its rank."""
    if first is None or tenure is None or tenure.ended or first.claim.terms.addresses:
        return first
    namespace = tenure.holder.namespace
    if first.namespace == namespace:
        return first
    own = next((one for one in able if one.addresses and one.namespace == namespace), None)
    return first if own is not None and _is_route_of(first.claim, own.claim) else own


def _is_as_before(one: _Trial, before: Before | None) -> bool:
    """Whether a claim gives away nothing: the same answer, in place of the same load balancer."""
    return before is not None and bool(before.status) and before == Before(one.addresses, one.claim.terms.status)


def _stand_in(able: Iterable[_Trial], owner: _Trial | None) -> _Trial | None:
    """The claim that is answered: the owner, or another of its namespace while the owner's target is not ready."""
    if owner is None or not owner.unready:
        return owner
    others = (one for one in able if one.addresses and not one.unready)
    return next((one for one in others if one.namespace == owner.namespace), None)


def _contenders(trials: Iterable[_Trial], *, targets: Targets, tenure: Tenure | None) -> Iterator[Claim]:
    """The claims before which no answered one ranks, and those before which none of the name's own namespace does.

    A claim whose target is `auto` is among them as if a Service answered for it, but keeps the name from no other.
    """
    namespace = tenure.holder.namespace if tenure is not None and not tenure.ended else None
    taken = taken_within = False
    for one in trials:
        if one.refused or not (one.addresses or targets.subject_of(one.claim)):
            continue
        if not taken or (one.namespace == namespace and not taken_within):
            yield one.claim
        if one.claim.terms.addresses:
            return  # the operator's own name
        if one.addresses:
            namespace = one.namespace if namespace is None else namespace
            taken = True
            taken_within = taken_within or (one.namespace == namespace and not one.unready)


def _is_route_of(claim: Claim, listener: Claim) -> bool:
    """Whether a claim may have the name from this listener, whose owner then has handed it over himself.

    It must be bound to the listener's very Gateway: kinds and classes of other APIs may be spelled alike. The
    listener admits no hostname by annotation or alias.
    """
    its, theirs = claim.terms, listener.terms
    is_bound = its.gateway != "" and its.gateway == theirs.gateway
    is_route = its.routed and is_bound and not its.annotated
    return is_route and not theirs.routed and age_of(claim) <= age_of(listener)


def _excluded(
    trials: Iterable[_Trial], winner: _Trial | None, rival: Origin | None, *, targets: Targets, tenure: Tenure | None
) -> Iterator[Excluded]:
    """Why the other claims are not answered, in the order of their ranks."""
    has_it = ""
    for one in trials:
        if one is winner:
            has_it = f"{one.claim.origin} has it"
        elif has_it or one.denial is not None:
            yield Excluded(one.claim, has_it or one.denial or "")
        elif one.unready and one.addresses:
            yield Excluded(one.claim, f"no endpoint of its target is ready ({','.join(targets.target_of(one.claim))})")
            has_it = "" if winner is not None or rival is not None else f"{one.claim.origin} has it"
        elif not one.addresses:
            chosen = ",".join(targets.target_of(one.claim)) or "--target"
            yield Excluded(one.claim, f"its target has no address ({chosen})")
        elif one.claim.origin == rival and tenure is not None:
            until = f"until {_format_time(tenure.until)} " if tenure.until is not None else ""
            yield Excluded(one.claim, f"namespace {tenure.holder.namespace} has the name: it waits {until}(--hold)")
        else:
            yield Excluded(one.claim, f"{rival} comes first")


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _denial(claim: Claim, guards: Guards) -> str | None:
    """Why a guard denies a claim; None if none does."""
    refused = refusal(claim.hostname, guards)
    return overreach(claim.hostname, guards) if refused is None and not claim.terms.addresses else refused
