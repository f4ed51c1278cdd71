"""The Corefile as a value: its exact words, and the server blocks, directives and imports that they form.

The law: `format_corefile(parse_corefile(text)) == text` for every text that is accepted (parser.py), and a text that
CoreDNS's parser refuses is refused with a CorefileError. Positions are indexes into the words, never offsets into the
text, and edits (edits.py) give a new value. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dnsproxy.corefile.lexer import Comment, Token, comments, join
from dnsproxy.corefile.zones import Origin

_SHOWN_CHARACTERS: Final = 60
_LISTED: Final = 5


class CorefileError(ValueError):
    """A Corefile that cannot be read or must not be changed."""

    def __init__(self, line: int, reason: str, remedy: str = "") -> None:
        super().__init__(f"{reason}; {remedy}" if remedy else reason)
        self.line = line
        """Where, from 1."""
        self.reason = reason
        self.remedy = remedy
        """What to do about it; empty where the reason says it."""


class Scope(Enum):
    """What a text is a part of."""

    BLOCKS = "server blocks"
    """Whole server blocks: a Corefile, or a file imported between them, such as `*.server`."""
    ROOT_PLUGINS = "plugins of the root"
    """Plugins inside the server block of `.`: a file imported there, such as `*.override`."""
    OTHER = "plugins of another zone"


@dataclass(frozen=True, slots=True)
class Key:
    """One of the names that a server block serves."""

    text: str
    """Without the comma that may follow it."""
    origin: Origin
    token: Token
    index: int


@dataclass(frozen=True, slots=True)
class Import:
    """An `import` whose files stand elsewhere: nothing of them is known here."""

    pattern: str
    line: int
    index: int


@dataclass(frozen=True, slots=True)
class Directive:
    """One plugin's line with the nested block that may follow, the snippets it imports put in."""

    name: str
    words: tuple[Token, ...]
    """Everything behind the name, braces included."""
    line: int
    index: int
    """Of its name; of the `import` in the server block that brought it, where a snippet did."""
    imported: bool = False
    unread: tuple[Import, ...] = ()
    """Imports inside its nested block."""

    @property
    def arguments(self) -> tuple[Token, ...]:
        """The words in front of the nested block."""
        return self.words[: self._opening]

    @property
    def options(self) -> tuple[Token, ...]:
        """The words inside the nested block, without its braces."""
        return self.words[self._opening + 1 : -1]

    @property
    def _opening(self) -> int:
        return next((at for at, word in enumerate(self.words) if word.text == "{"), len(self.words))


@dataclass(frozen=True, slots=True)
class ServerBlock:
    """The keys that are served together, and how."""

    keys: tuple[Key, ...]
    directives: tuple[Directive, ...]
    """In the order in which CoreDNS reads them."""
    imports: tuple[Import, ...]
    """Of files, between the directives."""
    closing: int | None
    """The index of its closing brace; None where the file ends first."""
    imported: bool = False
    """Whether a snippet brought it."""

    @property
    def line(self) -> int:
        """Where its first key stands."""
        return self.keys[0].token.line

    def named(self, name: str) -> list[Directive]:
        """The directives of one plugin, in order."""
        return [directive for directive in self.directives if directive.name == name]


@dataclass(frozen=True, slots=True)
class Snippet:
    """`(name) { ... }`: words that an import of that name puts in its place."""

    name: str
    words: tuple[Token, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Corefile:
    """A whole file."""

    tokens: tuple[Token, ...]
    tail: str
    """What follows the last word."""
    blocks: tuple[ServerBlock, ...]
    snippets: tuple[Snippet, ...] = ()
    imports: tuple[Import, ...] = ()
    """Of files, between the server blocks."""

    def gap(self, index: int) -> str:
        """The characters before the word of that index; behind the last one for the index after it."""
        return self.tokens[index].before if index < len(self.tokens) else self.tail

    def comments(self) -> list[tuple[int, Comment]]:
        """Every comment that is not glued to a word, with the index of the word that it stands before."""
        lines = [1, *(token.last_line for token in self.tokens)]
        return [(at, found) for at, line in enumerate(lines) for found in comments(self.gap(at), line=line)]


def shown(text: str) -> str:
    """A word in a message: quoted, and cut where it is no word that people write."""
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")


def listed(values: Sequence[object]) -> str:
    """Some values in a message, and how many more there are."""
    more = len(values) - _LISTED
    return ", ".join(map(str, values[:_LISTED])) + (f" and {more} more" if more > 0 else "")


def format_corefile(corefile: Corefile) -> str:
    """The text of a Corefile, character by character as it was read."""
    return join(corefile.tokens, corefile.tail)
