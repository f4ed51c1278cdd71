"""Every id that a finding can have is in the catalogue, and every one there can come."""

from __future__ import annotations

import ast
from pathlib import Path

import dnsproxy.doctor
from dnsproxy.doctor.catalogue import MEANINGS

FOLDER = Path(dnsproxy.doctor.__file__).parent


def test_the_catalogue_has_the_ids_of_the_judges_and_no_others() -> None:
    written = {
        node.value
        for path in FOLDER.glob("judge*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert MEANINGS.keys() <= written
    assert all(meaning and not meaning.endswith(".") for meaning in MEANINGS.values())
