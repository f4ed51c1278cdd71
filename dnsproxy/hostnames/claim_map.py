"""A map from texts to claims; nearly every text has exactly one claim.

The law: a single claim is stored without a tuple. 100,000 tuples would take six megabytes, and the garbage collector
would walk through the whole map: 20 ms in which no query is answered.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView

from dnsproxy.hostnames.claims import Claim


class ClaimMap:
    """Keys are hostnames, or objects of one source; a key without claims is not in the map."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[str, Claim | tuple[Claim, ...]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: str) -> tuple[Claim, ...]:
        """The claims of a key, in the order in which they were added."""
        found = self._rows.get(key, ())
        return found if isinstance(found, tuple) else (found,)

    def put(self, key: str, claims: tuple[Claim, ...]) -> None:
        """Set the claims of a key; an empty tuple removes the key."""
        if claims:
            self._rows[key] = claims if len(claims) > 1 else claims[0]
        else:
            self._rows.pop(key, None)

    def keys(self) -> KeysView[str]:
        """A copy of all keys, which may be iterated while the map changes."""
        # Not a list, for the same reason; and copying the whole map is five times as fast as building a dict of keys.
        return self._rows.copy().keys()

    def __iter__(self) -> Iterator[str]:
        """All keys, without a copy; a change during the iteration raises RuntimeError."""
        return iter(self._rows)

    def claims(self) -> Iterator[Claim]:
        """Every claim; the map must not change during the iteration."""
        for found in self._rows.values():
            if isinstance(found, tuple):
                yield from found
            else:
                yield found
