"""What some of the Pythons that we run on cannot do, however well the others do."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROGRAMS = ("dnsproxy", "proxy", "sidecar", "wholeip")
POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{[0-9,]+\})\+|\(\?>")


def texts() -> Iterator[tuple[str, str]]:
    """Each text in the programs, with its place."""
    for program in PROGRAMS:
        for path in (ROOT / program).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def test_no_pattern_has_a_possessive_group() -> None:
    """Python 3.11.0 to 3.11.4, Debian 12's among them, match what such a group has passed over already (gh-106052)."""
    assert [place for place, text in texts() if POSSESSIVE_GROUP.search(text)] == []


@pytest.mark.parametrize("text", ["(?:ab?)*+", "(a)++", "(a)?+", "(a){1,2}+", "(?>a)"])
def test_a_possessive_group_is_seen(text: str) -> None:
    assert POSSESSIVE_GROUP.search(text)


@pytest.mark.parametrize("text", ["[a-z]*+", "(?:a)*", "(a)+", "a)*.+", "(a)+b+"])
def test_what_is_none_is_left_alone(text: str) -> None:
    assert not POSSESSIVE_GROUP.search(text)


def test_a_python_that_is_not_installed_is_named_and_skipped() -> None:
    found = subprocess.run([ROOT / "scripts" / "test-pythons.sh", "99"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "Python 3.99: skipped, it is not installed\n"), found.stderr
