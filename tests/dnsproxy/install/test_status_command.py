"""`dnsproxy status` as a process: a cluster over HTTP, DNS servers on loopback."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
import trio
from click.testing import CliRunner

from dnsproxy.cli import main
from tests.dnsproxy.cluster_dns.test_probing import dnsproxy, with_rcode
from tests.dnsproxy.install.report.test_verdict import with_stanza
from tests.kit.faulty_upstream import FaultyUpstream, faulty_upstream
from tests.kit.manifest_api import FakeApi, serving
from tests.kit.manifest_cluster import Manifest, manifests
from tests.kit.upstream_replies import NXDOMAIN

COLOURLESS: Final = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}


async def run(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "dnsproxy", "status", "--kubeconfig", str(kubeconfig), *arguments]
    return await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False, env=COLOURLESS)


async def ask(
    objects: Sequence[Manifest], server: FaultyUpstream, folder: Path, *arguments: str
) -> tuple[int, str, str]:
    """Status, stdout and stderr, with one server that is both the cluster's DNS and dnsproxy."""
    where = ["--dns", str(server.endpoint), "--address", str(server.endpoint)]
    with serving(FakeApi(objects), folder) as kubeconfig:
        done = await run(kubeconfig, *where, *arguments)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


async def test_a_cluster_with_the_stanza_and_dnsproxy_is_installed_and_loaded(tmp_path: Path) -> None:
    async with faulty_upstream(dnsproxy) as server:
        status, output, errors = await ask(with_stanza(), server, tmp_path)
    assert (status, errors) == (0, "")
    lines = output.splitlines()
    assert lines[0] == "service     ok  kube-system/kube-dns at 10.96.0.10"
    assert f"loaded      ok  {server.endpoint} for .: 8 of 8 dnsproxy" in lines
    assert f"dnsproxy    ok  {server.endpoint} for .: 8 of 8 dnsproxy" in lines
    assert lines[-1] == "installed and loaded: the cluster's DNS asks dnsproxy"
    assert "\x1b" not in output


async def test_a_stanza_that_is_not_loaded_is_status_1(tmp_path: Path) -> None:
    async with faulty_upstream(with_rcode(NXDOMAIN)) as server:
        status, output, errors = await ask(with_stanza(), server, tmp_path)
    assert (status, errors) == (1, "")
    assert "written, not loaded: dnsproxy does not answer at" in output.splitlines()[-1]


async def test_a_cluster_as_it_was_delivered_is_status_1(tmp_path: Path) -> None:
    async with faulty_upstream(with_rcode(NXDOMAIN)) as server:
        status, output, _ = await ask(manifests("aks"), server, tmp_path)
    assert status == 1
    assert output.splitlines()[-1] == "not installed; the method import fits"


async def test_json_is_a_document_of_the_same_status(tmp_path: Path) -> None:
    async with faulty_upstream(dnsproxy) as server:
        status, output, errors = await ask(with_stanza(), server, tmp_path, "--output", "json")
    document = json.loads(output)
    assert (status, document["status"], errors) == (0, 0, "")
    assert document["verdict"].startswith("installed and loaded")
    assert document["loaded"][0]["state"] == "yes"
    assert output.isascii()


async def test_what_rbac_does_not_allow_is_status_3_and_named(tmp_path: Path) -> None:
    async with faulty_upstream(dnsproxy) as server:
        with serving(FakeApi(with_stanza(), forbidden=["/daemonsets"]), tmp_path) as kubeconfig:
            done = await run(kubeconfig, "--dns", str(server.endpoint))
    assert done.returncode == 3
    assert b"not allowed to list daemonsets.apps in namespace kube-system" in done.stdout.splitlines()[-1]


async def test_another_service_can_be_named(tmp_path: Path) -> None:
    async with faulty_upstream(with_rcode(NXDOMAIN)) as server:
        name = ["--dns-service", "openshift-dns/dns-default"]
        status, output, _ = await ask(manifests("openshift"), server, tmp_path, *name)
        assert status == 1
        assert output.split()[:3] == ["service", "ok", "openshift-dns/dns-default"]
        status, output, _ = await ask(manifests("openshift"), server, tmp_path, "--dns-service", "kube-system/other")
        assert status == 1
        assert "there is no Service other in namespace kube-system" in output.splitlines()[-1]


async def test_without_a_stanza_dnsproxy_is_asked_at_its_own_service(tmp_path: Path) -> None:
    service = {
        "kind": "Service",
        "metadata": {"name": "mine", "namespace": "switchback"},
        "spec": {"clusterIP": "192.0.2.1", "ports": [{"port": 53, "protocol": "UDP"}]},
    }
    async with faulty_upstream(with_rcode(NXDOMAIN)) as server:
        with serving(FakeApi([*manifests("kubeadm"), service]), tmp_path) as kubeconfig:
            done = await run(kubeconfig, "--dns", str(server.endpoint), "--service", "switchback/mine")
            none = await run(kubeconfig, "--dns", str(server.endpoint))
    assert b"192.0.2.1 for .: 8 of 8 " in done.stdout
    assert b"not asked: no address of it is known" in none.stdout


async def test_a_terminal_gets_colours(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    async with faulty_upstream(dnsproxy) as server:
        with serving(FakeApi(with_stanza()), tmp_path) as kubeconfig:
            arguments = ["--kubeconfig", str(kubeconfig), "--dns", str(server.endpoint)]
            command = [sys.executable, "-m", "dnsproxy", "status", *arguments, "--address", str(server.endpoint)]
            await trio.run_process(command, stdout=follower, check=False, env={**COLOURLESS, "TERM": "xterm"})
    os.close(follower)
    text = await trio.to_thread.run_sync(os.read, leader, 65_536)
    os.close(leader)
    assert b"\x1b[32mok" in text


def test_a_cluster_that_cannot_be_reached_is_one_line_and_status_3(tmp_path: Path) -> None:
    with serving(FakeApi([]), tmp_path) as kubeconfig:
        pass
    result = CliRunner().invoke(main, ["status", "--kubeconfig", str(kubeconfig)])
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.count("\n") == 1
    assert "could not be asked" in result.stderr
    result = CliRunner().invoke(main, ["status", "--kubeconfig", str(tmp_path / "none")])
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (3, "", 1)


@pytest.mark.parametrize(
    "bad",
    [
        ["--service", "../secrets"],
        ["--service", "dnsproxy"],
        ["--service", "switchback/dnsproxy/x"],
        ["--dns-service", "Kube-System/kube-dns"],
        ["--dns-service", "kube-system/-x"],
        ["--dns-service", "/kube-dns"],
        ["--dns-service", "a" * 254 + "/kube-dns"],
        ["--dns", "dns.example.org"],
        ["--address", "10.96.0.53:0"],
        ["--output", "yaml"],
        ["--nope"],
        ["extra"],
    ],
    ids=" ".join,
)
def test_bad_usage_is_status_2(bad: list[str]) -> None:
    result = CliRunner().invoke(main, ["status", *bad])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")


def test_all_bad_values_are_reported_together() -> None:
    result = CliRunner().invoke(
        main, ["status", "--dns-service", "X", "--service", "Y", "--dns", "z"], env={"DNSPROXY_OUTPUT": "q"}
    )
    assert result.exit_code == 2
    assert [line.split(":")[1].strip() for line in result.stderr.splitlines()] == [
        "--dns-service",
        "--service",
        "--dns",
        "--output (from DNSPROXY_OUTPUT)",
    ]
