r"""Tokens of a Corefile: every word with the exact characters that stand before it and that write it.

The law: joining what `lex` gives yields the text again, character by character, whatever the text is. No text is
refused here: CoreDNS's own lexer knows no errors either. Pure.

How CoreDNS cuts words (github.com/coredns/caddy, caddyfile/lexer.go), oddities included, because a file is read the
way CoreDNS reads it or it is not read at all:

- Blanks end a word, except CR, which is dropped wherever it stands: `fo\ro` is the word `foo`.
- `#` hides what follows. In front of a word that is the rest of the line; inside a word only up to the next blank, so
  `errors#see the manual` is the three words `errors`, `the` and `manual`.
- `"` opens a quoted word only where a word begins; it ends at the next `"` that has no backslash before it, however
  many lines later, or with the file. A backslash hides nothing but a quote.
- A quoted brace is a brace: quoting changes where a word ends, never what it means.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# What Go's unicode.IsSpace calls a blank; Python's isspace() would add U+001C to U+001F.
_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_ENDS = _BLANKS.replace("\r", "")

_TRIVIA = re.compile(rf"(?:[{_BLANKS}]+|#[^\n]*)*")
_BARE = re.compile(rf"[^{_BLANKS}#\"](?:\r*[^{_ENDS}\r])*")
_QUOTED = re.compile(r'"((?:[^"\\]+|\\(?:.|\Z))*)("|\Z)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)
_COMMENT = re.compile(r"#[^\n]*")

BYTE_ORDER_MARK = "\ufeff"
"""Dropped by CoreDNS at the start of a file, part of a word anywhere else."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word as CoreDNS sees it, and as the file has it."""

    before: str
    """Blanks and comments between the word before and this one."""
    raw: str
    """The word as written: with quotes, backslashes and a comment glued to it."""
    text: str
    """The word as CoreDNS reads it."""
    line: int
    """Where it begins, from 1."""

    @property
    def last_line(self) -> int:
        """Where it ends: a quoted word may go over several lines."""
        return self.line + self.text.count("\n")


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment that stands for itself, not glued to a word."""

    text: str
    """From its `#` to the end of its line, which is not part of it; nor is the CR of a CRLF."""
    start: int
    """Its offset in the characters before a word."""
    end: int
    """The offset behind its line end."""
    line: int


def lex(text: str) -> tuple[tuple[Token, ...], str]:
    """The words of a text, and the characters behind the last one."""
    tokens: list[Token] = []
    position, line = 0, 1
    while True:
        start = position + (position == 0 and text.startswith(BYTE_ORDER_MARK))
        begin = _end_of_trivia(text, start)
        found = _word_at(text, begin)
        if found is None:
            return tuple(tokens), text[position:]
        raw, word = found
        line += text.count("\n", position, begin)
        tokens.append(Token(text[position:begin], raw, word, line))
        line += raw.count("\n")
        position = begin + len(raw)


def join(tokens: tuple[Token, ...], tail: str) -> str:
    """The text that the words were cut from."""
    return "".join([part for token in tokens for part in (token.before, token.raw)]) + tail


def comments(before: str, *, line: int) -> list[Comment]:
    """The comments in the characters before a word; `line` is the line on which these characters begin."""
    found = []
    counted = 0
    for match in _COMMENT.finditer(before):
        line += before.count("\n", counted, match.start())
        counted = match.start()
        end = min(match.end() + 1, len(before))
        found.append(Comment(match.group().rstrip("\r"), match.start(), end, line))
    return found


def _end_of_trivia(text: str, position: int) -> int:
    match = _TRIVIA.match(text, position)
    return position if match is None else match.end()


def _word_at(text: str, position: int) -> tuple[str, str] | None:
    """What is written at a position, and the word it means; None at the end of the text."""
    if position == len(text):
        return None
    if quoted := _QUOTED.match(text, position):
        word = _ESCAPED.sub(_unescape, quoted[1])
        # A quote that opens at the very end opens nothing: CoreDNS makes no word of it.
        return (quoted[0], word) if quoted[2] or word else None
    bare = _BARE.match(text, position)
    if bare is None:
        raise AssertionError(f"no word at {position}")
    return bare[0], bare[0].partition("#")[0].replace("\r", "")


def _unescape(match: re.Match[str]) -> str:
    return match[1] if match[1] in ('"', "") else match[0]
