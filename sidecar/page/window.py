"""A window on many rows: those that have the words of a search, sorted, a page of them at a time.

The law: pure; what it costs Python is the page that is shown, and a few calls for each block of rows: words are looked
for by the C loops of str, in one text of all that a block's rows are found by. Rows are sorted and texts are made once,
in steps that each take less than a millisecond, by whoever asks first, for all who ask. Sorting 100,000 names at once
would hold up everything else for 80 ms.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from operator import contains
from typing import Final

_RUN: Final = 1_000
"""Keys sorted in one step."""
_BLOCK: Final = 400
"""Rows whose text is made, or looked through, in one step."""
_SEARCHES: Final = 16
"""Whose counts are kept, some kilobytes each."""
_TRIES: Final = 3
"""Walks through rows that may change, before a copy of them is made."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page of sorted rows is: behind a key, or before one; with neither, at the start."""

    after: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """Some rows by their keys, in order, and how many there are around them."""

    keys: tuple[str, ...]
    earlier: int
    """Rows that match and come before these."""
    total: int
    """Rows that match."""

    @property
    def later(self) -> int:
        """Rows that match and come after these."""
        return self.total - self.earlier - len(self.keys)


@dataclass(frozen=True, slots=True)
class Words:
    """What is looked for: in lower case, one blank between two words and none around them (str.split)."""

    text: str
    whole: bool = False
    """Whether it is looked for in other texts of a row than a single word is."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Where rows come from; their keys differ."""

    live: Callable[[], Iterable[str]]
    """The keys in any order; a change while they are walked through is a RuntimeError."""
    copy: Callable[[], Iterable[str]]
    """The same, which nothing changes any more."""
    texts: Callable[[str, bool], Iterable[str]]
    """The texts in which a key's row is found, by any part of any of them; the flag is that of Words."""


class Index:
    """Rows as they were when somebody first asked; what makes them is done as far as it is asked for."""

    def __init__(self, rows: Rows, *, block: int = _BLOCK) -> None:
        self._rows = rows
        self._block = block
        self._blocks: list[_Block] = []
        self._counts: dict[Words, Sequence[int]] = {}
        self._sorted = False
        self._sorting = self._sort()

    def find(self, words: Words, place: Place, *, size: int) -> Generator[None, None, Window]:
        """The page of the rows that have the words, in steps; any number may be under way at the same time."""
        while not self._sorted:
            next(self._sorting)
            yield
        counts = self._counts.get(words) or (yield from self._count(words))
        matches = _Matches(self._blocks, counts, words)
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

    @property
    def size(self) -> int | None:
        """How many rows there are; None until they are sorted."""
        return sum(len(block.keys) for block in self._blocks) if self._sorted else None

    def _count(self, words: Words) -> Generator[None, None, Sequence[int]]:
        """How many rows of each block have the words; whoever turns the pages of a search need not count again."""
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
            self._blocks.append(_Block(keys))
            yield
        self._sorted = True
        yield


class _Block:
    """Rows that follow each other."""

    __slots__ = ("_texts", "keys")

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        self._texts: dict[bool, str] = {}

    def count(self, words: Words, texts: Callable[[str, bool], Iterable[str]]) -> int:
        """How many rows have the words."""
        if not words.text:
            return len(self.keys)
        if words.whole not in self._texts:
            self._texts[words.whole] = _join(texts(key, words.whole) for key in self.keys)
        return count_lines(self._texts[words.whole], words.text, lines=len(self.keys))

    def matching(self, words: Words) -> Sequence[str]:
        """The keys of those rows, once they have been counted."""
        if not words.text:
            return self.keys
        return [self.keys[number] for number in find_lines(self._texts[words.whole], words.text)]


@dataclass(frozen=True, slots=True)
class _Matches:
    """The rows that have the words, as if they were one list."""

    blocks: Sequence[_Block]
    counts: Sequence[int]
    words: Words

    def up_to(self, key: str) -> int:
        """How many there are up to a key, itself among them."""
        return self._rank(key, bisect_right)

    def before(self, key: str) -> int:
        """How many there are before a key."""
        return self._rank(key, bisect_left)

    def between(self, begin: int, end: int) -> Iterator[Sequence[str]]:
        """Those with these numbers, from 0, block by block; the second not among them."""
        for block, count in zip(self.blocks, self.counts, strict=True):
            if max(0, begin) < min(count, end):
                yield block.matching(self.words)[max(0, begin) : end]
            begin, end = begin - count, end - count

    def _rank(self, key: str, bisect: Callable[[Sequence[str], str], int]) -> int:
        number = bisect_right(self.blocks, key, key=lambda block: block.keys[0]) - 1
        if number < 0:
            return 0
        return sum(self.counts[:number]) + bisect(self.blocks[number].matching(self.words), key)


def count_lines(text: str, words: str, *, lines: int) -> int:
    """How many of the lines of a text have the words, which have no line break in them."""
    # Up to as many pieces as there are lines it is cheaper to ask each piece for its line break than each line for the
    # words: nearly all searches are for what is rare.
    pieces = text.split(words, lines)
    if len(pieces) > lines:
        return sum(map(contains, text.split("\n"), repeat(words)))
    return 1 + sum(map(contains, pieces[1:-1], repeat("\n"))) if len(pieces) > 1 else 0


def find_lines(text: str, words: str) -> Iterator[int]:
    """Which of the lines those are, from 0."""
    number = place = 0
    while place >= 0 and (found := text.find(words, place)) >= 0:
        number += text.count("\n", place, found)
        yield number
        place = text.find("\n", found)


def _join(rows: Iterable[Iterable[str]]) -> str:
    """A line for each row. Words have no tab and no line break in them, so they are found in one text of one row."""
    lines = ["\t".join(texts) for texts in rows]
    text = "\n".join(lines)
    if text.count("\n") >= len(lines):
        text = "\n".join(line.replace("\n", "\t") for line in lines)
    return text


def _read_runs(rows: Rows) -> Generator[None, None, list[list[str]]]:
    """All keys, in sorted parts."""
    for _ in range(_TRIES):
        try:
            return (yield from _sorted_parts(rows.live()))
        except RuntimeError:
            # They have changed meanwhile, and mostly stand still: once more, from the start.
            yield
    return (yield from _sorted_parts(rows.copy()))


def _sorted_parts(keys: Iterable[str]) -> Generator[None, None, list[list[str]]]:
    parts: list[list[str]] = []
    rest = iter(keys)
    while part := sorted(islice(rest, _RUN)):
        parts.append(part)
        yield
    return parts
