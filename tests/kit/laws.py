"""The laws of the folders: the first line of each `__init__.py`, whose last sentence states the purity.

A pure module reaches no event loop, socket, cluster or process through its imports. There are three forms: "Pure.",
"Pure but for a.py and b.py.", "Pure: a.py, b.py and c.py."
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PROGRAMS: Final = ("dnsproxy", "proxy", "wholeip")
PACKAGES: Final = (*PROGRAMS, "release", "sidecar")

_PURITY: Final = re.compile(r"\bPure(?: but for (?P<but>[^.]+(?:\.py[^.]*)+)|: (?P<only>[^.]+(?:\.py[^.]*)+))?\.$")
_MODULE: Final = re.compile(r"([a-z0-9_/]+)\.py")


@cache
def modules() -> tuple[str, ...]:
    """Every module of the project, without packages."""
    return tuple(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.name != "__init__.py"
    )


@cache
def folders() -> tuple[Path, ...]:
    return tuple(path.parent for package in PACKAGES for path in sorted((ROOT / package).rglob("__init__.py")))


def docstring_of(folder: Path) -> str:
    return ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""


@dataclass(frozen=True)
class Purity:
    whole: bool
    """Whether all modules except the named ones are pure; otherwise only the named ones are."""
    named: tuple[str, ...]


def parse_purity(law: str) -> Purity | None:
    """The purity in the last sentence of a folder's docstring; None if it states none."""
    found = _PURITY.search(" ".join(law.split()))
    if found is None:
        return None
    return Purity(found["only"] is None, tuple(_MODULE.findall(found["but"] or found["only"] or "")))


def pure_modules() -> Iterator[tuple[str, str]]:
    """Each module that a law declares pure, with the folder of that law."""
    for folder in folders():
        purity = parse_purity(docstring_of(folder))
        package = ".".join(folder.relative_to(ROOT).parts)
        if purity is None:
            continue
        inside = [module for module in modules() if module.startswith(f"{package}.")]
        named = {f"{package}.{name.replace('/', '.')}" for name in purity.named}
        assert named <= set(inside), f"the law of {package} names {sorted(named - set(inside))}, which do not exist"
        for module in inside:
            if (module in named) != purity.whole:
                yield module, package


@cache
def names_of_pure_modules() -> frozenset[str]:
    return frozenset(module for module, _ in pure_modules())


def is_test_of_pure_module(file: Path) -> bool:
    """Whether a file is the test of a pure module, by name: tests/a/test_b.py is the test of a/b.py."""
    folder = file.relative_to(ROOT / "tests").parent
    return ".".join((*folder.parts, file.stem.removeprefix("test_"))) in names_of_pure_modules()
