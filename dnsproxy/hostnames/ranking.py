"""The ranking of claims: which claim wins when several objects claim one hostname.

The law: pure; no two different claims rank alike, so the winner never depends on the order in which claims came. Tested
in test_verdict.py.

1. A static name (`--host`, `--hosts-file`) beats every object of the cluster.
2. The older object wins, whatever its kind; objects without an age come first. A route is as old as the listener that
   it takes the name from. Against other namespaces, the holder's namespace counts with the age of the object that first
   got the name; objects of one namespace are compared by their own ages.
3. Of one age, a route beats its listener, and of two routes of one listener the older wins.
4. Then the kind, the namespace and the name decide, in alphabetical order.
"""

from __future__ import annotations

from dnsproxy.hostnames.claims import Claim, Origin

Rank = tuple[
    tuple[bool, str, str, bool, str, str, str, str],
    tuple[tuple[str, ...], str, str, tuple[str, ...], bool, tuple[str, ...]],
]


def age_of(claim: Claim) -> str:
    """Since when a claim counts, as RFC 3339 in UTC, so that it sorts as text; empty without an age."""
    return claim.terms.since or claim.origin.created


def rank(claim: Claim, holder: Origin | None = None) -> Rank:
    """The sort key: the claim with the lowest rank wins. `holder` has the name (holds.py)."""
    origin, terms = claim.origin, claim.terms
    own = age = age_of(claim)
    if holder is not None and holder.namespace == origin.namespace:
        age = min(age, holder.created)
    # Among static names, the kind `flag` sorts before `hosts file`: the command line overrides the file.
    place = (origin.kind, origin.namespace, origin.name)
    # The rest only orders the claims of one object, so that no two rank alike.
    rest = (
        terms.addresses,
        terms.ingress_class or "",
        terms.target or "",
        terms.status,
        terms.annotated,
        terms.declared,
    )
    # The own age, because the winner becomes the holder: with the holder's age alone, the next verdict could be another
    # one. Two routes at one listener are of one age: then that of the object counts.
    return (not terms.addresses, age, own, not terms.routed, origin.created, *place), rest
