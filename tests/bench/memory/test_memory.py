"""The benchmark of memory: what it reads from the kernel, its table, and one run of a command that does not start."""

from __future__ import annotations

import json
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.bench.kit.command_rows import Row
from tests.bench.memory import __main__ as command
from tests.bench.memory.commands import COMMANDS, has_answered, is_ready
from tests.bench.memory.report import RESIDENT, format_table, make_rows
from tests.bench.memory.run import Options, run_bench
from tests.bench.memory.samples import Sample, parse_sample
from tests.kit.networks import root
from tests.kit.ports import free_port

__all__ = ["root"]

AGENT = "wholeip run"

ROLLUP = """\
55d0-7ffd ---p 00000000 00:00 0    [rollup]
Rss:              40000 kB
Pss:              30000 kB
Pss_Dirty:        20000 kB
Shared_Clean:     10000 kB
Private_Clean:     4000 kB
Private_Dirty:    21000 kB
"""


def test_memory_is_in_megabytes() -> None:
    found = parse_sample(ROLLUP, cpu=0.5)
    assert (found.resident, found.proportional, found.unique) == pytest.approx((40.96, 30.72, 25.6))
    assert found.cpu == 0.5


@pytest.mark.parametrize("text", ["", "55d0-7ffd ---p 00000000 00:00 0    [rollup]\n"], ids=["empty", "only a head"])
def test_a_process_without_memory_is_an_error(text: str) -> None:
    with pytest.raises(ProcessLookupError):
        parse_sample(text, cpu=0)


def test_the_table_has_each_figure_and_each_reason() -> None:
    table = format_table(
        [*make_rows("x", {RESIDENT: 36}, [Sample(40, 1, 1, 0.5)]), Row("y", RESIDENT, None, "MB", fault="z")]
    )
    lines = table.splitlines()
    assert ["x", "resident", "40.00", "(40.00-40.00)", "MB", "<=", "36", "NO"] in [line.split() for line in lines]
    assert "y: not measured: z" in lines
    assert "beside" not in lines[0]


def test_a_command_that_does_not_start_costs_its_own_rows() -> None:
    broken = replace(COMMANDS[0], words=lambda _port, _admin: ("dnsproxy", "no-such-command"))
    (row,) = run_bench(Options([broken], rounds=1, rest=0))
    assert row.figure is None
    assert "no-such-command" in row.fault


@pytest.mark.parametrize("name", [one.name for one in COMMANDS if one.name != AGENT])
def test_one_round_measures_a_command(name: str, tmp_path: Path) -> None:
    check_one_round(name, tmp_path / "figures.json")


@pytest.mark.usefixtures("root")
@pytest.mark.peer("nft", "ip", "unshare")
def test_one_round_measures_the_agent_in_a_network_of_its_own(tmp_path: Path) -> None:
    before = subprocess.run(["nft", "list", "tables"], capture_output=True, check=True).stdout
    check_one_round(AGENT, tmp_path / "figures.json")
    assert subprocess.run(["nft", "list", "tables"], capture_output=True, check=True).stdout == before


def check_one_round(name: str, file: Path) -> None:
    """A round of one command has a figure in each of its rows."""
    ran = CliRunner().invoke(command.main, ["--command", name, "--rounds", "1", "--rest", "0", "--json", str(file)])
    assert ran.exit_code == 0, ran.output
    rows = json.loads(file.read_text())["rows"]
    assert {row["command"] for row in rows} == {name}
    assert all(row["figure"]["median"] > 0 for row in rows)


def test_an_agent_without_root_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (agent,) = (one for one in COMMANDS if one.name == AGENT)
    (row,) = run_bench(Options([agent], rounds=1, rest=0))
    assert (row.figure, row.fault) == (None, "it needs root, for a network of its own")


def test_a_program_is_ready_when_its_admin_port_says_so() -> None:
    assert not is_ready(0, free_port())


def test_a_silent_port_has_not_answered() -> None:
    assert not has_answered(free_port())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        assert not has_answered(silent.getsockname()[1])


@pytest.mark.parametrize(
    "arguments", [["--rounds", "0"], ["--rest", "-1"], ["--command", "x"], ["--python", "/none"], ["--beside", "/none"]]
)
def test_a_wrong_option_is_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(command.main, arguments).exit_code == 2
