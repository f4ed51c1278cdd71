"""The claim sink: where a source puts the claims of its objects: a ClaimStore, or the NameShares before one.

The law: a source knows nothing else of what becomes of its claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from dnsproxy.hostnames.claims import Claim, Rejection


class ClaimSink(Protocol):
    """Takes claims and rejections under (source, key)."""

    def replace(
        self, source: str, key: str, claims: Sequence[Claim], rejections: Sequence[Rejection] = ()
    ) -> frozenset[str]:
        """Replace the claims of an object; no claims remove it. Returns the hostnames whose claims changed."""
        ...

    def is_left_out(self, source: str, key: str) -> bool:
        """Whether nothing is kept of the object's claims, so that the source has to report it when there is room."""
        ...

    def restored(self, source: str) -> int:
        """How many objects of a source are known only from a snapshot."""
        ...

    def forget_restored(self, source: str) -> Iterator[frozenset[str]]:
        """Remove restored objects that the source did not report; yields the hostnames whose claims changed."""
        ...
