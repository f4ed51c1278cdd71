"""The picture of the layers in README and CONTRIBUTING, and the laws of the folders, held against the imports.

Imports inside functions and under TYPE_CHECKING count like all others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import grimp
import pytest

ROOT = Path(__file__).parent.parent
PROGRAMS = ("dnsproxy", "proxy", "wholeip")
PACKAGES = (*PROGRAMS, "sidecar")
PAGES = ("README.md", "CONTRIBUTING.md")
IMPURE = (
    "trio",
    "socket",
    "select",
    "ssl",
    "subprocess",
    "ctypes",
    "kubernetes",
    "httpx2",
    "h11",
    "click",
    "structlog",
)
"""What a pure module reaches by no chain of imports."""

PURITY = re.compile(r"\bPure(?: but for (?P<but>[^.]+(?:\.py[^.]*)+)|: (?P<only>[^.]+(?:\.py[^.]*)+))?\.$")
MODULE = re.compile(r"([a-z_/]+)\.py")


@cache
def imports() -> Any:
    return grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)


@cache
def modules() -> tuple[str, ...]:
    """Every module of ours, packages aside."""
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


# --- The picture ---


def blocks_in(text: str) -> Iterator[str]:
    """The fenced blocks of a page, without their fences."""
    for number, part in enumerate(re.split(r"^```.*$", text, flags=re.MULTILINE)):
        if number % 2:
            yield part


def picture_in(page: str) -> dict[str, list[list[str]]]:
    """The layers of each program, from the top down, each layer the names of one line."""
    blocks = [block for block in blocks_in((ROOT / page).read_text(encoding="utf-8")) if "\nsidecar " in block]
    assert len(blocks) == 1, f"{page} has {len(blocks)} pictures of the layers"
    layers: dict[str, list[list[str]]] = {}
    for line in blocks[0].splitlines():
        program, row = line[:10].strip(), line[10:].split()
        if program:
            layers[program] = current = []
        if row and layers:
            current.append(row)
    return layers


def rooms_of(program: str) -> set[str]:
    """The folders and modules that stand at the root of a program."""
    ends = [module.split(".") for module in modules() if module.startswith(f"{program}.")]
    return {parts[1] for parts in ends} - {"__main__"}


def test_both_pages_show_one_picture() -> None:
    """A reader of README and one of CONTRIBUTING learn the same."""
    first, second = (picture_in(page) for page in PAGES)
    assert first == second
    assert list(first) == [*PROGRAMS, "sidecar"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_picture_shows_every_room_once(program: str) -> None:
    """A new folder gets its place in the picture."""
    shown = [room for row in picture_in("README.md")[program] for room in row]
    assert sorted(shown) == sorted(rooms_of(program))


@pytest.mark.parametrize("program", PROGRAMS)
def test_imports_only_go_down_the_picture(program: str) -> None:
    """A room imports from the lines below its own: neither from its own line nor from above."""
    floor = {room: number for number, row in enumerate(picture_in("README.md")[program]) for room in row}
    upward = [
        f"{module} -> {imported}"
        for module, imported in own_imports()
        if (one := module.split("."))[0] == (other := imported.split("."))[0] == program
        and len(one) > 1 < len(other)
        and one[1] != other[1]
        and "__main__" not in (one[1], other[1])
        and floor[other[1]] <= floor[one[1]]
    ]
    assert upward == []


def test_programs_know_sidecar_alone_and_sidecar_knows_none() -> None:
    """Each of the programs can be read, and shipped, without the others."""
    foreign = []
    for module, imported in own_imports():
        one, other = module.split(".")[0], imported.split(".")[0]
        if other not in {one, "sidecar"}:
            foreign.append(f"{module} -> {imported}")
    assert foreign == []


def own_imports() -> Iterator[tuple[str, str]]:
    """Every import of a module of ours by another."""
    for module in modules():
        for imported in imports().find_modules_directly_imported_by(module):
            if imported.split(".")[0] in PACKAGES:
                yield module, imported


# --- No circle ---


def test_no_module_imports_itself_by_way_of_others() -> None:
    """No circle of imports, also none that is hidden in a function or under TYPE_CHECKING."""
    towards: dict[str, set[str]] = {module: set() for module in modules()}
    for module, imported in own_imports():
        if imported in towards:
            towards[module].add(imported)
    assert circle_in(towards) == []


def circle_in(towards: dict[str, set[str]]) -> list[str]:
    """The modules that are left when both ends, lower and upper, are taken away again and again."""
    left = {module: imported & towards.keys() for module, imported in towards.items()}
    while True:
        needed = set().union(*left.values())
        ends = {module for module, imported in left.items() if not imported or module not in needed}
        if not ends:
            return sorted(left)
        left = {module: imported - ends for module, imported in left.items() if module not in ends}


def test_a_circle_is_seen() -> None:
    """The judge itself: two modules that import each other are found; those above and below them are not."""
    assert circle_in({"a": {"b", "d"}, "b": {"a"}, "c": {"a"}, "d": {"e"}, "e": set()}) == ["a", "b"]


# --- The laws of the folders ---


@dataclass(frozen=True)
class Purity:
    whole: bool
    """Whether all modules are pure, those that are named aside; else only those that are named."""
    named: tuple[str, ...]


def parse_purity(law: str) -> Purity | None:
    """What the last sentence of a folder's docstring says of purity; None where it says nothing."""
    found = PURITY.search(" ".join(law.split()))
    if found is None:
        return None
    return Purity(found["only"] is None, tuple(MODULE.findall(found["but"] or found["only"] or "")))


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_folder_begins_with_its_law_in_one_line(folder: Path) -> None:
    """A stranger who opens `__init__.py` knows what is inside, and what never is."""
    document = docstring_of(folder)
    assert document.split("\n")[0].endswith(".")
    assert "pure" not in document.lower() or parse_purity(document) is not None, f"no test reads this: {document}"


