"""A window on many rows: those that have the words of a search, sorted, a page of them at a time.

The law: pure; what it costs Python is the page that is shown, and a few calls for each block of rows: words are looked
for by the C loops of str, in one text of all that a block's rows are found by.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import contains


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


class Block:
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
class Matches:
    """The rows that have the words, as if they were one list."""

    blocks: Sequence[Block]
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
        number = number_of(self.blocks, key)
        if number < 0:
            return 0
        return sum(self.counts[:number]) + bisect(self.blocks[number].matching(self.words), key)


def number_of(blocks: Sequence[Block], key: str) -> int:
    """The number of the block in which a key is, or would be; -1 where it is before all of them."""
    return bisect_right(blocks, key, key=lambda block: block.keys[0]) - 1


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
