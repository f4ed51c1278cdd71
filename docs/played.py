"""Which combinations of the scene were played, and which programs cannot be had: tables of the guide.

The law: pure, except that it reads tests/cluster/matrix.toml and docs/played.json, which `make world-test` writes.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Final

from docs.tables import format_table

_PLAYED: Final = Path(__file__).with_name("played.json")
_MATRIX: Final = Path(__file__).parent.parent / "tests" / "cluster" / "matrix.toml"
_PLACES: Final = {"ci": "each change", "world": "`make world-test`"}


def format_combinations() -> str:
    """A row for each combination, with its last end."""
    notes = _read()["combinations"]
    rows = []
    for one in tomllib.loads(_MATRIX.read_text(encoding="utf-8"))["combination"]:
        last = notes.get(one["name"], {"date": "", "result": "not played yet", "seconds": ""})
        rows.append([one["name"], _PLACES[one["where"]], last["date"], last["result"], str(last["seconds"])])
    return format_table(["combination", "played by", "last", "result", "seconds"], rows)


def format_programs() -> str:
    """The versions of the programs that others wrote, in the last run."""
    return format_table(["program", "version"], [[name, version] for name, version in _read()["programs"].items()])


def format_absent() -> str:
    """What cannot be had, and why."""
    rows = tomllib.loads(_MATRIX.read_text(encoding="utf-8"))["absent"]
    return format_table(["program", "why it is not played"], [[one["program"], one["reason"]] for one in rows])


def _read() -> Any:
    return json.loads(_PLAYED.read_text(encoding="utf-8"))
