"""Selectors: conditions on labels, or on annotations, as `kubectl --selector` takes them.

The law: pure; text in, a value or a BadSelector out. As in apimachinery, all requirements must hold, an empty selector
matches everything, and an absent key is different from every value. Equal selectors have one normal form.
https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.values.text import quoted

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"

# https://github.com/kubernetes/apimachinery/blob/v0.34.4/pkg/labels/selector.go: Lexer
_TOKEN: Final = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_SYMBOLS: Final = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_END: Final = ""

_EQUALITY: Final = {"=": IN, "==": IN, "!=": NOT_IN}
_SETS: Final = {"in": IN, "notin": NOT_IN}

# https://github.com/kubernetes/apimachinery/blob/v0.34.4/pkg/util/validation/validation.go
_PREFIX: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_NAME: Final = re.compile(r"(?=.{1,63}\Z)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")
_LABEL_VALUE: Final = re.compile(r"(?=.{0,63}\Z)([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?\Z")

_ALLOWED: Final = "up to 63 letters, digits, - _ and ., with a letter or digit at both ends"


class BadSelector(ValueError):
    """An invalid selector; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label or annotation."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether it holds; an absent label is `NotIn` any values."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold."""

    requirements: tuple[Requirement, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The labels or annotations that decide, each once."""
        return tuple(dict.fromkeys(one.key for one in self.requirements))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(requirement.matches(labels) for requirement in self.requirements)


EVERYTHING: Final = Selector()
"""Selects every object."""


def parse_selector(text: str) -> Selector:
    """A label selector, such as `team=web,tier in (a, b),!internal`. Raises BadSelector."""
    return _parse(text, _check_label)


def parse_annotation_selector(text: str) -> Selector:
    """The same over annotations, whose values may be any text without blanks, commas, parentheses and `=!<>`.

    Raises BadSelector.
    """
    return _parse(text, _check_annotation)


def format_selector(selector: Selector) -> str:
    """The normal form, for the API server."""
    return ",".join(map(_format_requirement, selector.requirements))


def _format_requirement(one: Requirement) -> str:
    if not one.values:
        return f"!{one.key}" if one.operator == DOES_NOT_EXIST else one.key
    if len(one.values) == 1:
        return f"{one.key}{'!=' if one.operator == NOT_IN else '='}{''.join(one.values)}"
    return f"{one.key} {'notin' if one.operator == NOT_IN else 'in'} ({','.join(sorted(one.values))})"


def _parse(text: str, check: Callable[[Requirement], None]) -> Selector:
    found = set(_Reader(_TOKEN.findall(text)).requirements())
    for one in found:
        check(one)
    return Selector(tuple(sorted(found, key=lambda one: (one.key, one.operator, sorted(one.values)))))


class _Reader:
    """Reads requirements from the tokens of a selector, in the order of apimachinery's Parser."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self._tokens = [*tokens, _END]
        self._next = 0

    def requirements(self) -> Iterator[Requirement]:
        """All requirements, which commas separate."""
        if self._peek() == _END:
            return
        yield self._requirement()
        while (found := self._take()) != _END:
            if found != ",":
                raise _unexpected(found, "a comma or the end")
            yield self._requirement()

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return Requirement(self._word("a key after !"), DOES_NOT_EXIST)
        key = self._word("a key")
        if self._peek() in (",", _END):
            return Requirement(key, EXISTS)
        operator = self._take()
        if operator in _EQUALITY:
            return Requirement(key, _EQUALITY[operator], frozenset({self._value()}))
        if operator in _SETS:
            return Requirement(key, _SETS[operator], frozenset(self._set(operator)))
        raise _unexpected(operator, "one of = == != in notin")

    def _value(self) -> str:
        return "" if self._peek() in (",", _END) else self._word("a value")

    def _set(self, operator: str) -> Iterator[str]:
        """The values in parentheses; where one is missing it is the empty text."""
        if (found := self._take()) != "(":
            raise _unexpected(found, f"( after {operator}")
        while True:
            yield "" if self._peek() in (",", ")") else self._word("a value")
            found = self._take()
            if found == ")":
                return
            if found != ",":
                raise _unexpected(found, "a comma or )")

    def _word(self, expected: str) -> str:
        token = self._take()
        if token in _SYMBOLS or token == _END:
            raise _unexpected(token, expected)
        return token

    def _peek(self) -> str:
        return self._tokens[self._next]

    def _take(self) -> str:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token


def _unexpected(token: str, expected: str) -> BadSelector:
    return BadSelector(f"{expected} is missing: there is {quoted(token) if token else 'the end'}")


def _check_label(one: Requirement) -> None:
    _check_key(one.key, "label")
    for value in one.values:
        if not _LABEL_VALUE.match(value):
            raise BadSelector(f"{quoted(value)} is not the value of a label: {_ALLOWED}")


def _check_annotation(one: Requirement) -> None:
    # The API server compares the keys of annotations in lower case.
    prefix, slash, name = one.key.rpartition("/")
    _check_key(f"{prefix.lower()}{slash}{name}", "annotation")


def _check_key(key: str, what: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if not _NAME.match(name) or (slash and not _PREFIX.match(prefix)):
        raise BadSelector(f"{quoted(key)} is not the key of a {what}: a name, or a domain, / and a name; {_ALLOWED}")
