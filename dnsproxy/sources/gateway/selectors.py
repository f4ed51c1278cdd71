"""Selectors: which labels a label selector matches.

The law: as in apimachinery: an empty selector matches everything, all requirements must hold, and a selector that
apimachinery would refuse matches nothing.
https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/label-selector/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dnsproxy.sources.gateway import structs
from sidecar.values.text import quoted

_WITH_VALUES: Final = ("In", "NotIn")
_WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")


class BadSelector(ValueError):
    """An invalid selector; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

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

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse_selector(selector: structs.LabelSelector | None) -> Selector:
    """The selector of `from: Selector`. Raises BadSelector."""
    if selector is None:
        raise BadSelector("there is no selector")
    return Selector(tuple(_requirements(selector)))


def _requirements(selector: structs.LabelSelector) -> Iterator[Requirement]:
    for key, value in (selector.match_labels or {}).items():
        yield Requirement(key, "In", frozenset((value,)))
    for one in selector.match_expressions or ():
        if one.operator not in (*_WITH_VALUES, *_WITHOUT_VALUES):
            raise BadSelector(f"a selector has no operator {quoted(one.operator)}")
        if bool(one.values) != (one.operator in _WITH_VALUES):
            raise BadSelector(f"{one.operator} {quoted(one.key)} {'needs' if not one.values else 'takes no'} values")
        yield Requirement(one.key, one.operator, frozenset(one.values or ()))
