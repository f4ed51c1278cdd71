"""Hostnames of Gateway API: which names a route and its listeners serve together.

The law: a hostname is a set of names, `*.example.org` every name below example.org at any depth, and what is served is
the intersection of the sets. A hostname is looked up and never compared with all others, so that a route of 1024
hostnames at 2000 listeners holds nobody up. https://gateway-api.sigs.k8s.io/reference/spec/#hostname
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dnsproxy.dns.names import is_wildcard


def wider(hostname: str) -> Iterator[str]:
    """The wildcards that cover all of a hostname in normal form and more, the narrowest first."""
    rest = hostname.removeprefix("*.") if is_wildcard(hostname) else hostname
    while rest := rest.partition(".")[2]:
        yield f"*.{rest}"


def intersect(ones: Collection[str], others: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """The pairs of hostnames that have names in common, each with what that is: the narrower of the two.

    Sets or dicts, else each look-up takes long.
    """
    for one in ones:
        if one in others:
            yield one, one, one
        for other in wider(one):
            if other in others:
                yield one, other, one
    for other in others:
        for one in wider(other):
            if one in ones:
                yield one, other, other
