"""What an object that names no class contributes: kept, because the class that it then gets may change.

The law: pure values that the garbage collector does not track. There can be 100,000, and it would walk through all of
them again and again while a list is read: 10 to 20 ms in which no query is answered.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dnsproxy.hostnames.claims import Claim, Rejection, with_terms


class Classless(msgspec.Struct, frozen=True, gc=False):
    """Claims without a class, and rejections."""

    claims: tuple[Claim, ...]
    rejections: tuple[Rejection, ...]

    def with_class(self, name: str | None) -> tuple[Sequence[Claim], Sequence[Rejection]]:
        """The same with a class; None: there is none."""
        claims = [with_terms(claim, ingress_class=name) for claim in self.claims] if name else self.claims
        return claims, self.rejections
