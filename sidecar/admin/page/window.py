"""A window on many rows: those that contain the words of a search, sorted, one page at a time.

The law: pure; Python code runs only for the page that is shown, and in a few calls per block of rows: the C loops of
str search the words in one text per block.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import contains


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a page of sorted rows: after a key, or before one; without either, at the start."""

    after: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """One page of rows by their keys, in order, and the number of rows around it."""

    keys: tuple[str, ...]
    earlier: int
    """Matching rows before these."""
    total: int
    """All matching rows."""

    @property
    def later(self) -> int:
        """Matching rows after these."""
        return self.total - self.earlier - len(self.keys)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a search: in lower case, with one blank between two words and none around them (str.split)."""

    text: str
    whole: bool = False
    """Which texts of a row are searched: passed to `Rows.texts`."""


class Block:
    """Consecutive rows."""

    __slots__ = ("_texts", "keys")

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        self._texts: dict[bool, str] = {}

    def count(self, words: Words, texts: Callable[[str, bool], Iterable[str]]) -> int:
        """The number of rows that contain the words."""
        if not words.text:
            return len(self.keys)
        if words.whole not in self._texts:
            self._texts[words.whole] = _join(texts(key, words.whole) for key in self.keys)
        return count_lines(self._texts[words.whole], words.text, lines=len(self.keys))

    def matching(self, words: Words) -> Sequence[str]:
        """The keys of those rows; count must have been called."""
        if not words.text:
            return self.keys
        return [self.keys[number] for number in find_lines(self._texts[words.whole], words.text)]


@dataclass(frozen=True, slots=True)
class Matches:
    """The rows that contain the words, as if they were one list."""

    blocks: Sequence[Block]
    counts: Sequence[int]
    words: Words

    def up_to(self, key: str) -> int:
        """The number of rows up to a key, including it."""
        return self._rank(key, bisect_right)

    def before(self, key: str) -> int:
        """The number of rows before a key."""
        return self._rank(key, bisect_left)

    def between(self, begin: int, end: int) -> Iterator[Sequence[str]]:
        """The rows from number `begin` up to but not including `end`, from 0, block by block."""
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
    """The number of the block that has a key, or would have it; -1 if the key is before all blocks."""
    return bisect_right(blocks, key, key=lambda block: block.keys[0]) - 1


def count_lines(text: str, words: str, *, lines: int) -> int:
    """The number of lines of a text that contain the words, which have no line break."""
    # With fewer pieces than lines it is cheaper to look for a line break in each piece than for the words in each line:
    # nearly all searches are for rare words.
    pieces = text.split(words, lines)
    if len(pieces) > lines:
        return sum(map(contains, text.split("\n"), repeat(words)))
    return 1 + sum(map(contains, pieces[1:-1], repeat("\n"))) if len(pieces) > 1 else 0


def find_lines(text: str, words: str) -> Iterator[int]:
    """The numbers of those lines, from 0."""
    number = place = 0
    while place >= 0 and (found := text.find(words, place)) >= 0:
        number += text.count("\n", place, found)
        yield number
        place = text.find("\n", found)


def _join(rows: Iterable[Iterable[str]]) -> str:
    """One line per row. Words have no tab and no line break, so a match is within one text of one row."""
    lines = ["\t".join(texts) for texts in rows]
    text = "\n".join(lines)
    if text.count("\n") >= len(lines):
        text = "\n".join(line.replace("\n", "\t") for line in lines)
    return text
