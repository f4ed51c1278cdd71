"""The plan for one hostname: who of those that claim it has it, what it is answered with, and why the others lost.

The law: the result depends on the set of claims alone, never on the order in which they came. Static names beat the
cluster's, and an object that routes the name beats a mere listener; between objects of one sort the older one wins,
then namespace and name. A claim that is barred leaves its place to the next one. A name whose target has no address
is left out, so that it is forwarded and never answered wrongly.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.guards import Guards, overreach, refusal
from dnsproxy.hostnames.ownership import Finding, Standing, standing_of
from dnsproxy.hostnames.ranking import rank
from dnsproxy.hostnames.targets import Targets


class Lost(msgspec.Struct, frozen=True, gc=False):
    """A claim that is not answered, and why."""

    claim: Claim
    reason: str


class Doubted(msgspec.Struct, frozen=True, gc=False):
    """A claim that is answered, and why it might not be its own name."""

    claim: Claim
    reason: str


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What becomes of one hostname."""

    winner: Claim | None
    addresses: tuple[str, ...]
    lost: tuple[Lost, ...]
    doubt: str = ""
    """Why the winner's public record speaks against it; it is answered all the same."""
    waits: bool = False
    """Whether the hostname is left out because the target of whoever has it has no address."""


def judge(
    claims: Iterable[Claim], *, targets: Targets, guards: Guards, finding: Finding | None = None, enforce: bool = False
) -> Verdict:
    """Choose between the claims to one hostname and reach.

    `finding`: what its public record says, where that speaks against any claim; `enforce`: whether such a one loses.
    """
    barred: list[Lost] = []
    rest = iter(sorted(claims, key=rank))
    for claim in rest:
        addresses = targets.addresses_for(claim)
        doubt = _doubt(claim, addresses, finding)
        bar = _bar(claim, guards) or (f"{doubt}, --ownership enforce" if doubt and enforce else None)
        if bar is None:
            lost = tuple(Lost(other, f"{claim.origin} has it") for other in rest)
            if addresses:
                return Verdict(claim, addresses, (*barred, *lost), doubt)
            chosen = ",".join(targets.target_of(claim)) or "--target"
            unanswered = Lost(claim, f"its target has no address ({chosen})")
            return Verdict(None, (), (*barred, unanswered, *lost), waits=True)
        barred.append(Lost(claim, bar))
    return Verdict(None, (), tuple(barred))


def _bar(claim: Claim, guards: Guards) -> str | None:
    """Why a claim gets nothing, whoever else claims the name."""
    refused = refusal(claim.hostname, guards)
    return overreach(claim.hostname, guards) if refused is None and not claim.addresses else refused


def _doubt(claim: Claim, answers: tuple[str, ...], finding: Finding | None) -> str:
    if finding is None or standing_of(claim, answers=answers, finding=finding) is not Standing.FOREIGN:
        return ""
    return finding.reason
