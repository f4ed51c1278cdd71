"""The reach of wildcards: how many labels a wildcard of each source covers, and which wildcards cover a name.

The law: pure. The wildcards of static names, of the Gateway API and of annotated Services cover one or more labels, as
in DNS (RFC 4592). An Ingress wildcard covers exactly one label, as its specification says. The table looks up the
narrowest wildcard first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dnsproxy.dns.names import Reach, is_wildcard


def reach_in_dns(hostname: str) -> Reach:
    """The reach of a hostname whose source has wildcards as DNS has them."""
    return Reach.ANY_LABELS if is_wildcard(hostname) else Reach.NAME


def reach_in_ingress(hostname: str) -> Reach:
    """The reach of an Ingress's hostname.

    https://kubernetes.io/docs/concepts/services-networking/ingress/#hostname-wildcards
    """
    return Reach.ONE_LABEL if is_wildcard(hostname) else Reach.NAME


def reaches(hostname: str) -> tuple[Reach, ...]:
    """The reaches that claims to a hostname can have, whatever their source."""
    return (Reach.ONE_LABEL, Reach.ANY_LABELS) if is_wildcard(hostname) else (Reach.NAME,)


def wider(hostname: str) -> Iterator[str]:
    """The wildcards that cover all of a hostname in normal form and more, the narrowest first."""
    rest = hostname.removeprefix("*.")
    while rest := rest.partition(".")[2]:
        yield f"*.{rest}"


def intersect(ones: Collection[str], others: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """The pairs of hostnames that have names in common, each with their intersection: the narrower of the two.

    Wildcards are those of DNS. A hostname is looked up and never compared with all others, so that a route with 1024
    hostnames at 2000 listeners does not block the loop. Pass sets or dicts: each lookup must be fast.
    """
    for one in ones:
        if one in others:
            yield one, one, one
        for other in wider(one):
            if other in others:
                yield one, other, one
    if not any(map(is_wildcard, ones)):
        return
    for other in others:
        for one in wider(other):
            if one in ones:
                yield one, other, other
