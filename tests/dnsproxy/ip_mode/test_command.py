"""The command line of `dnsproxy ip-mode`: its modes, and the flags that each of them reads (options.py too)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dnsproxy.ip_mode.command import ip_mode
from dnsproxy.ip_mode.options import MODES
from sidecar.cli.usage import Group
from sidecar.kubernetes.errors import Forbidden
from tests.kit.ports import free_port

group = Group("dnsproxy", context_settings={"auto_envvar_prefix": "DNSPROXY"})
group.add_command(ip_mode)


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(group, ["ip-mode", *arguments], env=env)


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        pytest.param(["--apply", "--remove"], ["--apply, --remove: one of them at a time"], id="two modes"),
        pytest.param(["--rewrite"], ["--rewrite: is for --apply or --remove only"], id="rewrite what"),
        pytest.param(["--dry-run"], ["--dry-run: is for --apply or --remove only"], id="dry run of nothing"),
        pytest.param(
            ["--output", "json"], ["--output: is for --apply, --remove or --check only"], id="the policy is YAML"
        ),
        pytest.param(
            ["--service", "a/b"],
            ["--service: is for --apply, --remove, --check or --watch only"],
            id="a Service of no mode",
        ),
        pytest.param(
            ["--apply", "--api-version", "v1"],
            ["--api-version: is for printing the policy only"],
            id="the cluster knows its version",
        ),
        pytest.param(
            ["--remove", "--class", "a", "--balancer-ends-connections"],
            ["--class: is for --apply only", "--balancer-ends-connections: is for --apply, --check or --watch only"],
            id="all faults together",
        ),
        pytest.param(["--watch"], ["--watch: needs a --service NAMESPACE/NAME"], id="a watch of nothing"),
        pytest.param(["--apply", "--watch"], ["--apply, --watch: one of them at a time"], id="once and for ever"),
        pytest.param(["--admin", "off"], ["--admin: is for --watch only"], id="an admin port without a watch"),
        pytest.param(
            ["--watch", "--service", "a/b", "--class", "a", "--dry-run"],
            ["--class: is for --apply only", "--dry-run: is for --apply or --remove only"],
            id="flags that a watch does not read",
        ),
        pytest.param(["--apply", "--service", "web"], ["--service: 'web' is not NAMESPACE/NAME"], id="no namespace"),
        pytest.param(["--apply", "--service", "a/../b"], ["--service: 'a/../b' is not"], id="a path"),
        pytest.param(["--class", 'a"] + ["b'], ["--class: 'a\"] + [\"b' is not a loadBalancerClass"], id="no class"),
        pytest.param(["--apply", "--class", ""], ["--class: '' is not a loadBalancerClass"], id="an empty class"),
        pytest.param(
            ["--check", "--trial", "--service", "a/b", "--service", "a/c"],
            ["--trial tries one Service"],
            id="a trial of two",
        ),
        pytest.param(["--remove", "--output", "yaml"], ["--output: 'yaml' is not one of"], id="another format"),
    ],
)
def test_flags_without_meaning_together_are_named(arguments: list[str], faults: list[str]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    lines = result.stderr.splitlines()
    assert len(lines) == len(faults)
    assert all(line.startswith(f"Error: {fault}") for line, fault in zip(lines, faults, strict=True)), lines


def test_flags_of_other_commands_in_the_environment_are_no_error() -> None:
    result = run("--api-version", "v1", env={"DNSPROXY_DRY_RUN": "1", "DNSPROXY_OUTPUT": "json"})
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("---\napiVersion: admissionregistration.k8s.io/v1\n")


@pytest.mark.parametrize("mode", MODES)
def test_each_mode_needs_a_cluster_and_says_which_it_looked_for(mode: str) -> None:
    services = ["--service", "a/b"] if mode == "watch" else []
    result = run(f"--{mode}", "--kubeconfig", "/nonexistent", *services)
    assert result.exit_code != 0
    assert "/nonexistent" in result.stderr


@pytest.mark.parametrize("arguments", [(), ("--apply",), ("--check", "app.example.org")], ids=" ".join)
def test_a_cluster_that_does_not_answer_is_named_with_what_to_do(arguments: Sequence[str], tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    file = write_kubeconfig(tmp_path / "config", url)
    result = run("--kubeconfig", str(file), *arguments)
    assert result.exit_code == 3
    assert f"the API server at {url} ({file}, context a) could not be asked: " in result.stderr
    assert result.stderr.endswith("log in again, or choose another --context\n")


def test_a_check_that_is_refused_half_way_names_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object) -> None:
        raise Forbidden("403: no")

    monkeypatch.setattr("dnsproxy.ip_mode.check.command.read_check", refuse)
    file = write_kubeconfig(tmp_path / "config", "http://192.0.2.1")
    result = run("--kubeconfig", str(file), "--check", "app.example.org")
    assert result.exit_code == 3
    said = f"the API server at http://192.0.2.1 ({file}, context a) could not be asked: 403: no; ask for this right"
    assert said in result.stderr


def write_kubeconfig(path: Path, url: str) -> Path:
    document = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "b", "user": "c"}}],
        "clusters": [{"name": "b", "cluster": {"server": url}}],
        "users": [{"name": "c", "user": {}}],
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
