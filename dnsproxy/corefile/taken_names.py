"""Taken names: the names that other lines of a server block answer or rewrite, so that a rewrite of ours must not.

The law: the plugins `rewrite` and `hosts` are read as CoreDNS reads them (plugin/rewrite/name.go and setup.go,
plugin/hosts/hostsfile.go). What a regular expression matches is not judged, and neither is a file on CoreDNS's disk.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from dnsproxy.corefile.lexer import Token
from dnsproxy.corefile.model import Directive
from sidecar.values.endpoints import is_address

_EXACT: Final = "exact"
_MATCHES: Final[dict[str, Callable[[str, str], bool]]] = {
    _EXACT: str.__eq__,
    "suffix": str.endswith,
    "prefix": str.startswith,
    "substring": str.__contains__,
}
_MODES: Final = ("continue", "stop")
_LEAST: Final = 2
"""Words of a rewrite: with fewer on its line, the nested block has them."""


@dataclass(frozen=True, slots=True)
class TakenNames:
    """The names that one line takes."""

    kind: str
    """As in plugin/rewrite: `exact`, `suffix`, `prefix`, `substring`."""
    text: str
    """In lower case, with a final dot."""

    def takes(self, hostname: str) -> bool:
        """Whether the line takes a name in normal form."""
        return _MATCHES[self.kind](f"{hostname}.", self.text)

    def takes_below(self, parent: str) -> bool:
        """Whether it may take a name below a name in normal form."""
        end = f".{parent}."
        if self.kind == _EXACT:
            return self.text.endswith(end)
        return self.kind != "suffix" or self.text.endswith(end) or end.endswith(self.text)


def taken_names(directive: Directive) -> Iterator[TakenNames]:
    """What a directive of a server block takes."""
    if directive.name == "hosts":
        yield from _in_hosts(directive.options)
    elif directive.name == "rewrite":
        yield from _in_rewrite([word.text for word in _words_of(directive)])


def _words_of(directive: Directive) -> tuple[Token, ...]:
    words = directive.arguments
    return words if len(words) >= _LEAST else (*words, *directive.options)


def _in_rewrite(words: list[str]) -> Iterator[TakenNames]:
    if words[:1] and words[0].lower() in _MODES:
        words = words[1:]
    field, names = words[:1], words[1:]
    if [one.lower() for one in field] != ["name"] or len(names) < _LEAST:
        return
    kind, text = (_EXACT, names[0]) if len(names) == _LEAST else (names[0].lower(), names[1])
    if kind in _MATCHES:
        yield TakenNames(kind, f"{text.lower().removesuffix('.')}.")


def _in_hosts(options: tuple[Token, ...]) -> Iterator[TakenNames]:
    """The names in the lines of an inline hosts file."""
    for _, line in itertools.groupby(options, key=lambda word: word.line):
        address, *names = [word.text for word in line]
        if is_address(address):
            yield from (TakenNames(_EXACT, f"{name.lower().removesuffix('.')}.") for name in names)
