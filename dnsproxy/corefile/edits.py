"""Edits of a Corefile: each takes the value and gives a new one, read again from its own text.

The law: an edit touches only the place that it names; every other character stays. Since the result is read again, no
edit can give a Corefile that CoreDNS's parser refuses. Pure.
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
    """Of the word behind it; one more than the last where none is."""
    offset: int
    """Characters into what stands before that word."""


def insert_before(corefile: Corefile, index: int, text: str) -> Corefile:
    """The Corefile with a text put right in front of a word; the text ends in a blank or a line end."""
    token = corefile.tokens[index]
    return _changed(corefile, index, replace(token, before=token.before + text))


def replace_word(corefile: Corefile, index: int, raw: str) -> Corefile:
    """The Corefile with one word written differently."""
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
