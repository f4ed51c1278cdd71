from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.bench.relay import __main__ as command
from tests.bench.relay.configs import Site, setup_backend
from tests.bench.relay.peers import GO_SOURCE, OURS, PEERS, go_version, ours_with, peers_for
from tests.bench.relay.workloads import WORKLOADS


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command.main, list(arguments))


def test_help_has_every_workload() -> None:
    shown = run("--help").output
    assert "Examples:" in shown
    for workload in WORKLOADS:
        assert f"  {workload.name} " in shown


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--workload", "downloads"), id="unknown workload"),
        pytest.param(("--rounds", "0"), id="no rounds"),
        pytest.param(("--seconds", "0"), id="no time"),
        pytest.param(("download",), id="a workload without its flag"),
    ],
)
def test_bad_usage_is_status_2_and_measures_nothing(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


def test_the_long_ones_are_only_for_who_asks() -> None:
    assert [each.name for each in command.choose((), long=False) if each.only_if_named] == []
    assert command.choose((), long=True) == list(WORKLOADS)
    assert [each.name for each in command.choose(("upload-5g",), long=False)] == ["upload-5g"]


@pytest.mark.parametrize("peer", [peer for peer in PEERS if peer.setup], ids=lambda peer: peer.label)
def test_each_relay_is_told_its_port_and_its_backend(peer: Any) -> None:
    setup = peer.setup(Site("program", Path("/folder"), 1111, 2222))
    told = " ".join([*setup.command, *setup.files.values()])
    assert "127.0.0.1:1111" in told
    assert "127.0.0.1:2222" in told


def test_what_is_behind_them_demands_the_header_on_one_port_alone() -> None:
    (configuration,) = setup_backend(Site("nginx", Path("/folder"), 1111, 2222)).files.values()
    assert "listen 127.0.0.1:1111 proxy_protocol" in configuration
    assert "listen 127.0.0.1:2222 backlog" in configuration


def test_a_build_of_the_go_relay_is_named_by_all_of_its_source(tmp_path: Path) -> None:
    for name in ("go.mod", "main.go"):
        (tmp_path / name).write_bytes((GO_SOURCE / name).read_bytes())
    assert go_version(tmp_path) == go_version(GO_SOURCE)
    for name in ("go.mod", "main.go"):
        before = go_version(tmp_path)
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b"\n")
        assert go_version(tmp_path) != before
    joined = (GO_SOURCE / "go.mod").read_bytes() + (GO_SOURCE / "main.go").read_bytes()
    assert go_version(GO_SOURCE) == hashlib.sha256(joined).hexdigest()[:12]


def test_another_python_is_measured_beside_ours_where_that_matters() -> None:
    more = [ours_with("ours, another", "/usr/bin/python3.11")]
    labels = {
        each.name: [peer.label for peer in peers_for(each, (OURS, "haproxy"), more=more)][:2] for each in WORKLOADS
    }
    assert labels["new"] == [OURS, "ours, another"]
    assert "ours, another" not in labels["download"] + labels["new-2"] + labels["idle"]
    assert peers_for(WORKLOADS[0], ("haproxy",), more=more) == peers_for(WORKLOADS[0], ("haproxy",))


def test_each_relay_is_told_with_how_many_processes_or_threads() -> None:
    for peer in PEERS:
        if peer.setup and peer.most_processes > 1:
            setup = peer.setup(Site("program", Path("/folder"), 1111, 3333, 2))
            assert "2" in " ".join([*setup.command, *setup.files.values(), *setup.environment.values()]).split()
