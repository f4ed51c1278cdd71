"""The command as a whole: its list of subcommands, and the modules that listing imports."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from dnsproxy.cli import COMMANDS, main


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_where_it_is_said_to_be(name: str) -> None:
    command = main.get_command(main.make_context("dnsproxy", [name]), name)
    assert command is not None
    assert command.name == name


def test_help_and_completion_have_every_command() -> None:
    listed = CliRunner().invoke(main, ["--help"]).stdout.partition("Commands:")[2].partition("Examples:")[0]
    lines = [line for line in listed.splitlines() if line.strip()]
    assert [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "] == sorted(COMMANDS)
    # Each with its summary.
    assert all(len(line.split()) > 2 for line in lines)
    completions = ShellComplete(main, {}, "dnsproxy", "_DNSPROXY_COMPLETE").get_completions([], "")
    assert [item.value for item in completions] == sorted(COMMANDS)


@pytest.mark.parametrize(("wrong", "meant"), [("instal", "install"), ("docter", "doctor"), ("tables", "table")])
def test_a_command_that_is_not_there_is_answered_with_its_neighbours(wrong: str, meant: str) -> None:
    result = CliRunner().invoke(main, [wrong])
    assert result.exit_code == 2
    assert meant in result.stderr


def test_the_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(main, ["--version"]).stdout.startswith("dnsproxy, version ")


def test_a_command_imports_none_of_the_others() -> None:
    script = (
        "import sys; from dnsproxy.cli import main; main(['serve', '--help'], standalone_mode=False); "
        "print(*sorted(name for name in sys.modules if name.endswith('command')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.split() == ["dnsproxy.serve.command"]
