from __future__ import annotations

from dataclasses import replace

import pytest

from tests.mutants.operators import Mutant
from tests.mutants.record import (
    GONE,
    KILLED,
    LEAST,
    SURVIVED,
    TIMEOUT,
    Verdict,
    draw_sample,
    fallen,
    format_table,
    from_json,
    to_json,
)

KILL = Verdict(
    "proxy/a.py", "f", "compare", 0, 7, KILLED, "tests/proxy/test_a.py::test_x[a::b]", ("tests/proxy/test_a.py",)
)
LOOP = replace(KILL, index=1, outcome=TIMEOUT)
LEFT = replace(KILL, file="sidecar/b/c.py", outcome=SURVIVED, killer="", judges=())
LOST = replace(KILL, index=2, outcome=GONE, killer="")
ALL = [KILL, LOOP, LOST, LEFT]


def mutants(count: int) -> list[Mutant]:
    return [Mutant("f", "constant", index, 1, index, index + 1, "0") for index in range(count)]


# --- The sample ---


def test_each_folder_has_its_part_and_a_small_one_its_least() -> None:
    sample = draw_sample(
        {"a/x.py": mutants(60), "a/y.py": mutants(41), "b/z.py": mutants(9), "c/w.py": mutants(2)}, one_of=10, seed=0
    )
    parts = [sum(file.startswith(folder) for file, _ in sample) for folder in "abc"]
    assert parts == [11, LEAST, 2]


def test_the_same_sources_have_the_same_sample_and_another_seed_another() -> None:
    sources = {"a/x.py": mutants(100)}
    first, again, other = (draw_sample(sources, one_of=10, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_a_change_of_another_folder_changes_nothing() -> None:
    alone = draw_sample({"a/x.py": mutants(100)}, one_of=10, seed=0)
    beside = draw_sample({"b/y.py": mutants(50), "a/x.py": mutants(100)}, one_of=10, seed=0)
    assert [one for one in beside if one[0] == "a/x.py"] == alone


# --- The record ---


def test_a_record_is_read_as_it_was_written() -> None:
    assert from_json(to_json(ALL)) == ALL


def test_a_record_may_be_empty() -> None:
    assert from_json(to_json([])) == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"tests": [], "modules": [{"module": "a"}]}', '{"tests": 1, "modules": 2}']
)
def test_what_is_no_record_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        from_json(text)


# --- The tables ---


def cells(table: str) -> dict[str, list[str]]:
    """The figures of each row that has any, by its name."""
    rows = (line.split() for line in table.splitlines()[2:])
    return {
        " ".join(word for word in row if not word[0].isdigit()): [word for word in row if word[0].isdigit()]
        for row in rows
    }


def test_the_table_counts_what_is_noticed_and_not_what_is_gone() -> None:
    assert cells(format_table(ALL)) == {
        "proxy": ["2", "2", "100%"],
        "sidecar/b": ["1", "0", "0%"],
        "all of proxy": ["2", "2", "100%"],
        "all of sidecar": ["1", "0", "0%"],
        "everything": ["3", "2", "67%"],
    }


def test_the_table_compares_the_same_mutants() -> None:
    now = [replace(KILL, outcome=SURVIVED), LOOP, LOST, LEFT]
    before = [KILL, LOOP, replace(LOST, outcome=KILLED), LEFT]
    assert cells(format_table(now, before))["everything"] == ["3", "67%", "1", "33%"]


def test_what_was_noticed_and_is_not_now_has_fallen() -> None:
    now = replace(KILL, outcome=SURVIVED)
    assert fallen([now, LOOP, LOST, LEFT], ALL) == [now]


@pytest.mark.parametrize("before", [[], [replace(KILL, outcome=SURVIVED)], [replace(KILL, line=8)]])
def test_a_survivor_that_was_not_noticed_before_has_not_fallen(before: list[Verdict]) -> None:
    assert fallen([replace(KILL, outcome=SURVIVED)], before) == []
