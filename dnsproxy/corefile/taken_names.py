"""Taken names: the names that other lines of a server block answer or rewrite, so that a rewrite of ours must not.

The law: the plugins `rewrite`, `hosts` and `template` are read as CoreDNS reads them (plugin/rewrite/name.go and
setup.go, plugin/hosts/hostsfile.go, plugin/template/setup.go). What a regular expression matches is not judged, and
neither is a file on CoreDNS's disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dnsproxy.corefile.lexer import Token
from dnsproxy.corefile.model import Directive
from dnsproxy.corefile.zones import ROOT
from sidecar.values.endpoints import is_address


class Match(StrEnum):
    """How a line compares names, in the words of plugin/rewrite."""

    EXACT = "exact"
    SUFFIX = "suffix"
    PREFIX = "prefix"
    SUBSTRING = "substring"


_MATCHES: Final[dict[Match, Callable[[str, str], bool]]] = {
    Match.EXACT: str.__eq__,
    Match.SUFFIX: str.endswith,
    Match.PREFIX: str.startswith,
    Match.SUBSTRING: str.__contains__,
}
_MODES: Final = ("continue", "stop")
_CLASSES: Final = ("IN", "ANY")
_ADDRESS_TYPES: Final = ("A", "ANY")
"""A template for AAAA alone is a common way to switch IPv6 off; the stanza still answers A."""
_LEAST: Final = 2
"""Words of a rewrite: with fewer on its line, the nested block has them."""


@dataclass(frozen=True, slots=True)
class TakenNames:
    """The names that one line takes."""

    kind: Match
    text: str
    """In lower case, with a final dot."""
    gives: str = ""
    """The address, or the other name, that the line has for one name; else empty."""

    def takes(self, hostname: str) -> bool:
        """Whether the line takes a name in normal form."""
        return _MATCHES[self.kind](f"{hostname}.", self.text)

    def takes_below(self, parent: str) -> bool:
        """Whether it may take a name below a name in normal form."""
        end = f".{parent}."
        if self.kind is Match.EXACT:
            return self.text.endswith(end)
        return self.kind is not Match.SUFFIX or self.text.endswith(end) or end.endswith(self.text)


def taken_names(directive: Directive) -> Iterator[TakenNames]:
    """What a directive of a server block takes."""
    if directive.name == "template":
        yield from _in_template(directive)
    elif directive.name == "hosts":
        yield from _in_hosts(directive)
    elif directive.name == "rewrite":
        yield from _in_rewrite([word.text for word in _words_of(directive)])


def names_in_zone(zone: str) -> tuple[TakenNames, TakenNames]:
    """All names of a zone: its own, and those below it."""
    dotted = zone.lower().removesuffix(".") + "."
    return TakenNames(Match.EXACT, dotted), TakenNames(Match.SUFFIX, dotted if dotted == ROOT else f".{dotted}")


def line_of(directive: Directive) -> str:
    """A directive as one line, without the braces and options of its nested block."""
    return " ".join((directive.name, *(word.text for word in _words_of(directive))))


def _words_of(directive: Directive) -> tuple[Token, ...]:
    words = directive.arguments
    return words if len(words) >= _LEAST else (*words, *directive.options)


def _in_rewrite(words: list[str]) -> Iterator[TakenNames]:
    if words[:1] and words[0].lower() in _MODES:
        words = words[1:]
    field, names = words[:1], words[1:]
    if [one.lower() for one in field] != ["name"] or len(names) < _LEAST:
        return
    kind, text, *after = (Match.EXACT, *names) if len(names) == _LEAST else (names[0].lower(), *names[1:])
    if kind in _MATCHES:
        gives = after[0].lower().removesuffix(".") if kind == Match.EXACT else ""
        yield TakenNames(Match(kind), f"{text.lower().removesuffix('.')}.", gives)


def _in_template(directive: Directive) -> Iterator[TakenNames]:
    """The zones of `template CLASS TYPE ZONE...`: without a `match`, the template answers every name of them."""
    match [word.text for word in directive.arguments]:
        case [klass, kind, *zones] if klass.upper() in _CLASSES and kind.upper() in _ADDRESS_TYPES:
            if not any(word.text == "match" for word in directive.options):
                yield from (names for zone in zones if zone != ROOT for names in names_in_zone(zone))


def _in_hosts(directive: Directive) -> Iterator[TakenNames]:
    """The names in the lines of an inline hosts file."""
    for address, *names in directive.option_lines:
        if is_address(address):
            yield from (TakenNames(Match.EXACT, f"{name.lower().removesuffix('.')}.", address) for name in names)