def pure_modules() -> Iterator[tuple[str, str]]:
    """Each module that a law calls pure, and the folder whose law it is."""
    for folder in folders():
        purity = parse_purity(docstring_of(folder))
        package = ".".join(folder.relative_to(ROOT).parts)
        if purity is None:
            continue
        inside = [module for module in modules() if module.startswith(f"{package}.")]
        named = {f"{package}.{name.replace('/', '.')}" for name in purity.named}
        assert named <= set(inside), f"the law of {package} names {sorted(named - set(inside))}, which are not there"
        for module in inside:
            if (module in named) != purity.whole:
                yield module, package


@pytest.mark.parametrize("module", sorted(dict(pure_modules())))
def test_what_a_law_calls_pure_reaches_no_loop_socket_cluster_or_process(module: str) -> None:
    """Decisions are plain functions over values; their imports, and the imports of those, show it."""
    chains = [imports().find_shortest_chain(module, impure) for impure in IMPURE if impure in imports().modules]
    assert [chain for chain in chains if chain] == []


def test_enough_is_pure() -> None:
    """Laws that name nothing would make the test above empty."""
    assert len(dict(pure_modules())) > len(modules()) // 3


LAWS: Sequence[tuple[str, Purity | None]] = [
    ("What this is.", None),
    ("What this is. Pure.", Purity(True, ())),
    ("What this is. Pure but for a.py.", Purity(True, ("a",))),
    ("What this is. Pure but for a.py and b_c.py.", Purity(True, ("a", "b_c"))),
    ("What this is. Pure: a.py, b.py and page/c.py.", Purity(False, ("a", "b", "page/c"))),
    ("What this is.\n\nPure: a.py\nand b.py.\n", Purity(False, ("a", "b"))),
    ("What this is. Pure in spirit.", None),
]


@pytest.mark.parametrize(("law", "purity"), LAWS, ids=[law for law, _ in LAWS])
def test_laws_are_read_as_they_are_meant(law: str, purity: Purity | None) -> None:
    """The judge itself."""
    assert parse_purity(law) == purity
