"""A map from texts to claims, of which nearly every text has one.

The law: a claim that is alone is kept as it is. A tuple around each of 100,000 would take six megabytes, and for their
sake the garbage collector would walk through the whole map: 20 ms in which nobody is answered.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView

from dnsproxy.hostnames.claims import Claim


class ClaimMap:
    """Keys are hostnames, or objects of one source; one without claims is not in it."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[str, Claim | tuple[Claim, ...]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: str) -> tuple[Claim, ...]:
        """The claims of a key, in the order in which they were put."""
        found = self._rows.get(key, ())
        return found if isinstance(found, tuple) else (found,)

    def put(self, key: str, claims: tuple[Claim, ...]) -> None:
        """Set the claims of a key; none take it out."""
        if claims:
            self._rows[key] = claims if len(claims) > 1 else claims[0]
        else:
            self._rows.pop(key, None)

    def keys(self) -> KeysView[str]:
        """All keys there are now: to walk through while the map changes."""
        # No list, for the same reason; and a copy of the whole map is made five times as fast as a dict of the keys.
        return self._rows.copy().keys()

    def __iter__(self) -> Iterator[str]:
        """All keys, without a copy: a change meanwhile is a RuntimeError."""
        return iter(self._rows)

    def claims(self) -> Iterator[Claim]:
        """Every claim; the map must not change meanwhile."""
        for found in self._rows.values():
            if isinstance(found, tuple):
                yield from found
            else:
                yield found
