"""Every id that a finding can have is in MEANINGS, and a judge uses each id of MEANINGS."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import dnsproxy.doctor
from dnsproxy.doctor.judge.failing_ways import TEXTS
from dnsproxy.doctor.judge.findings import MEANINGS

FOLDER = Path(dnsproxy.doctor.__file__).parent
MAKERS = {"Finding", "_finding", "_of_header"}
"""Functions that make a finding; the id is their first or second argument."""


def written() -> Iterator[str]:
    for path in FOLDER.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in MAKERS:
                parts = (part for argument in call.args[:2] for part in ast.walk(argument))
                texts = (part.value for part in parts if isinstance(part, ast.Constant))
                yield from (one for one in texts if isinstance(one, str) and re.fullmatch("[a-z]+(-[a-z]+)*", one))


def test_the_meanings_are_those_of_the_judges_and_no_others() -> None:
    assert {*written(), *TEXTS} == MEANINGS.keys()
    assert all(meaning and not meaning.endswith(".") for meaning in MEANINGS.values())
