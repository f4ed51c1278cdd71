from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.bench.kit.interpreters import CannotUse, Interpreter, describe, find_optimised, parse_description


def test_a_python_describes_itself() -> None:
    found = describe(sys.executable)
    assert found.minor == sys.version_info[:2]
    assert found.prefix == sys.base_prefix
    assert sys.executable in found.label


@pytest.mark.parametrize(
    ("text", "optimised"),
    [
        pytest.param("3 13 3.13.1 /usr/local True\n", True, id="says so"),
        pytest.param("3 11 3.11.2 /usr False\n", True, id="the system's"),
        pytest.param("3 11 3.11.7 /home/one/versions/3.11.7 False\n", False, id="built by hand"),
    ],
)
def test_a_python_is_optimised(text: str, optimised: bool) -> None:
    assert parse_description("python3", text).is_optimised is optimised


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("usage: something else", id="no Python"),
        pytest.param("three 11 3.11.2 /usr True", id="no number"),
        pytest.param("3 10 3.10.13 /usr True", id="too old"),
    ],
)
def test_anything_else_cannot_be_used(text: str) -> None:
    with pytest.raises(CannotUse):
        parse_description("program", text)


def test_a_program_that_is_not_there_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(CannotUse):
        describe(str(tmp_path / "python3.99"))


def test_each_python_on_the_path_is_found_once_and_what_only_looks_like_one_not_at_all(tmp_path: Path) -> None:
    def make(name: str, *answer: str) -> str:
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {' '.join(answer)}\n")
        program.chmod(0o755)
        return str(program)

    first = make("python3.12", "3", "12", "3.12.4", "/opt", "True")
    make("python3.13", "no Python at all")
    make("python3.14", "3", "14", "3.14.0", "/opt", "False")
    (tmp_path / "python3.15").symlink_to(first)
    found = list(find_optimised([str(tmp_path), str(tmp_path)]))
    assert found == [Interpreter(first, (3, 12), "3.12.4", "/opt", says_optimised=True)]
