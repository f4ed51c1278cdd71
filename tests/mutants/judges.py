"""The tests that judge a module: its own, and those that import it.

The law: imports are read, not followed at run time; an import inside a function counts. Tests that need a cluster or
measure something are no judges.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

PACKAGES: Final = ("dnsproxy", "proxy", "release", "sidecar", "wholeip")
MOST: Final = 4
"""Test files that judge one module."""
_NO_JUDGES: Final = frozenset({"bench", "clients", "cluster", "deploy", "differential", "mutants", "peers", "soak"})
_MOST_HOPS: Final = 3


def source_files(tree: Path) -> list[str]:
    """The files with mutants, as POSIX paths inside the tree."""
    files = (path.relative_to(tree) for package in PACKAGES for path in sorted((tree / package).rglob("*.py")))
    return [path.as_posix() for path in files if path.name not in {"__init__.py", "__main__.py"}]


class Judges:
    """Knows the imports of a tree; reads all files once."""

    def __init__(self, tree: Path) -> None:
        names = {_module_name(file): file for folder in (*PACKAGES, "tests") for file in _python_files(tree, folder)}
        self._tests = {file for file in names.values() if _is_judge(PurePosixPath(file))}
        self._importers: dict[str, Counter[str]] = {file: Counter() for file in names.values()}
        """Files by the file that they import, with the number of names."""
        for file in names.values():
            for name in _imported_names(ast.parse((tree / file).read_bytes())):
                if (imported := names.get(name) or names.get(name.rpartition(".")[0])) not in {None, file}:
                    self._importers[imported or ""][file] += 1

    def of(self, file: str) -> tuple[str, ...]:
        """At most MOST test files, its own first, then the nearest; empty if no test comes near it.

        Tests that import it only through other modules judge it if none imports it directly.
        """
        own = _own_test(file)
        reached = Counter({file: 1})
        for _ in range(_MOST_HOPS):
            importers: Counter[str] = Counter()
            for one in reached:
                importers.update(self._importers[one])
            tests = sorted(importers.keys() & self._tests, key=lambda test: _distance(test, own, importers[test]))
            if own in self._tests and own not in tests:
                tests.insert(0, own)
            if tests:
                return tuple(tests[:MOST])
            reached = importers
        return ()


def _own_test(file: str) -> str:
    """`tests/a/test_b.py` of `a/b.py`."""
    path = PurePosixPath(file)
    return str("tests" / path.with_name(f"test_{path.name}"))


def _distance(test: str, own: str, names: int) -> tuple[bool, int, int, str]:
    """Tests in the folder of the module's own come first, and among them those that import more of its names."""
    common = 0
    for one, other in zip(PurePosixPath(test).parent.parts, PurePosixPath(own).parent.parts, strict=False):
        if one != other:
            break
        common += 1
    return test != own, -common, -names, test


def _is_judge(file: PurePosixPath) -> bool:
    return file.parts[0] == "tests" and file.name.startswith("test_") and file.parts[1] not in _NO_JUDGES


def _python_files(tree: Path, folder: str) -> Iterator[str]:
    yield from (path.relative_to(tree).as_posix() for path in sorted((tree / folder).rglob("*.py")))


def _module_name(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported_names(module: ast.Module) -> Iterator[str]:
    """`a.b.c` for `from a.b import c`, which is a module or a name in one."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
