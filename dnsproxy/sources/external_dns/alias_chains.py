"""Alias chains: what a hostname stands for that is an alias of another one (CNAME).

The law: pure. A name that the table answers is answered alike, except by an alias of another namespace: that may lead
back here, so it counts as a name outside of the table. Aliases of the same namespace are followed first, so that a loop
among them is seen, and not what public DNS makes of it. The end of a chain depends on no order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from dnsproxy.hostnames.claims import Claim, Origin, share_terms
from dnsproxy.hostnames.wildcards import reach_in_dns

MOST_ALIASES: Final = 8
"""In one chain, as resolvers follow at most so many or a few more."""


class Chain(msgspec.Struct, frozen=True, gc=False):
    """Where an alias leads."""

    path: tuple[str, ...]
    """The names on the way, the alias itself excluded: on each of them the end depends."""
    claim: Claim | None = None
    """The claim by which the table answers the last one."""
    fault: str = ""
    """Why it has no end."""

    @property
    def is_outside(self) -> bool:
        """Whether it ends at a name that the table does not answer."""
        return self.claim is None and not self.fault


def follow_aliases(
    hostname: str, alias: str, *, own: Callable[[str], str | None], answering: Callable[[str], Claim | None]
) -> Chain:
    """The chain of `hostname`, which stands for `alias`.

    `own`: what a name stands for by an object of the same namespace; `answering`: the claim by which the table answers
    a name, unless that is an alias, too.
    """
    path: list[str] = []
    name: str | None = alias
    while name is not None:
        if name == hostname or name in path:
            return Chain((*path, name), fault=f"its alias leads back to {name} ({_format((hostname, *path, name))})")
        if len(path) == MOST_ALIASES:
            return Chain((*path, name), fault=f"more than {MOST_ALIASES} aliases ({_format((hostname, *path, name))})")
        path.append(name)
        claim = answering(name)
        if claim is not None:
            return Chain(tuple(path), claim)
        name = own(name)
    return Chain(tuple(path))


def claim_like(claim: Claim, hostname: str, origin: Origin, *, alias: str) -> Claim:
    """A claim of an alias that is answered as this claim is, in the right of the one who chose its target.

    As an annotated one it needs the right of its own namespace, too. The addresses of a static name are the operator's
    choice for that name alone, so they count as a target of the alias.
    """
    its = claim.terms
    target = ",".join(its.addresses) or its.target
    target_from = "" if its.addresses or target is None else its.target_from or claim.origin.namespace
    terms = replace(
        its,
        addresses=(),
        target=target,
        routed=True,
        annotated=True,
        since="",
        target_from="" if target_from == origin.namespace else target_from,
        declared=(alias,),
    )
    return Claim(hostname, reach_in_dns(hostname), origin, share_terms(terms))


def _format(names: tuple[str, ...]) -> str:
    return " -> ".join(names)
