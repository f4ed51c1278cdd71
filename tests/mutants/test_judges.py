from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.judges import MOST, Judges, source_files

FILES = {
    "dnsproxy/__init__.py": "",
    "dnsproxy/__main__.py": "x = 1",
    "dnsproxy/zone/names.py": "def parse(): ...\ndef format(): ...",
    "dnsproxy/zone/reading.py": "from dnsproxy.zone.names import parse",
    "dnsproxy/zone/lonely.py": "",
    "tests/dnsproxy/zone/test_names.py": "from dnsproxy.zone.names import parse",
    "tests/dnsproxy/zone/test_whole.py": "from dnsproxy.zone import names\ndef test():\n    import dnsproxy.zone.names",
    "tests/dnsproxy/test_far.py": "from dnsproxy.zone.names import parse, format",
    "tests/peers/test_nginx.py": "from dnsproxy.zone.names import parse",
    "tests/dnsproxy/zone/sample.py": "from dnsproxy.zone.reading import parse",
    "tests/dnsproxy/zone/test_sampled.py": "from tests.dnsproxy.zone.sample import parse",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_a_modules_own_test_comes_first_and_the_nearest_next(tree: Path) -> None:
    assert Judges(tree).of("dnsproxy/zone/names.py") == (
        "tests/dnsproxy/zone/test_names.py",
        "tests/dnsproxy/zone/test_whole.py",
        "tests/dnsproxy/test_far.py",
    )


def test_what_no_test_imports_is_judged_through_what_imports_it(tree: Path) -> None:
    assert Judges(tree).of("dnsproxy/zone/reading.py") == ("tests/dnsproxy/zone/test_sampled.py",)


def test_a_module_that_nothing_imports_has_no_judge(tree: Path) -> None:
    assert Judges(tree).of("dnsproxy/zone/lonely.py") == ()


def test_a_test_of_its_name_judges_it_without_an_import(tree: Path) -> None:
    (tree / "tests/dnsproxy/zone/test_lonely.py").write_text("", encoding="utf-8")
    assert Judges(tree).of("dnsproxy/zone/lonely.py") == ("tests/dnsproxy/zone/test_lonely.py",)


def test_there_are_at_most_so_many(tree: Path) -> None:
    for number in range(9):
        (tree / f"tests/dnsproxy/test_{number}.py").write_text("import dnsproxy.zone.names", encoding="utf-8")
    assert len(Judges(tree).of("dnsproxy/zone/names.py")) == MOST


def test_packages_and_entry_points_have_no_mutants(tree: Path) -> None:
    assert source_files(tree) == ["dnsproxy/zone/lonely.py", "dnsproxy/zone/names.py", "dnsproxy/zone/reading.py"]
