"""TSIG keys in BIND's `key` statements, as `tsig-keygen` prints them (RFC 8945, BIND's manual, named.conf).

The law: pure; a text is a list of keys or an error with the number of the line, and no error shows a secret.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dnsproxy.dns.names import MAXIMUM_LABEL, MAXIMUM_NAME

ALGORITHMS: Final = {
    "hmac-md5": "hmac-md5.sig-alg.reg.int",
    "hmac-md5.sig-alg.reg.int": "hmac-md5.sig-alg.reg.int",
    **{name: name for name in ("hmac-sha1", "hmac-sha224", "hmac-sha256", "hmac-sha384", "hmac-sha512")},
}
"""The algorithms' names in a statement, and in DNS (RFC 8945 section 6)."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{};]|[^\s{};"]+')
_COMMENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|#[^\n]*|/\*.*?\*/', re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?\Z")


class BadKeys(ValueError):
    """A text that is no list of keys; the message has the line and the fault."""


@dataclass(frozen=True, slots=True)
class TsigKey:
    """One key."""

    name: str
    """In lower case, without the final dot."""
    algorithm: str
    """As in DNS."""
    secret: bytes = field(repr=False)


def parse_keys(text: str) -> tuple[TsigKey, ...]:
    """The keys, in order. Raises BadKeys, also if there is none or if two have one name."""
    tokens = _Tokens(list(_tokens(_COMMENT.sub(_blank, text))))
    found: dict[str, TsigKey] = {}
    while not tokens.at_end:
        line = tokens.line
        key = _parse_statement(tokens)
        if key.name in found:
            raise BadKeys(f"line {line}: key {key.name} is there twice")
        found[key.name] = key
    if not found:
        raise BadKeys('there is no key statement in it, such as: key "NAME" { algorithm hmac-sha256; secret "..."; };')
    return tuple(found.values())


class _Tokens:
    def __init__(self, tokens: list[tuple[int, str]]) -> None:
        self._tokens = tokens
        self._position = 0

    @property
    def at_end(self) -> bool:
        return self._position == len(self._tokens)

    @property
    def line(self) -> int:
        """The line of the next token, or of the last one."""
        return self._tokens[min(self._position, len(self._tokens) - 1)][0] if self._tokens else 1

    def take(self, what: str) -> str:
        """Raises BadKeys at the end of the text."""
        if self.at_end:
            raise BadKeys(f"line {self.line}: the text ends where {what} should be")
        self._position += 1
        return self._tokens[self._position - 1][1]

    def expect(self, token: str) -> None:
        """Raises BadKeys for any other token."""
        line = self.line
        if self.take(f"a {token!r}") != token:
            raise BadKeys(f"line {line}: {token!r} is missing")


def _parse_statement(tokens: _Tokens) -> TsigKey:
    line = tokens.line
    if tokens.take("a key statement") != "key":
        raise BadKeys(f"line {line}: only key statements are read here")
    name = _parse_name(tokens.take("a key's name"), line)
    tokens.expect("{")
    options: dict[str, tuple[int, str]] = {}
    while (option := tokens.take("a '}'")) != "}":
        option_line = tokens.line
        if option not in ("algorithm", "secret"):
            raise BadKeys(f"line {option_line}: a key has an algorithm and a secret, and nothing else")
        if option in options:
            raise BadKeys(f"line {option_line}: key {name} has a second {option}")
        options[option] = option_line, _unquote(tokens.take(f"the {option}"))
        tokens.expect(";")
    tokens.expect(";")
    for option in ("algorithm", "secret"):
        if option not in options:
            raise BadKeys(f"line {line}: key {name} has no {option}")
    return TsigKey(name, _parse_algorithm(*options["algorithm"]), _parse_secret(*options["secret"], name=name))


def _parse_name(token: str, line: int) -> str:
    name = _unquote(token)
    if not _NAME.match(name) or len(name) > MAXIMUM_NAME - 2:
        raise BadKeys(f"line {line}: a key's name is a domain name, with labels of up to {MAXIMUM_LABEL} characters")
    return name.lower().removesuffix(".")


def _parse_algorithm(line: int, text: str) -> str:
    algorithm = ALGORITHMS.get(text.lower().removesuffix("."))
    if algorithm is None:
        known = ", ".join(name for name in ALGORITHMS if "." not in name)
        # Its text may be a secret in the wrong place.
        raise BadKeys(f"line {line}: that is no algorithm for TSIG; these are: {known}")
    return algorithm


def _parse_secret(line: int, text: str, *, name: str) -> bytes:
    try:
        secret = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadKeys(f"line {line}: the secret of key {name} is not in base64") from None
    if not secret:
        raise BadKeys(f"line {line}: the secret of key {name} is empty")
    return secret


def _unquote(token: str) -> str:
    return token[1:-1] if token.startswith('"') else token


def _blank(match: re.Match[str]) -> str:
    """A comment becomes its line ends, so that the numbers of lines stay; a quoted text stays."""
    return match[1] or "\n" * match[0].count("\n")


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        for match in _TOKEN.finditer(line):
            yield number, match[0]
