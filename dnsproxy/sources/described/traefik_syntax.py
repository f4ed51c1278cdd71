"""The syntax of Traefik's rules: from the text of a rule to its matchers and operators.

The law: pure, in linear time and without recursion, because the text is a tenant's and can have 64 KiB. A rule is a Go
expression of calls, `&&`, `||`, `!` and parentheses, in Go's tokens: strings and raw strings, comments, and a newline
that ends the expression wherever Go would insert a semicolon.
https://github.com/traefik/traefik/blob/v3.6.12/pkg/rules/parser.go https://github.com/vulcand/predicate
https://go.dev/ref/spec#Lexical_elements
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from sidecar.values.text import quoted

_BLANK: Final = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*/)*")
_TOKEN: Final = re.compile(
    r"""(?P<name>[^\W\d]\w*+)|(?P<raw>`[^`]*+`)|(?P<string>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*")|&&|\|\||\.\.\.|[!(),]"""
)
_ESCAPE: Final = re.compile(
    r"""\\(?:([abfnrtv\\"])|([0-3][0-7]{2})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|)"""
)
_LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", '"': '"'}
_REFUSED: Final = re.compile("[\0\ufeff]")
"""Characters that Go refuses in any source, even in strings; a byte order mark may be the first character."""


class BadRule(ValueError):
    """Traefik refuses the rule, and so serves nothing by it; the message has the reason."""


class Operator(Enum):
    """Joins the two values before it."""

    AND = auto()
    OR = auto()


@dataclass(frozen=True, slots=True)
class Matcher:
    """One call in a rule."""

    name: str
    """As written."""
    arguments: tuple[str, ...]
    negated: bool
    """Whether an odd number of `!` applies to it."""


Step = Matcher | Operator


class _Token(NamedTuple):
    kind: str | None
    """`name`, `raw` or `string`; None: an operator or punctuation, or with an empty text the end."""
    text: str
    position: int


def parse_steps(text: str) -> list[Step]:
    """The steps of a rule in postfix order, `!` moved to the matchers (De Morgan). Raises BadRule."""
    return _Parser(text).parse()


class _Pending(NamedTuple):
    """An operator that waits for its right side, or an open parenthesis."""

    binding: int
    """How strongly it binds: 0 for a parenthesis, 1 for `||`, 2 for `&&`."""
    operator: Operator
    """Of the step: under a negation the other one."""
    negated: bool
    """Whether a negation applies to what is outside of the parenthesis."""


class _Parser:
    """Shunting yard: https://en.wikipedia.org/wiki/Shunting_yard_algorithm."""

    def __init__(self, text: str) -> None:
        self._text = text.removeprefix("\ufeff")
        self._offset = 0
        self._steps: list[Step] = []
        self._pending: list[_Pending] = []
        self._negated = False
        refused = _REFUSED.search(self._text)
        if refused:
            raise _bad(refused.start(), f"the character {quoted(refused.group())} is not allowed")
        self._token = self._scan(0, ends_line=False)

    def parse(self) -> list[Step]:
        self._read_operand()
        while self._token.text:
            if self._token.text == ")":
                self._close()
            else:
                self._read_operator()
                self._read_operand()
        self._complete(1)
        if self._pending:
            raise self._expected("`)`")
        return self._steps

    def _read_operand(self) -> None:
        negated = self._negated
        while self._token.text in ("!", "("):
            if self._advance().text == "!":
                negated = not negated
            else:
                self._pending.append(_Pending(0, Operator.AND, self._negated))
                self._negated = negated
        if self._token.kind != "name":
            raise self._expected("a matcher, such as Host(`app.example.org`)")
        name = self._advance().text
        self._steps.append(Matcher(name, self._read_arguments(), negated))

    def _read_arguments(self) -> tuple[str, ...]:
        """Go allows a final comma, and `...` after the last argument, which changes nothing here."""
        arguments = []
        self._skip("(")
        while self._token.kind in ("raw", "string"):
            arguments.append(_unquote(self._advance()))
            spread = self._token.text == "..."
            if spread:
                self._advance()
            if self._token.text != ",":
                break
            self._advance()
            if spread:
                break
        self._skip(")")
        return tuple(arguments)

    def _read_operator(self) -> None:
        if self._token.text not in ("&&", "||"):
            raise self._expected("`&&` or `||`")
        is_and = self._advance().text == "&&"
        binding = 2 if is_and else 1
        self._complete(binding)
        operator = Operator.AND if is_and != self._negated else Operator.OR
        self._pending.append(_Pending(binding, operator, self._negated))

    def _close(self) -> None:
        self._complete(1)
        if not self._pending:
            raise self._expected("the end")
        self._negated = self._pending.pop().negated
        self._advance()

    def _complete(self, binding: int) -> None:
        """Emit the operators that bind at least as strongly, up to the innermost parenthesis."""
        while self._pending and self._pending[-1].binding >= binding:
            self._steps.append(self._pending.pop().operator)

    def _skip(self, mark: str) -> None:
        if self._token.text != mark:
            raise self._expected(f"`{mark}`" if mark == "(" else "a string in backquotes or double quotes, or `)`")
        self._advance()

    def _advance(self) -> _Token:
        """The current token; the next one becomes current."""
        token = self._token
        # Where Go would insert a semicolon: https://go.dev/ref/spec#Semicolons.
        self._token = self._scan(
            token.position + len(token.text), ends_line=token.kind is not None or token.text == ")"
        )
        return token

    def _scan(self, start: int, *, ends_line: bool) -> _Token:
        blank = _BLANK.match(self._text, start)
        position = blank.end() if blank else start
        if position == len(self._text):
            return _Token(None, "", position)
        if ends_line and "\n" in self._text[start:position]:
            raise _bad(start, "the rule ends with its line; a line that goes on ends with `&&`, `||`, `(` or `,`")
        found = _TOKEN.match(self._text, position)
        if found is None:
            raise _bad(position, f"{quoted(self._text[position : position + 10])} is not part of a rule")
        return _Token(found.lastgroup, found.group(), position)

    def _expected(self, what: str) -> BadRule:
        found = quoted(self._token.text) if self._token.text else "the end"
        return _bad(self._token.position, f"expected {what}, found {found}")


def _bad(offset: int, fault: str) -> BadRule:
    return BadRule(f"character {offset + 1} of the rule: {fault}")


def _unquote(token: _Token) -> str:
    """The value of a Go string; an octet of an escape that is not ASCII becomes the character of that number."""
    inner = token.text[1:-1]
    if token.kind == "raw":
        return inner.replace("\r", "")
    return _ESCAPE.sub(lambda escape: _unescape(escape, token.position), inner) if "\\" in inner else inner


def _unescape(escape: re.Match[str], position: int) -> str:
    letter, octal, *hexadecimal = escape.groups()
    if letter:
        return _LETTERS[letter]
    digits = octal or "".join(filter(None, hexadecimal))
    try:
        character = chr(int(digits, 8 if octal else 16))
        character.encode("utf-8")  # no surrogates
    except (ValueError, OverflowError):
        raise _bad(position, "the string has an escape that Go does not know") from None
    return character
