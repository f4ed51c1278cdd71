"""Rules of Traefik: which hosts they match.

The law: as Traefik 3.6 reads them, without the checks for which it refuses a rule; the judge of our own reader of rules
shares nothing with it. Without a request, matchers that do not look at the host may be true or false.
https://doc.traefik.io/traefik/reference/routing-configuration/http/routing/rules-and-priority/
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple

from tests.differential.universe import covers

Truths = frozenset[bool]
"""The values that a part of a rule can have."""

_EITHER: Final[Truths] = frozenset((True, False))
_TOKEN: Final = re.compile(r'\s*(&&|\|\||[!(),]|`[^`]*`|"(?:[^"\\]|\\.)*"|[A-Za-z]\w*)')


class Rule(NamedTuple):
    """A rule, and the syntax that its object names; empty: the default."""

    text: str
    syntax: str = ""


class Request(NamedTuple):
    """What a request for a host has besides; its method is GET."""

    path: str
    is_test: bool
    """Whether it has the header `X-Test: yes`."""


REQUESTS: Final = tuple(Request(path, is_test) for path in ("/", "/api", "/static") for is_test in (False, True))
"""Those by which the names of a set are judged."""


class Reading(Enum):
    """How the hosts of a rule are read."""

    NOW = auto()
    SINCE_3_7 = auto()
    """As newer versions do: with wildcards, and HostSNI in any case."""
    UNPATTERNED = auto()
    """The same, and each regular expression may match."""
    UNNAMED = auto()
    """As if no host were named."""


def may_match(rule: Rule, host: str, request: Request | None = None, *, reading: Reading = Reading.NOW) -> bool:
    """Whether a request for this host can match. Raises ValueError for what is no rule at all."""
    return True in _Parser(rule, host, request, reading).parse()


def names_hosts(rule: Rule) -> bool:
    """Whether a rule depends on the host."""
    return re.search(r"\bhost", rule.text, re.IGNORECASE) is not None


def _tokens(text: str) -> Iterator[str]:
    position = 0
    while position < len(text.rstrip()):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(f"not a rule at {position}: {text}")
        yield found[1]
        position = found.end()


@dataclass
class _Parser:
    """`||` binds weaker than `&&`, and that weaker than `!`."""

    rule: Rule
    host: str
    request: Request | None
    reading: Reading
    rest: list[str] = field(default_factory=list)

    def parse(self) -> Truths:
        self.rest = list(_tokens(self.rule.text))[::-1]
        found = self._either()
        if self.rest:
            raise ValueError(f"unexpected {self.rest[-1]}")
        return found

    def _take(self, token: str) -> bool:
        if self.rest and self.rest[-1] == token:
            self.rest.pop()
            return True
        return False

    def _either(self) -> Truths:
        found = self._both()
        while self._take("||"):
            found = frozenset(one or other for other in self._both() for one in found)
        return found

    def _both(self) -> Truths:
        found = self._single()
        while self._take("&&"):
            found = frozenset(one and other for other in self._single() for one in found)
        return found

    def _single(self) -> Truths:
        if self._take("!"):
            return frozenset(not one for one in self._single())
        if self._take("("):
            found = self._either()
            self._expect(")")
            return found
        name = self._next()
        return self._matched(name.lower(), self._arguments())

    def _arguments(self) -> list[str]:
        self._expect("(")
        found = []
        while not self._take(")"):
            text = self._next()
            if text[0] not in '`"':
                raise ValueError(f"{text} has no quotes")
            found.append(text[1:-1] if text[0] == "`" else re.sub(r"\\(.)", r"\1", text[1:-1]))
            self._take(",")
        return found

    def _next(self) -> str:
        if not self.rest:
            raise ValueError("the rule ends too early")
        return self.rest.pop()

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise ValueError(f"{token} is missing")

    def _matched(self, name: str, arguments: list[str]) -> Truths:
        match name:
            case "host" | "hostheader" | "hostsni":
                return _only(any(self._is_host(name, text) for text in arguments))
            case "hostregexp" | "hostsniregexp":
                if self.reading is Reading.UNPATTERNED:
                    return _EITHER
                patterns = [_pattern(text) if self.rule.syntax == "v2" else text for text in arguments]
                return _only(any(_has_pattern(pattern, self.host) for pattern in patterns))
        return _EITHER if self.request is None else _only(_fits(name, arguments, self.request))

    def _is_host(self, name: str, text: str) -> bool:
        host = text.removesuffix(".")
        if name == "hostsni" and text == "*":
            return True
        if self.reading is Reading.UNNAMED:
            return False
        if self.reading in (Reading.SINCE_3_7, Reading.UNPATTERNED) and self.rule.syntax != "v2":
            return covers(host.lower(), self.host, labels="one")
        return self.host == (host if name == "hostsni" else host.lower())


def _only(value: bool) -> Truths:
    return frozenset((value,))


def _has_pattern(pattern: str, host: str) -> bool:
    try:
        return re.search(pattern, host) is not None
    except re.error as error:
        raise ValueError(f"{pattern}: {error}") from error


def _pattern(template: str) -> str:
    """`{name:pattern}.example.org`, the form of the v2 syntax."""
    parts = re.split(r"\{[^:}]*:([^}]*)\}", template)
    return "^" + "".join(part if number % 2 else re.escape(part) for number, part in enumerate(parts)) + "$"


def _fits(name: str, arguments: list[str], request: Request) -> bool:
    match name:
        case "path":
            return request.path in arguments
        case "pathprefix":
            return any(request.path.startswith(one) for one in arguments)
        case "header" | "headers":
            return request.is_test
    return name in ("method", "clientip", "alpn")
