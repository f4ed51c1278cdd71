"""Real runs of pytest in a small tree; court.py and judge_process.py are tested through them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.court import Court, namespace
from tests.mutants.judges import Judges
from tests.mutants.judging import Judging, NoCourt
from tests.mutants.operators import MODULE, Mutant, mutants_of
from tests.mutants.record import GONE, KILLED, SURVIVED, TIMEOUT, Verdict

SOURCE = """\
FIRST = ["a"][0]

def smaller(a, b):
    return a < b

def unseen(a):
    return a + 1

def count():
    done = 0
    while done < 3:
        done += 1
    return done
"""
TESTS = {
    "pyproject.toml": '[tool.pytest]\npythonpath = ["."]\ntrio_mode = true\naddopts = ["--import-mode=importlib"]\n',
    "proxy/__init__.py": "",
    "proxy/sums.py": SOURCE,
    "tests/proxy/test_sums.py": """\
import os
import pytest
from proxy import sums

def test_fails_always():
    assert sums.smaller(2, 1)

@pytest.mark.peer("nginx")
def test_needs_a_peer():
    assert sums.unseen(1) == 2

async def test_smaller():
    assert not sums.smaller(1, 1)

def test_count():
    assert sums.count() == 3
    assert "SWITCHBACK_PEERS" in os.environ
    assert "SECRET" not in os.environ
""",
    "tests/proxy/test_broken.py": "from proxy import sums\nimport nothing_of_this_name\n",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    for name, text in TESTS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_where_no_test_can_begin_nothing_is_said_to_survive(tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "tree"
    shutil.copytree(tree, copy)
    (copy / "pyproject.toml").write_text('[tool.pytest]\naddopts = ["--no-such-flag"]\n', encoding="utf-8")
    (mutant, *_) = mutants_of((copy / "proxy/sums.py").read_bytes())
    with Court(copy) as court, pytest.raises(NoCourt, match="does not begin with the unchanged sources: tests/proxy"):
        Judging(copy, court, Judges(copy)).judge("proxy/sums.py", mutant)


@pytest.fixture(scope="module")
def judging(tree: Path) -> Iterator[Judging]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET", "x")
        with Court(tree, seconds=2) as court:
            yield Judging(tree, court, Judges(tree))


def mutant(function: str, operator: str, index: int = 0) -> Mutant:
    found = mutants_of(SOURCE.encode())
    return next(one for one in found if (one.function, one.operator, one.index) == (function, operator, index))


def judge(judging: Judging, function: str, operator: str) -> Verdict:
    return judging.judge("proxy/sums.py", mutant(function, operator))


def test_a_mutant_that_a_test_notices_is_killed_by_it(judging: Judging) -> None:
    """A test that always fails, and a file that cannot be imported, notice no mutant."""
    verdict = judge(judging, "smaller", "compare")
    assert (verdict.outcome, verdict.killer) == (KILLED, "tests/proxy/test_sums.py::test_smaller")


def test_a_mutant_that_no_test_without_peers_notices_survives(judging: Judging) -> None:
    verdict = judge(judging, "unseen", "arithmetic")
    assert (verdict.outcome, verdict.killer) == (SURVIVED, "")


def test_a_mutant_that_breaks_an_import_is_killed_by_the_file(judging: Judging) -> None:
    verdict = judge(judging, MODULE, "constant")
    assert (verdict.outcome, verdict.killer) == (KILLED, "tests/proxy/test_sums.py")


def test_a_mutant_that_never_ends_is_noticed(judging: Judging) -> None:
    verdict = judge(judging, "count", "statement")
    assert (verdict.outcome, verdict.killer) == (TIMEOUT, "tests/proxy/test_sums.py::test_count")


def test_the_tree_is_not_changed(judging: Judging, tree: Path) -> None:
    assert judge(judging, "smaller", "compare").noticed
    assert {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()} == set(TESTS)
    assert (tree / "proxy/sums.py").read_text(encoding="utf-8") == SOURCE


def test_a_mutant_does_not_outlive_its_run(judging: Judging) -> None:
    judge(judging, "smaller", "compare")
    assert judge(judging, "unseen", "arithmetic").outcome == SURVIVED


@pytest.mark.peer("unshare")
def test_the_judges_are_not_root_and_see_no_other_processes() -> None:
    """A mutant may send a signal to any process."""
    if not (prefix := namespace()):
        pytest.skip("user namespaces are forbidden here")
    command = [*prefix, sys.executable, "-c", "import os; print(os.geteuid(), os.getpid())"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "1000 1\n"


# --- Again ---


@pytest.mark.parametrize(
    "killer",
    [
        "tests/proxy/test_sums.py::test_smaller",
        "tests/proxy/test_sums.py::test_renamed",
        "tests/proxy/test_sums.py::test_count",
        "tests/proxy/test_sums.py::test_fails_always",
        "tests/proxy/test_gone.py::test_smaller",
        "",
    ],
)
def test_if_the_test_of_the_record_does_not_notice_it_all_its_judges_are_asked(judging: Judging, killer: str) -> None:
    first = judge(judging, "smaller", "compare")
    verdict = judging.judge_again(replace(first, killer=killer, line=99))
    assert (verdict.outcome, verdict.killer, verdict.line) == (KILLED, first.killer, 99)


def test_a_mutant_that_no_test_notices_any_more_has_survived(judging: Judging) -> None:
    first = replace(
        judge(judging, "unseen", "arithmetic"), outcome=KILLED, killer="tests/proxy/test_sums.py::test_count"
    )
    assert judging.judge_again(first).outcome == SURVIVED


@pytest.mark.parametrize("change", [{"function": "f"}, {"index": 9}, {"file": "proxy/gone.py"}])
def test_a_mutant_whose_place_is_not_there_is_gone(judging: Judging, change: dict[str, object]) -> None:
    first = Verdict("proxy/sums.py", "smaller", "compare", 0, 4, KILLED, "tests/proxy/test_sums.py::test_smaller")
    assert judging.judge_again(replace(first, **change)).outcome == GONE  # type: ignore[arg-type]
