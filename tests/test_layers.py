"""The picture of the layers in CONTRIBUTING, and the laws of the folders, held against the imports.

Imports inside functions and under TYPE_CHECKING count like all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import grimp
import pytest

from tests.kit.laws import (
    PACKAGES,
    PROGRAMS,
    ROOT,
    Purity,
    docstring_of,
    folders,
    is_test_of_pure_module,
    modules,
    parse_purity,
    pure_modules,
)

PAGE = "CONTRIBUTING.md"
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


@cache
def imports() -> Any:
    return grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)


# --- The picture ---


def blocks_in(text: str) -> Iterator[str]:
    """The fenced blocks of a page, without their fences."""
    for number, part in enumerate(re.split(r"^```.*$", text, flags=re.MULTILINE)):
        if number % 2:
            yield part


def picture() -> dict[str, list[list[str]]]:
    """The layers of each program, from the top down, each layer the names of one line."""
    blocks = [block for block in blocks_in((ROOT / PAGE).read_text(encoding="utf-8")) if "\nsidecar " in block]
    assert len(blocks) == 1, f"{PAGE} has {len(blocks)} pictures of the layers"
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


def test_the_picture_shows_every_program_and_what_they_share() -> None:
    assert list(picture()) == [*PROGRAMS, "sidecar"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_picture_shows_every_room_once(program: str) -> None:
    """A new folder gets its place in the picture."""
    shown = [room for row in picture()[program] for room in row]
    assert sorted(shown) == sorted(rooms_of(program))


@pytest.mark.parametrize("program", PROGRAMS)
def test_imports_only_go_down_the_picture(program: str) -> None:
    """A room imports from the lines below its own: neither from its own line nor from above."""
    floor = {room: number for number, row in enumerate(picture()[program]) for room in row}
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


def test_a_folder_begins_with_its_law_in_one_line() -> None:
    """A stranger who opens `__init__.py` knows what is inside, and what never is."""
    laws = {str(folder.relative_to(ROOT)): docstring_of(folder) for folder in folders()}
    assert [folder for folder, law in laws.items() if not law.split("\n")[0].endswith(".")] == []
    unread = [folder for folder, law in laws.items() if "pure" in law.lower() and parse_purity(law) is None]
    assert unread == [], "no test reads what these say of purity"


def test_what_a_law_calls_pure_reaches_no_loop_socket_cluster_or_process() -> None:
    """Decisions are plain functions over values; their imports, and the imports of those, show it."""
    impure = [one for one in IMPURE if one in imports().modules]
    chains = [imports().find_shortest_chain(module, one) for module in dict(pure_modules()) for one in impure]
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


TESTS_OF: Sequence[tuple[str, bool]] = [
    ("tests/dnsproxy/answers/test_table.py", True),
    ("tests/proxy/header/test_v1.py", True),
    ("tests/dnsproxy/server/test_dns_server.py", False),
    ("tests/sidecar/kubernetes/test_watch_policy.py", True),
    ("tests/test_layers.py", False),
    ("tests/kit/test_ports.py", False),
]


@pytest.mark.parametrize(("file", "is_pure"), TESTS_OF, ids=[file for file, _ in TESTS_OF])
def test_the_tests_of_pure_modules_are_known_by_their_names(file: str, is_pure: bool) -> None:
    """`make test-quick` runs these."""
    assert is_test_of_pure_module(ROOT / file) is is_pure
