"""The ranking of claims: which claim wins when several objects claim one hostname.

The law: pure; no two different claims rank alike, so the winner never depends on the order in which claims came. Tested
in test_verdict.py.

1. A static name (`--host`, `--hosts-file`) beats every object of the cluster.
2. An object that routes the name beats a mere listener.
3. The older object wins; objects without an age come first.
4. Then the kind, the namespace and the name decide, in alphabetical order.
"""

from __future__ import annotations

from dnsproxy.hostnames.claims import Claim

Rank = tuple[tuple[bool, bool, str, str, str, str], tuple[tuple[str, ...], str, str, tuple[str, ...]]]


def rank(claim: Claim) -> Rank:
    """The sort key: the claim with the lowest rank wins."""
    origin = claim.origin
    # Among static names, the kind `flag` sorts before `hosts file`: the command line overrides the file.
    age_and_name = (origin.created, origin.kind, origin.namespace, origin.name)
    # The rest only orders the claims of one object, so that no two rank alike.
    rest = (claim.addresses, claim.ingress_class or "", claim.target or "", claim.status)
    return (not claim.addresses, not claim.routed, *age_and_name), rest
