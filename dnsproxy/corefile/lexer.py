r"""Tokens of a Corefile: every word with its exact characters and those before it.

The law: joining the tokens of `lex` gives the same text again, character by character, for any text. No text is refused
here: CoreDNS's own lexer has no errors either.

CoreDNS splits words as follows (github.com/coredns/caddy, caddyfile/lexer.go). Its oddities are kept, because a file
has to mean the same here and there:

- Blanks end a word, except CR, which is dropped everywhere: `fo\ro` is the word `foo`.
- `#` begins a comment. Before a word the comment lasts to the end of the line; inside a word only to the next blank, so
  `errors#see the manual` is the three words `errors`, `the` and `manual`.
- `"` opens a quoted word only at the beginning of a word. The word ends at the next `"` without a backslash before it,
  even many lines later, or at the end of the file. A backslash escapes only a quote.
- A quoted brace is still a brace: quotes change the end of a word, never its meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# The blanks of Go's unicode.IsSpace; Python's isspace() would add U+001C to U+001F.
_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_ENDS = _BLANKS.replace("\r", "")

_TRIVIA = re.compile(rf"(?:[{_BLANKS}]+|#[^\n]*)*")
_BARE = re.compile(rf"[^{_BLANKS}#\"](?:\r*[^{_ENDS}\r])*")
_QUOTED = re.compile(r'"((?:[^"\\]+|\\(?:.|\Z))*)("|\Z)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)
_COMMENT = re.compile(r"#[^\n]*")

BYTE_ORDER_MARK = "\ufeff"
"""CoreDNS drops it at the start of a file; anywhere else it is part of a word."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word, as CoreDNS reads it and as the file has it."""

    before: str
    """Blanks and comments between the previous word and this one."""
    raw: str
    """The word as written, with quotes, backslashes and an attached comment."""
    text: str
    """The word as CoreDNS reads it."""
    line: int
    """Of its first character, from 1."""

    @property
    def last_line(self) -> int:
        """The line of its end: a quoted word may span several lines."""
        return self.line + self.text.count("\n")


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment that is not attached to a word."""

    text: str
    """From its `#` to the line end, without LF or CRLF."""
    start: int
    """Its offset in the characters before a word."""
    end: int
    """The offset after its line end."""
    line: int


def lex(text: str) -> tuple[tuple[Token, ...], str]:
    """The words of a text, and the characters after the last word."""
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
    """The text of these words."""
    return "".join([part for token in tokens for part in (token.before, token.raw)]) + tail


def comments(before: str, *, line: int) -> list[Comment]:
    """The comments in the characters before a word; `line` is the line of the first of these characters."""
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
    """The characters of the word at a position, and the word they mean; None at the end of the text."""
    if position == len(text):
        return None
    if quoted := _QUOTED.match(text, position):
        word = _ESCAPED.sub(_unescape, quoted[1])
        # CoreDNS makes no word of a lone quote at the very end.
        return (quoted[0], word) if quoted[2] or word else None
    bare = _BARE.match(text, position)
    if bare is None:
        raise AssertionError(f"no word at {position}")
    return bare[0], bare[0].partition("#")[0].replace("\r", "")


def _unescape(match: re.Match[str]) -> str:
    return match[1] if match[1] in ('"', "") else match[0]
