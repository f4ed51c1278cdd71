"""An index of many rows: sorted, in blocks whose texts are searched.

The law: pure. The first search sorts the rows and makes their texts, once for all searches, in steps of less than a
millisecond each; sorting 100,000 names in one go would block all other tasks for 80 ms. After a change only the
affected blocks are made again.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from sidecar.admin.page.window import Block, Matches, Place, Window, Words, number_of

_RUN: Final = 1_000
"""Keys sorted in one step."""
_BLOCK: Final = 400
"""Rows whose text is made or searched in one step."""
_SEARCHES: Final = 16
"""Searches whose counts are kept, a few kilobytes each."""
_ATTEMPTS: Final = 3
"""Attempts to walk through rows that may change, before they are copied."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The source of rows; their keys are unique."""

    live: Callable[[], Iterable[str]]
    """The keys in any order; a change during the iteration raises RuntimeError."""
    copy: Callable[[], Iterable[str]]
    """A copy of the keys, which does not change."""
    texts: Callable[[str, bool], Iterable[str]]
    """The texts of a key's row; a search matches any part of any of them. The flag is Words.whole."""


class Index:
    """The rows at the time of the first search; they are sorted and made into texts only when a search needs them."""

    def __init__(self, rows: Rows, *, block: int = _BLOCK) -> None:
        self._rows = rows
        self._block = block
        self._blocks: list[Block] = []
        self._counts: dict[Words, Sequence[int]] = {}
        self._sorted = False
        self._sorting = self._sort()

    def find(self, words: Words, place: Place, *, size: int) -> Generator[None, None, Window]:
        """One page of the rows that contain the words, in steps; any number of searches may run at the same time."""
        while not self._sorted:
            next(self._sorting)
            yield
        counts = self._counts.get(words) or (yield from self._count(words))
        matches = Matches(self._blocks, counts, words)
        if place.before:
            end = matches.before(place.before)
            begin = max(0, end - size)
        else:
            begin = matches.up_to(place.after)
            end = begin + size
        keys: list[str] = []
        for part in matches.between(begin, end):
            keys += part
            yield
        return Window(tuple(keys), begin, sum(counts))

    def after(self, changed: Mapping[str, bool]) -> Index:
        """A new index after some keys were added, removed or got other texts; this one must be sorted, and stays.

        `changed` maps each such key to whether it exists now. The new index shares the unaffected blocks.
        """
        new = Index(self._rows, block=self._block)
        new._sorting = new._change(self._blocks, changed)
        return new

    @property
    def size(self) -> int | None:
        """The number of rows; None until they are sorted."""
        return sum(len(block.keys) for block in self._blocks) if self._sorted else None

    def _count(self, words: Words) -> Generator[None, None, Sequence[int]]:
        """The number of matching rows in each block; the further pages of a search do not count again."""
        counts = []
        for block in self._blocks:
            counts.append(block.count(words, self._rows.texts))
            yield
        if len(self._counts) >= _SEARCHES:
            self._counts.pop(next(iter(self._counts)))
        self._counts[words] = counts
        return counts

    def _sort(self) -> Iterator[None]:
        """Fill the blocks."""
        runs = yield from _read_runs(self._rows)
        merged = heapq.merge(*runs)
        while keys := tuple(islice(merged, self._block)):
            self._blocks.append(Block(keys))
            yield
        self._sorted = True
        yield

    def _change(self, blocks: Sequence[Block], changed: Mapping[str, bool]) -> Iterator[None]:
        """Fill the blocks from those of another index."""
        by_number: dict[int, list[str]] = {}
        for key in changed:
            by_number.setdefault(max(0, number_of(blocks, key)), []).append(key)
        for number, block in enumerate(blocks or (Block(()),)):
            if number not in by_number:
                self._blocks += [block] if block.keys else []
                continue
            keys = {*block.keys, *by_number[number]}.difference(key for key in by_number[number] if not changed[key])
            self._blocks += self._made_of(sorted(keys))
            yield
        self._sorted = True
        yield

    def _made_of(self, keys: Sequence[str]) -> Iterator[Block]:
        """Blocks of limited size; none without keys."""
        size = self._block if len(keys) > 2 * self._block else len(keys)
        return (Block(tuple(keys[begin : begin + size])) for begin in range(0, len(keys), size or 1))


def _read_runs(rows: Rows) -> Generator[None, None, list[list[str]]]:
    """All keys, in sorted parts."""
    for _ in range(_ATTEMPTS):
        try:
            return (yield from _sorted_parts(rows.live()))
        except RuntimeError:
            # The keys have changed meanwhile, which is rare: start again.
            yield
    return (yield from _sorted_parts(rows.copy()))


def _sorted_parts(keys: Iterable[str]) -> Generator[None, None, list[list[str]]]:
    parts: list[list[str]] = []
    rest = iter(keys)
    while part := sorted(islice(rest, _RUN)):
        parts.append(part)
        yield
    return parts
