"""JSON documents compared with the tables of their keys on a page of the guide, first of all those of `ip-mode`.

The law: a key is a path (`services[].trial.answer`); a document may lack a key only where the table's meaning says so.
Pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from docs.build import HERE

PAGE: Final = (HERE / "pages" / "ip-mode.md").read_text(encoding="utf-8")
_ROW: Final = re.compile(r"^\| `(?P<key>[^`]+)` \| (?P<type>[^|]+) \| (?P<meaning>[^|]+) \|$", re.MULTILINE)
_OPAQUE: Final = ("rbac", "rbac_missing")
"""Manifests of Kubernetes: their keys are its own."""
_NAMES: Final = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string"}


def table(mode: str) -> Mapping[str, re.Match[str]]:
    """The rows of the page below `JSON of MODE`, by key."""
    _, found, rest = PAGE.partition(f"\n### JSON of {mode}\n")
    assert found, mode
    return rows_in(rest.partition("\n#")[0])


def rows_in(section: str) -> Mapping[str, re.Match[str]]:
    """The rows of the tables in a section, by key."""
    return {row["key"]: row for row in _ROW.finditer(section)}


def compare(documents: Iterable[Any], rows: Mapping[str, re.Match[str]]) -> tuple[set[str], list[str]]:
    """The keys of the documents, and a sentence for each difference from the table."""
    types: dict[str, set[str]] = defaultdict(set)
    faults: list[str] = []
    for document in documents:
        for key, kind in _types(document):
            types[key].add(kind)
        faults += _absent(document, rows)
    faults += [f"{key} is not on the page" for key in types if key not in rows]
    for key, kinds in types.items():
        said = rows[key]["type"] if key in rows else ""
        # An empty list may be either.
        stated = {*said.split(" or "), *(["list"] if "list of " in said else [])}
        if said and not kinds <= stated:
            faults.append(f"{key} is {' or '.join(sorted(kinds))}, and on the page {said}")
    return set(types), faults


def _types(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Each key below a value, with the type of its value."""
    for key, below in value.items():
        whole = f"{path}.{key}" if path else key
        yield whole, _name(below)
        if whole in _OPAQUE:
            continue
        if isinstance(below, Mapping):
            yield from _types(below, whole)
        elif isinstance(below, list):
            for one in below:
                if isinstance(one, Mapping):
                    yield from _types(one, f"{whole}[]")


def _name(value: Any) -> str:
    if isinstance(value, list):
        return f"list of {_name(value[0])}s" if value else "list"
    return "object" if isinstance(value, Mapping) else _NAMES[type(value)]


def _absent(value: Any, rows: Mapping[str, re.Match[str]], path: str = "") -> Iterator[str]:
    """A sentence for each key of the table that an object lacks."""
    prefix = f"{path}." if path else ""
    own = [key for key in rows if key.startswith(prefix) and not re.search(r"[.\[]", key.removeprefix(prefix))]
    for key in own:
        name = key.removeprefix(prefix)
        if name not in value and "absent" not in rows[key]["meaning"]:
            yield f"{key} is missing"
        below = value.get(name)
        if isinstance(below, Mapping):
            yield from _absent(below, rows, key)
        elif isinstance(below, list):
            for one in below:
                if isinstance(one, Mapping):
                    yield from _absent(one, rows, f"{key}[]")
