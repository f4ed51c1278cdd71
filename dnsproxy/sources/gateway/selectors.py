"""Selectors: the label selectors of listeners.

The law: as in apimachinery: an empty selector matches everything, all requirements must hold, and a selector that
apimachinery would refuse matches nothing.
https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/label-selector/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dnsproxy.sources.gateway import structs
from sidecar.kubernetes.selector import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, BadSelector, Requirement, Selector
from sidecar.values.text import quoted

__all__ = ["BadSelector", "Selector", "parse_selector"]

_WITH_VALUES: Final = (IN, NOT_IN)
_WITHOUT_VALUES: Final = (EXISTS, DOES_NOT_EXIST)


def parse_selector(selector: structs.LabelSelector | None) -> Selector:
    """The selector of `from: Selector`. Raises BadSelector."""
    if selector is None:
        raise BadSelector("there is no selector")
    return Selector(tuple(_requirements(selector)))


def _requirements(selector: structs.LabelSelector) -> Iterator[Requirement]:
    for key, value in (selector.match_labels or {}).items():
        yield Requirement(key, IN, frozenset((value,)))
    for one in selector.match_expressions or ():
        if one.operator not in (*_WITH_VALUES, *_WITHOUT_VALUES):
            raise BadSelector(f"a selector has no operator {quoted(one.operator)}")
        if bool(one.values) != (one.operator in _WITH_VALUES):
            raise BadSelector(f"{one.operator} {quoted(one.key)} {'needs' if not one.values else 'takes no'} values")
        yield Requirement(one.key, one.operator, frozenset(one.values or ()))
