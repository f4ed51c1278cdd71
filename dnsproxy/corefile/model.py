"""A Corefile as a value: its exact words, and the server blocks, directives and imports that they form.

The law: `format_corefile(parse_corefile(text)) == text` for every accepted text (parser.py); a text that CoreDNS's
parser refuses raises CorefileError. Positions are indexes of words, never offsets in the text; an edit (edits.py)
returns a new value. Tested in test_parser.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Final

from dnsproxy.corefile.lexer import Comment, Token, comments, join
from dnsproxy.corefile.zones import Origin
from sidecar.values.text import cut

_SHOWN_CHARACTERS: Final = 60
_LONGEST: Final = 1000
"""Characters of a message: a word may have as many as a ConfigMap."""
_LISTED: Final = 5


class CorefileError(ValueError):
    """A Corefile that cannot be parsed, or must not be changed."""

    def __init__(self, line: int, reason: str, remedy: str = "") -> None:
        reason, remedy = cut(reason, _LONGEST), cut(remedy, _LONGEST)
        super().__init__(f"{reason}; {remedy}" if remedy else reason)
        self.line = line
        """From 1."""
        self.reason = reason
        self.remedy = remedy
        """What to do about it; empty if the reason says it."""


class Scope(Enum):
    """What a text is a part of."""

    BLOCKS = "server blocks"
    """Whole server blocks: a Corefile, or a file imported between them, such as `*.server`."""
    ROOT_PLUGINS = "plugins of the root"
    """Plugins inside the server block of `.`: a file imported there, such as `*.override`."""
    OTHER = "plugins of another zone"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a server block: a zone that it serves."""

    text: str
    """Without a comma after it."""
    origin: Origin
    token: Token
    index: int


@dataclass(frozen=True, slots=True)
class Import:
    """An `import` of files; their content is not known here."""

    pattern: str
    line: int
    index: int


@dataclass(frozen=True, slots=True)
class Directive:
    """One plugin's line with its nested block, imported snippets expanded."""

    name: str
    words: tuple[Token, ...]
    """Everything after the name, including braces."""
    line: int
    index: int
    """Of its name, or of the `import` of the snippet that contains it."""
    imported: bool = False
    unread: tuple[Import, ...] = ()
    """Imports of files inside its nested block."""

    @property
    def arguments(self) -> tuple[Token, ...]:
        """The words before the nested block."""
        return self.words[: self._opening]

    @property
    def options(self) -> tuple[Token, ...]:
        """The words inside the nested block, without its braces."""
        return self.words[self._opening + 1 : -1]

    @property
    def option_lines(self) -> tuple[list[str], ...]:
        """The same as texts, line by line."""
        return tuple([word.text for word in line] for _, line in groupby(self.options, key=lambda word: word.line))

    @property
    def _opening(self) -> int:
        return next((at for at, word in enumerate(self.words) if word.text == "{"), len(self.words))


@dataclass(frozen=True, slots=True)
class ServerBlock:
    """A server block: its keys and its directives."""

    keys: tuple[Key, ...]
    directives: tuple[Directive, ...]
    """In the order of the file, imported snippets in their places."""
    imports: tuple[Import, ...]
    """Of files, between the directives."""
    closing: int | None
    """The index of its closing brace; None if the file ends before it."""
    imported: bool = False
    """Whether it comes from a snippet."""

    @property
    def line(self) -> int:
        """Of its first key."""
        return self.keys[0].token.line

    @property
    def entries(self) -> list[Directive | Import]:
        """The directives and imports, in the order of the file."""
        return sorted((*self.directives, *self.imports), key=lambda one: one.index)

    def named(self, name: str) -> list[Directive]:
        """The directives of one plugin, in order."""
        return [directive for directive in self.directives if directive.name == name]


@dataclass(frozen=True, slots=True)
class Snippet:
    """`(name) { ... }`: the words that replace an import of that name."""

    name: str
    words: tuple[Token, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Corefile:
    """A whole file."""

    tokens: tuple[Token, ...]
    tail: str
    """The characters after the last word."""
    blocks: tuple[ServerBlock, ...]
    snippets: tuple[Snippet, ...] = ()
    imports: tuple[Import, ...] = ()
    """Of files, between the server blocks."""

    def gap(self, index: int) -> str:
        """The characters before the word of that index; after the last word for the next index."""
        return self.tokens[index].before if index < len(self.tokens) else self.tail

    def comments(self) -> list[tuple[int, Comment]]:
        """Every comment that is not attached to a word, with the index of the word after it."""
        lines = [1, *(token.last_line for token in self.tokens)]
        return [(at, found) for at, line in enumerate(lines) for found in comments(self.gap(at), line=line)]


def shown(text: str) -> str:
    """A word for a message: quoted, and shortened if it is very long."""
    return repr(cut(text, _SHOWN_CHARACTERS))


def listed(values: Sequence[object]) -> str:
    """The first few values for a message, and the number of the others."""
    more = len(values) - _LISTED
    return ", ".join(cut(str(one), _LONGEST) for one in values[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def format_corefile(corefile: Corefile) -> str:
    """The text of a Corefile, exactly as it was read."""
    return join(corefile.tokens, corefile.tail)
