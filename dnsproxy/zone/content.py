"""The content of one zone, its journal of changes, and its octets in pieces of about one message.

The law: pure; put() and commit() make the next version, and nothing else does. A put costs the same for every size of
the zone. The pieces of a version never change: a transfer that holds them sends that version whole.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from dnsproxy.zone.serials import is_newer
from dnsproxy.zone.zone_records import row_count, row_records, split_row

PIECE: Final = 12 << 10
"""Octets of a piece, on average; one is made anew in a third of a millisecond after a change in it."""
MOST_STEPS: Final = 10_000
"""Versions in the journal."""
_LEAST_KEYS: Final = 1_000
"""Changed keys that the journal may have of a small zone; of a large one, half of its keys."""


class Piece(NamedTuple):
    """Some records of a zone."""

    records: int
    octets: bytes


class Step(NamedTuple):
    """What one version changed."""

    serial: int
    """Of the version before."""
    before: dict[bytes, bytes | None]
    """The rows of that version, by key; None for a new key."""


class Difference(NamedTuple):
    """What separates two versions, condensed (RFC 1995 section 5)."""

    deleted: tuple[Piece, ...]
    added: tuple[Piece, ...]

    @property
    def size(self) -> int:
        """Octets."""
        return sum(len(piece.octets) for piece in (*self.deleted, *self.added))


class ZoneContent:
    """Rows by key, as of zone_records.join_row; `serial` is that of the last commit."""

    def __init__(self, *, serial: int = 0) -> None:
        self.serial = serial
        self.octets = 0
        """Octets of all rows."""
        self._buckets: list[dict[bytes, bytes]] = [{}]
        """By the hash of the key; one after another is split while the zone grows (linear hashing)."""
        self._pieces: list[tuple[Piece, ...] | None] = [None]
        self._level = 1
        self._split = 0
        self._length = 0
        self._before: dict[bytes, bytes | None] = {}
        self._journal: deque[Step] = deque()
        self._journal_keys = 0

    def __len__(self) -> int:
        return self._length

    def get(self, key: bytes) -> bytes | None:
        """The row of a key."""
        return self._buckets[self._bucket_of(key)].get(key)

    def keys(self) -> Iterator[bytes]:
        """A copy of the keys, one bucket at a time."""
        for bucket in list(self._buckets):
            yield from list(bucket)

    @property
    def is_changed(self) -> bool:
        """Whether the next commit makes another version."""
        return bool(self._before)

    def put(self, key: bytes, row: bytes | None) -> None:
        """Set the row of a key, or remove it."""
        number = self._bucket_of(key)
        bucket = self._buckets[number]
        before = bucket.get(key)
        if before == row:
            return
        self._note(key, before, row)
        self._pieces[number] = None
        self.octets += len(row or b"") - len(before or b"")
        self._length += (row is not None) - (before is not None)
        if row is None:
            del bucket[key]
        else:
            bucket[key] = row
        if self.octets > len(self._buckets) * PIECE:
            self._grow()

    def commit(self, serial: int) -> None:
        """Make the current rows the version with this serial, which must be newer."""
        if self.serial and not is_newer(serial, self.serial):
            raise ValueError(f"serial {serial} does not come after {self.serial}")
        if self.serial:
            self._journal.append(Step(self.serial, self._before))
            self._journal_keys += len(self._before)
        self.serial, self._before = serial, {}
        most = max(_LEAST_KEYS, self._length // 2)
        while self._journal and (self._journal_keys > most or len(self._journal) > MOST_STEPS):
            self._journal_keys -= len(self._journal.popleft().before)

    def forget(self) -> None:
        """Empty the journal: the versions before are of another line, whose serials mean other contents."""
        self._journal.clear()
        self._journal_keys = 0

    def pieces(self) -> Generator[None, None, tuple[Piece, ...]]:
        """All records of the current rows, in steps of one piece; rows must not change in between."""
        for number, known in enumerate(self._pieces):
            if known is None:
                self._pieces[number] = tuple(_join(iter(self._buckets[number].values())))
                yield
        return tuple(piece for found in self._pieces for piece in found or ())

    def difference(self, serial: int) -> Generator[None, None, Difference | None]:
        """What changed since a serial, in steps; None if the journal does not reach back. No put may come between."""
        if serial == self.serial:
            return Difference((), ())
        steps = []
        for step in reversed(self._journal):
            steps.append(step)
            if step.serial == serial:
                break
        else:
            return None
        before: dict[bytes, bytes | None] = {}
        for step in steps:
            before.update(step.before)  # from the newest to the oldest: what the oldest says, counts
            yield
        deleted: list[bytes] = []
        added: list[bytes] = []
        for key, old in before.items():
            row = self.get(key)
            if row != old:
                gone, new = _compare(old, row)
                deleted += gone
                added += new
            yield
        return Difference(tuple(_pack(deleted)), tuple(_pack(added)))

    def _note(self, key: bytes, before: bytes | None, row: bytes | None) -> None:
        if key not in self._before:
            self._before[key] = before
        elif self._before[key] == row:
            del self._before[key]

    def _bucket_of(self, key: bytes) -> int:
        hashed = zlib.crc32(key)
        number = hashed % self._level
        return number if number >= self._split else hashed % (2 * self._level)

    def _grow(self) -> None:
        """Split one bucket in two."""
        old = self._buckets[self._split]
        mask = 2 * self._level
        first: dict[bytes, bytes] = {}
        second: dict[bytes, bytes] = {}
        for key, row in old.items():
            (first if zlib.crc32(key) % mask == self._split else second)[key] = row
        self._buckets[self._split] = first
        self._pieces[self._split] = None
        self._buckets.append(second)
        self._pieces.append(None)
        self._split += 1
        if self._split == self._level:
            self._level, self._split = mask, 0


def _compare(old: bytes | None, new: bytes | None) -> tuple[list[bytes], list[bytes]]:
    """The records that only the one and that only the other row has."""
    before = list(split_row(old)) if old else []
    after = list(split_row(new)) if new else []
    # A name may have thousands of addresses.
    gone, come = frozenset(before).difference(after), frozenset(after).difference(before)
    return [one for one in before if one in gone], [one for one in after if one in come]


def _join(rows: Iterator[bytes]) -> Iterator[Piece]:
    """Pieces of whole rows; a row that is larger than a message is divided between its records."""
    found: list[bytes] = []
    count = size = 0
    for row in rows:
        octets = row_records(row)
        if len(octets) > PIECE:
            yield from _pack(list(split_row(row)))
            continue
        if size + len(octets) > 2 * PIECE:
            yield Piece(count, b"".join(found))
            found, count, size = [], 0, 0
        found.append(octets)
        count += row_count(row)
        size += len(octets)
    if found:
        yield Piece(count, b"".join(found))


def _pack(records: list[bytes]) -> Iterator[Piece]:
    found: list[bytes] = []
    size = 0
    for record in records:
        if found and size + len(record) > 2 * PIECE:
            yield Piece(len(found), b"".join(found))
            found, size = [], 0
        found.append(record)
        size += len(record)
    if found:
        yield Piece(len(found), b"".join(found))
