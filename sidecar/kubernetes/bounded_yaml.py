"""YAML text as plain values: mappings, lists, texts, numbers, booleans and nulls.

The law: pure. No text makes it crash or take more memory than its own length accounts for: nesting and the values that
aliases repeat are counted before anything is built, because libyaml's composer overflows the stack at some thousand
levels, and ten lines of aliases can stand for a billion values. Dates stay texts, as in Go.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

DEEPEST: Final = 100
"""Levels of nesting."""

MOST_REPEATED: Final = 100_000
"""Values that aliases may add."""

_BASE: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KEPT: Final = tuple(
    f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "seq", "map", "merge")
)


class _Loader(_BASE):  # type: ignore[misc]  # the base is chosen when this is imported
    yaml_implicit_resolvers: Final = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag in _KEPT]
        for first, resolvers in _BASE.yaml_implicit_resolvers.items()
    }
    yaml_constructors: Final = {
        tag: construct for tag, construct in _BASE.yaml_constructors.items() if tag is None or tag in _KEPT
    }


def decode_yaml(text: bytes) -> object:
    """The values of one document; None if it is empty. Raises ValueError."""
    try:
        _check_expansion(text)
        return yaml.load(text, _Loader)  # noqa: S506  # its constructors make plain values only
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    except LookupError as error:
        raise ValueError(f"a value is not of its tag's type: {error}") from error
    except OverflowError as error:  # of a number in base 60, which YAML 1.1 has
        raise ValueError(f"a number is too large: {error}") from error


def _check_expansion(text: bytes) -> None:
    sizes: dict[str, int] = {}
    started: list[tuple[str | None, int]] = []
    total = repeated = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise ValueError(f"the alias {event.anchor} has no anchor before it, or is inside it")
            total += sizes[event.anchor]
            repeated += sizes[event.anchor]
            if repeated > MOST_REPEATED:
                raise ValueError(f"aliases repeat more than {MOST_REPEATED:,} values")
        elif isinstance(event, yaml.CollectionStartEvent):
            started.append((event.anchor, total))
            total += 1
            if len(started) > DEEPEST:
                raise ValueError(f"more than {DEEPEST} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = started.pop()
            _note(sizes, anchor, total - before)
        elif isinstance(event, yaml.ScalarEvent):
            total += 1
            _note(sizes, event.anchor, 1)


def _note(sizes: dict[str, int], anchor: str | None, size: int) -> None:
    if anchor is not None:
        sizes[anchor] = size
