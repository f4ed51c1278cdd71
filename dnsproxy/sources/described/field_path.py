"""Field paths: where an object of any kind has a value, such as `spec.routes[*].match`.

The law: pure; an object can have anything at any place, so a value of an unexpected type ends that way and no other.
The form is that of kubectl's JSONPath without its braces: names separated by dots, `[*]` for each item of a list or
each value of a map, `['NAME']` for a name with dots. https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from sidecar.values.text import quoted

FieldPath = tuple[str, ...]
"""Its steps; EACH for `[*]`."""

EACH: Final = "*"
_MOST_STEPS: Final = 32
_STEP: Final = re.compile(r"\.?(?P<name>[A-Za-z0-9_-]+)|\[(?P<each>\*)\]|\['(?P<odd>[^'\]]+)'\]")


class BadPath(ValueError):
    """A text that is not a path; the message quotes it."""


def parse_path(text: str) -> FieldPath:
    """The steps of a path; a leading dot is accepted. Raises BadPath."""
    steps: list[str] = []
    place = 0
    while place < len(text):
        found = _STEP.match(text, place)
        if found is None or (place and found["name"] and text[place] != "."):
            raise BadPath(
                f"{quoted(text)} is not a path such as spec.host or spec.rules[*].host: see character {place}"
            )
        steps.append(found["name"] or found["each"] or found["odd"])
        place = found.end()
    if not steps or steps[0] == EACH or len(steps) > _MOST_STEPS:
        raise BadPath(f"{quoted(text)} is not a path of 1 to {_MOST_STEPS} steps such as spec.host")
    return tuple(steps)


def values_at(value: Any, path: FieldPath) -> Iterator[Any]:
    """Every value that a path leads to, in the object's order; null is no value."""
    return (found for found in places_at(value, path) if found is not None)


def places_at(value: Any, path: FieldPath) -> Iterator[Any]:
    """The same with None for each place without a value, so that the caller can limit how many are looked at."""
    for place, step in enumerate(path):
        if step == EACH:
            items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            for one in items or (None,):
                yield from places_at(one, path[place + 1 :])
            return
        if not isinstance(value, dict):
            value = None
            break
        value = value.get(step)
    yield value


def first_text(value: Any, path: FieldPath) -> str | None:
    """The first text with characters that a path leads to."""
    return next((one for one in values_at(value, path) if isinstance(one, str) and one), None)
