"""Commands that are imported only when they are called."""

from __future__ import annotations

import sys

import click
import pytest

from sidecar.cli.lazy_commands import LazyCommands

PLACES = {
    "one": "tests.sidecar.cli.lazily:one",
    "gone": "tests.sidecar.cli.lazily:gone",
    "lost": "tests.sidecar.cli.nowhere:one",
}
MODULE = "tests.sidecar.cli.lazily"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, MODULE, raising=False)


def test_nothing_is_imported_to_know_what_there_is() -> None:
    commands = LazyCommands(PLACES)
    assert list(commands) == ["one", "gone", "lost"]
    assert len(commands) == 3
    assert "one" in commands
    assert "two" not in commands
    assert MODULE not in sys.modules


def test_a_command_is_imported_once_when_it_is_looked_up() -> None:
    commands = LazyCommands(PLACES)
    assert commands["one"].name == "one"
    assert MODULE in sys.modules
    assert commands["one"] is commands["one"]
    assert commands.get("two") is None


@pytest.mark.parametrize(("name", "error"), [("two", KeyError), ("gone", AttributeError), ("lost", ImportError)])
def test_a_place_that_is_not_there_is_an_error_of_the_program(name: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        LazyCommands(PLACES)[name]


def test_commands_can_be_added_and_taken_out() -> None:
    commands = LazyCommands(PLACES)
    two = click.Command("two")
    commands["two"] = two
    assert commands["two"] is two
    del commands["one"]
    assert "one" not in commands
    with pytest.raises(KeyError):
        del commands["one"]
