"""The command line: files in and out, bad usage, exit statuses, and text that cannot control a terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from dnsproxy.cli import main
from dnsproxy.doctor.collect import collecting, looking
from dnsproxy.doctor.facts.file import format_facts, parse_facts
from dnsproxy.doctor.facts.model import VERSION, Facts, Host
from dnsproxy.doctor.facts.probes import Outcome
from dnsproxy.doctor.judge import diagnose, paths
from tests.dnsproxy.doctor.making import BALANCER, HOST, HOSTNAME, balancer_probes, facts, installed, service


def doctor(*arguments: str, given: bytes = b"", **environment: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *arguments], input=given, env={"NO_COLOR": "1", **environment})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "facts.json"
    path.write_bytes(format_facts(facts()))
    return path


@pytest.mark.parametrize(
    ("seen", "status"),
    [
        (facts(), 1),
        (installed(), 0),
        (facts(service(points=HOSTNAME), probes=balancer_probes(Outcome.ANSWERED)), 0),
        (facts(probes=(), probed=False), 3),
        (facts(hosts=()), 0),
    ],
    ids=["a fault", "installed", "nothing needed", "from outside", "no hosts"],
)
@pytest.mark.parametrize("output", ["text", "json"])
def test_the_status_is_that_of_the_diagnosis_in_every_format(seen: Facts, status: int, output: str) -> None:
    result = doctor("--from", "-", "--output", output, given=format_facts(seen))
    assert result.exit_code == status, result.stderr
    if output == "json":
        assert json.loads(result.stdout)["status"] == status
    assert result.stderr == ""


def test_a_file_is_judged_and_saved_again(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    result = doctor("--from", str(file), "--save", str(copy))
    assert result.exit_code == 1
    assert parse_facts(copy.read_bytes()) == facts()
    assert "no token, no Secret" in result.stderr
    assert "[short-circuited]" in result.stdout


def test_a_host_narrows_the_diagnosis_of_a_file(file: Path) -> None:
    assert "host-unknown" in doctor("other.example.org", "--from", str(file)).stdout
    assert doctor("APP.example.org.", "--from", str(file)).stdout.startswith(f"{HOST}, Kubernetes")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "/nowhere/facts.json"], "--from /nowhere/facts.json: No such file"),
        (["--from", "-"], "--from -: it holds no facts"),
        (["--from", "-", "--kubeconfig", "x"], "--kubeconfig and --context have no effect with it"),
        (["--from", "-", "--context", "x"], "--kubeconfig and --context have no effect with it"),
        (["not a host"], "not a host"),
        (["https://app.example.org/"], "https://app.example.org/"),
        (["a.example.org", "b.example.org"], "b.example.org"),
        (["--output", "yaml"], "--output"),
        (["--relay", "relay"], "--relay"),
        (["--public-dns", "dns.example.org"], "--public-dns"),
        (["--admin", "8081"], "--admin"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(arguments: list[str], said: str) -> None:
    result = doctor(*arguments)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output


def test_a_file_that_cannot_be_written_is_an_error(file: Path) -> None:
    result = doctor("--from", str(file), "--save", "/nowhere/facts.json")
    assert result.exit_code == 2
    assert "--save /nowhere/facts.json" in result.stderr


def test_without_a_cluster_it_could_not_look(tmp_path: Path) -> None:
    result = doctor("--kubeconfig", str(tmp_path / "none"), KUBECONFIG="", KUBERNETES_SERVICE_HOST="")
    assert result.exit_code == 3


def test_text_from_the_cluster_cannot_control_a_terminal() -> None:
    evil = "\x1b[2J[red]evil[/red]\u202e\r\n"
    seen = replace(facts(), hosts=(Host(HOST, f"Ingress {evil}", evil, (BALANCER,)), Host("b", evil)), rejected=(evil,))
    for output in ("text", "json"):
        result = doctor("--from", "-", "--output", output, given=format_facts(seen))
        assert "\x1b" not in result.stdout
        assert "\u202e" not in result.stdout
    assert "[red]evil" in doctor("--from", "-", given=format_facts(seen)).stdout


def test_colour_is_for_terminals_and_on_request(file: Path) -> None:
    assert "\x1b" not in doctor("--from", str(file)).stdout
    assert "\x1b" not in doctor("--from", str(file), NO_COLOR="").stdout
    assert "\x1b[" in doctor("--from", str(file), NO_COLOR="", FORCE_COLOR="1").stdout


@pytest.mark.parametrize("columns", ["40", "72", "300"])
def test_prose_is_wrapped_and_commands_are_not(file: Path, columns: str) -> None:
    lines = doctor("--from", str(file), COLUMNS=columns).stdout.splitlines()
    commands = [line for line in lines if line.startswith("      ")]
    assert any(line.strip() == "kubectl apply -k deploy" for line in commands)
    prose = [line for line in lines if line.startswith("  ") and line not in commands]
    assert max(map(len, prose)) <= min(int(columns), 120)
    assert all(line == line.rstrip() for line in lines)


def test_the_file_can_come_from_the_environment(file: Path) -> None:
    assert doctor(DNSPROXY_FROM=str(file)).exit_code == 1


def test_a_hundred_hosts_are_shown_by_a_few() -> None:
    hosts: Any = tuple(Host(f"h{number}.example.org", "Ingress a/b", "nginx", (BALANCER,)) for number in range(100))
    assert "and 95 more" in doctor("--from", "-", given=format_facts(facts(hosts=hosts))).stdout


def test_paths_are_found_once_in_a_run(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    find = paths.find_paths

    def counting(seen: Facts) -> paths.Paths:
        calls.append(seen.hostname)
        return find(seen)

    for module in (paths, diagnose, collecting):
        monkeypatch.setattr(module, "find_paths", counting)
    monkeypatch.setattr(looking, "public_server", lambda *_: None)
    assert doctor("--from", str(file)).exit_code == 1
    assert calls == [""]
    assert doctor(HOST, "--from", "-", "--probe", given=format_facts(Facts(VERSION))).exit_code == 1
    assert calls == ["", HOST]
