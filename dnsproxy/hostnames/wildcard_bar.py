"""The bar: a name that its namespace may take again is not answered by a wildcard of another namespace meanwhile.

The law: pure. While a name is held (holds.py), the wildcards below which it stands answer it only if the first of them
that answers belongs to the same namespace, or to the operator. Otherwise a reinstalled Ingress would hand its name to
whoever has a wildcard above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.holds import Tenure
from dnsproxy.hostnames.wildcards import wider

Winner = Callable[[str, Reach], Claim | None]
"""The claim that has the name, by hostname and reach."""


def is_barred(hostname: str, tenure: Tenure | None, winner_of: Winner) -> bool:
    """Whether no wildcard may answer a name that no claim of its own answers."""
    if tenure is None or tenure.until is None or tenure.ended:
        return False
    first = next(covering(hostname, winner_of), None)
    return first is None or not (first.terms.addresses or first.origin.namespace == tenure.holder.namespace)


def names_below(wildcards: Set[str], names: Iterable[str]) -> list[str]:
    """Those of some names that one of the wildcards covers at any depth."""
    return [name for name in names if not wildcards.isdisjoint(wider(name))]


def covering(hostname: str, winner_of: Winner) -> Iterator[Claim]:
    """The claims of the wildcards above a name, in the order in which the table looks them up."""
    for number, wildcard in enumerate(wider(hostname)):
        for reach in (Reach.ONE_LABEL, Reach.ANY_LABELS) if not number else (Reach.ANY_LABELS,):
            if (claim := winner_of(wildcard, reach)) is not None:
                yield claim
