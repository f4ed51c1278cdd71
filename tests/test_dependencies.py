"""What the programs need at run time: an image has no rich, which structlog would import into every program."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("dnsproxy", "proxy", "sidecar", "wholeip")


def needed() -> set[str]:
    """The packages of an installation without development groups, by the lock."""
    packages = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    direct = {one["name"]: [of["name"] for of in one.get("dependencies", ())] for one in packages}
    found, following = set(), ["switchback-dns"]
    while following:
        name = following.pop()
        if name not in found:
            found.add(name)
            following += direct[name]
    return found


def imported() -> set[str]:
    """The first parts of all imports, those inside functions too."""
    nodes = (
        node
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def test_no_program_imports_rich() -> None:
    assert {"structlog", "trio"} <= imported()
    assert "rich" not in imported()


def test_no_dependency_of_the_programs_brings_rich() -> None:
    assert {"structlog", "trio"} <= needed()
    assert "rich" not in needed()
