"""The limits of names: how many one object, one namespace and all together may claim, and how names are counted.

The law: values only. A claim counts as one name, and as more where its texts are long, so that a limit of names is a
limit of memory and of the snapshot's size too: some 0.9 KiB and 0.4 KiB for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from dnsproxy.hostnames.claims import Claim

_OCTETS: Final = 128
"""Of text that a claim has for one name."""


@dataclass(frozen=True, slots=True)
class NameLimits:
    """Of the cluster's objects; static names have no limit."""

    per_object: int = 1_000
    """`--max-names-per-object`."""
    per_namespace: int = 20_000
    """`--max-names-per-namespace`."""
    total: int = 500_000
    """`--max-names`."""


def too_many(most: int) -> str:
    """What an object loses that claims too many names."""
    return f"it claims more than {most:,} names (--max-names-per-object): the others are left out"


def weight_of(claim: Claim) -> int:
    """As how many names a claim counts."""
    terms = claim.terms
    chosen = (
        claim.hostname,
        claim.origin.name,
        terms.target or "",
        terms.ingress_class or "",
        *terms.status,
        *terms.declared,
    )
    return 1 + sum(map(len, chosen)) // _OCTETS


def count_names(claims: Sequence[Claim]) -> int:
    """As how many names the claims of an object count."""
    return sum(map(weight_of, claims))


def distinct(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """The claims of an object, each once; most objects have a single one."""
    return tuple(dict.fromkeys(claims)) if len(claims) > 1 else tuple(claims)


def first_names(claims: Sequence[Claim], most: int) -> Sequence[Claim]:
    """The first claims of an object that count as at most this many names."""
    if len(claims) <= most and count_names(claims) <= most:
        return claims
    fitting = sum(names <= most for names in accumulate(map(weight_of, claims)))
    return claims[:fitting]
