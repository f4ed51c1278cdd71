"""Edits of a Corefile: each takes a value and returns a new one, parsed from its own text.

The law: an edit changes only the place that it names; every other character stays. The result is parsed again, so no
edit returns a Corefile that CoreDNS's parser refuses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dnsproxy.corefile.lexer import Token, join
from dnsproxy.corefile.model import Corefile
from dnsproxy.corefile.parser import parse_corefile


@dataclass(frozen=True, slots=True)
class Place:
    """A position between two words."""

    index: int
    """Of the word after it; the number of words at the end of the file."""
    offset: int
    """In the characters before that word."""


def insert_before(corefile: Corefile, index: int, text: str) -> Corefile:
    """The Corefile with a text inserted directly before a word; the text ends with a blank or a line end."""
    token = corefile.tokens[index]
    return _changed(corefile, index, replace(token, before=token.before + text))


def replace_word(corefile: Corefile, index: int, raw: str) -> Corefile:
    """The Corefile with one word replaced; `raw` is the new word as a file has it."""
    return _changed(corefile, index, replace(corefile.tokens[index], raw=raw))


def cut(corefile: Corefile, start: Place, stop: Place) -> Corefile:
    """The Corefile without the characters from one place to another."""
    kept = corefile.gap(start.index)[: start.offset] + corefile.gap(stop.index)[stop.offset :]
    head = corefile.tokens[: start.index]
    if stop.index == len(corefile.tokens):
        return parse_corefile(join(head, kept))
    rest = (replace(corefile.tokens[stop.index], before=kept), *corefile.tokens[stop.index + 1 :])
    return parse_corefile(join((*head, *rest), corefile.tail))


def _changed(corefile: Corefile, index: int, token: Token) -> Corefile:
    tokens = (*corefile.tokens[:index], token, *corefile.tokens[index + 1 :])
    return parse_corefile(join(tokens, corefile.tail))
