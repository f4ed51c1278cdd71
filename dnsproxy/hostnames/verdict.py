"""The verdict on one hostname: which claim wins, the addresses of the answer, and why the other claims are excluded.

The law: the result depends only on the set of claims, never on their order. The claim that ranks first wins
(ranking.py). If a guard denies a claim, the next one takes its place. A name whose target has no address is not
answered but forwarded, because a wrong answer is worse.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.guards import Guards, overreach, refusal
from dnsproxy.hostnames.ownership import Finding, Standing, standing_of
from dnsproxy.hostnames.ranking import rank
from dnsproxy.hostnames.rights import Rights
from dnsproxy.hostnames.targets import Targets


class Excluded(msgspec.Struct, frozen=True, gc=False):
    """A claim that is not answered, with the reason."""

    claim: Claim
    reason: str


class Unverified(msgspec.Struct, frozen=True, gc=False):
    """A claim that is answered, with the reason why the name may belong to another party."""

    claim: Claim
    reason: str


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """The result for one hostname."""

    winner: Claim | None
    addresses: tuple[str, ...]
    excluded: tuple[Excluded, ...]
    doubt: str = ""
    """Why the winner is unverified, although it is answered; empty if no public record contradicts it."""
    waits: bool = False
    """Whether the hostname is forwarded because the winner's target has no address."""


def judge(
    claims: Iterable[Claim],
    *,
    targets: Targets,
    guards: Guards,
    rights: Rights | None = None,
    finding: Finding | None = None,
    enforce: bool = False,
) -> Verdict:
    """Choose between the claims to one hostname and reach. `rights`: None allows every annotation and class.

    `finding`: the public record of the name, if it contradicts a claim; `enforce`: exclude the claims it contradicts.
    """
    denied: list[Excluded] = []
    rest = iter(sorted(claims, key=rank))
    for claim in rest:
        addresses = targets.addresses_for(claim)
        doubt = _doubt(claim, addresses, finding)
        denial = _denial(claim, guards) or (rights.denial(claim, targets=targets) if rights else None)
        denial = denial or (f"{doubt}, --ownership enforce" if doubt and enforce else None)
        if denial is None:
            excluded = tuple(Excluded(other, f"{claim.origin} has it") for other in rest)
            if addresses:
                return Verdict(claim, addresses, (*denied, *excluded), doubt)
            chosen = ",".join(targets.target_of(claim)) or "--target"
            unanswered = Excluded(claim, f"its target has no address ({chosen})")
            return Verdict(None, (), (*denied, unanswered, *excluded), waits=True)
        denied.append(Excluded(claim, denial))
    return Verdict(None, (), tuple(denied))


def _denial(claim: Claim, guards: Guards) -> str | None:
    """Why a guard denies a claim; None if none does."""
    refused = refusal(claim.hostname, guards)
    return overreach(claim.hostname, guards) if refused is None and not claim.addresses else refused


def _doubt(claim: Claim, answers: tuple[str, ...], finding: Finding | None) -> str:
    if finding is None or standing_of(claim, answers=answers, finding=finding) is not Standing.FOREIGN:
        return ""
    return finding.reason
