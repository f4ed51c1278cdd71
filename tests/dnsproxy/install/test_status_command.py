"""`dnsproxy status` as a process: a cluster over HTTP, DNS servers on loopback."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from click.testing import CliRunner

from dnsproxy.cli import main
from tests.dnsproxy.cluster_dns.test_probing import dnsproxy, with_rcode
from tests.dnsproxy.install.report.test_verdict import with_stanza
from tests.kit import serve_process
from tests.kit.faulty_upstream import FaultyUpstream, faulty_upstream
from tests.kit.manifest_api import FakeApi, serving
from tests.kit.manifest_cluster import Manifest, manifests, pick
from tests.kit.manifest_edits import plan, play, wanted
from tests.kit.prepared_program import run_shared
from tests.kit.upstream_replies import NXDOMAIN

COLOURLESS: Final = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}


async def run(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return await run_shared("dnsproxy", "status", "--kubeconfig", str(kubeconfig), *arguments, environment=COLOURLESS)


async def ask(
    objects: Sequence[Manifest], server: FaultyUpstream, folder: Path, *arguments: str
) -> tuple[int, str, str]:
    """Status, stdout and stderr, with one server that is both the cluster's DNS and dnsproxy."""
    where = ["--dns", str(server.endpoint), "--address", str(server.endpoint)]
    with serving(FakeApi(objects), folder) as kubeconfig:
        done = await run(kubeconfig, *where, *arguments)
    return done.returncode, done.stdout, done.stderr


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


async def test_the_last_event_of_an_installer_is_shown(tmp_path: Path) -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "dnsproxy-install-1", "namespace": "switchback"},
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "reportingController": "switchback.dev/dnsproxy-install",
        "reason": "StanzaRefused",
        "type": "Warning",
        "note": "no dnsproxy\nis ready",
    }
    async with faulty_upstream(dnsproxy) as server:
        _, output, _ = await ask([*with_stanza(), event], server, tmp_path)
        _, document, _ = await ask([*with_stanza(), event], server, tmp_path, "--output", "json")
        _, without, _ = await ask(with_stanza(), server, tmp_path, "--output", "json")
    (row,) = [line for line in output.splitlines() if line.startswith("installer ")]
    assert "no" in row.split()
    assert "2026-01-02T03:04:05.000000Z: StanzaRefused: no dnsproxy" in row
    assert json.loads(document)["event"]["note"] == "no dnsproxy\nis ready"
    assert json.loads(without)["event"] is None


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


def installed() -> list[Manifest]:
    objects = manifests("kubeadm")
    return play(objects, plan(objects))


def edited(old: str, new: str) -> list[Manifest]:
    """A cluster with the stanza of an install and a later edit."""
    objects = installed()
    data = pick(objects, "ConfigMap", "coredns")["data"]
    assert old in data["Corefile"]
    data["Corefile"] = data["Corefile"].replace(old, new)
    return objects


EDITS = [
    pytest.param("\n    forward . /etc/resolv.conf", "\n    forward . 192.0.2.1", id="the original forward"),
    pytest.param("policy sequential", "policy random", id="between the markers"),
    pytest.param("max_concurrent 1000", "max_concurrent 7000", id="an option of the original"),
]


@pytest.mark.parametrize(("old", "new"), EDITS)
async def test_a_stanza_that_is_loaded_and_not_what_an_install_would_write_is_status_1_with_the_difference(
    old: str, new: str, tmp_path: Path
) -> None:
    async with faulty_upstream(dnsproxy) as server:
        status, output, errors = await ask(edited(old, new), server, tmp_path)
        as_json = await ask(edited(old, new), server, tmp_path, "--output", "json")
    assert (status, errors) == (1, "")
    assert output.splitlines()[-1] == (
        "installed and loaded, and out of date: Corefile in ConfigMap kube-system/coredns differs from what an install "
        "would write now; run `dnsproxy install` again"
    )
    assert "up to date  no" in output
    assert {line.strip()[:1] for line in output.splitlines()} >= {"-", "+"}
    document = json.loads(as_json[1])
    assert (as_json[0], document["status"]) == (1, 1)
    assert document["drift"]["diff"].startswith("--- a/kube-system/coredns/Corefile\n")
    assert document["drift"]["target"] == {"config_map": "kube-system/coredns", "key": "Corefile"}
    assert [one["addresses"] for one in document["installed"]] == [["10.96.0.53:53"]]


async def test_after_another_install_the_same_cluster_is_up_to_date(tmp_path: Path) -> None:
    objects = edited("\n    forward . /etc/resolv.conf", "\n    forward . 192.0.2.1")
    async with faulty_upstream(dnsproxy) as server:
        status, output, _ = await ask(play(objects, plan(objects)), server, tmp_path)
    assert (status, "up to date" in output) == (0, False)


async def test_a_stanza_out_of_date_that_is_not_loaded_has_both_causes(tmp_path: Path) -> None:
    async with faulty_upstream(with_rcode(NXDOMAIN)) as server:
        status, output, _ = await ask(edited("policy sequential", "policy random"), server, tmp_path)
    assert status == 1
    assert "written, not loaded: Corefile in ConfigMap kube-system/coredns differs" in output.splitlines()[-1]
    assert "dnsproxy does not answer at" in output.splitlines()[-1]


def ingress(*hosts: str) -> Manifest:
    rules = [{"host": host} for host in hosts]
    return {"kind": "Ingress", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"rules": rules}}


def import_cluster(*hosts: str) -> list[Manifest]:
    """A cluster whose stanza is for named zones, with an Ingress."""
    objects = manifests("k3s")
    return [*play(objects, plan(objects, wanted("example.org"))), ingress(*hosts)]


async def test_hosts_outside_the_zones_of_the_stanza_are_status_1_and_named(tmp_path: Path) -> None:
    objects = import_cluster("a.example.org", "new.example.net")
    async with faulty_upstream(dnsproxy) as server:
        status, output, errors = await ask(objects, server, tmp_path)
        limited, *_ = await ask(objects, server, tmp_path, "--zone", "example.org")
        _, text, _ = await ask(objects, server, tmp_path, "--output", "json")
        covered, *_ = await ask(import_cluster("a.example.org"), server, tmp_path)
    assert (status, limited, covered, errors) == (1, 0, 0, "")
    assert "zones       no  example.net missing, for new.example.net" in output.splitlines()
    assert output.splitlines()[-1] == (
        "installed and loaded, and out of date: its zones do not contain new.example.net; run `dnsproxy install` again,"
        " which adds example.net"
    )
    coverage = json.loads(text)["coverage"]
    assert (coverage["hosts"], coverage["zones"], coverage["chosen"]) == (["new.example.net"], ["example.net"], False)


async def test_hosts_in_a_zone_that_an_install_leaves_out_are_a_note(tmp_path: Path) -> None:
    async with faulty_upstream(dnsproxy) as server:
        status, output, _ = await ask(import_cluster("a.example.org", "x.10.in-addr.arpa"), server, tmp_path)
    assert status == 0, output
    assert "zones       part  10.in-addr.arpa missing, for x.10.in-addr.arpa" in output.splitlines()


HOSTS = "    hosts {\n       192.0.2.1 app.example.org\n       fallthrough\n    }\n    # BEGIN"
REWRITE = "    rewrite name suffix .example.org ingress.example.net\n    # BEGIN"


@pytest.mark.parametrize(
    ("old", "new", "line", "hosts"),
    [
        pytest.param("    # BEGIN", HOSTS, "hosts (", ["app.example.org"], id="hosts"),
        pytest.param("    # BEGIN", REWRITE, "rewrite (", ["app.example.org", "shop.example.org"], id="a rewrite"),
        pytest.param(
            ".:53 {",
            "example.org:53 {\n    forward . 192.0.2.9\n}\n.:53 {",
            "the server block of example.org:53 (",
            ["app.example.org", "shop.example.org"],
            id="a block of its zone",
        ),
    ],
)
async def test_hosts_that_another_line_answers_before_the_stanza_are_status_1_with_that_line(
    old: str, new: str, line: str, hosts: list[str], tmp_path: Path
) -> None:
    objects = [*edited(old, new), ingress("shop.example.org", "app.example.org", "other.example.net")]
    async with faulty_upstream(dnsproxy) as server:
        status, output, _ = await ask(objects, server, tmp_path)
        _, text, _ = await ask(objects, server, tmp_path, "--output", "json")
        free, *_ = await ask([*edited(old, new), ingress("other.example.net")], server, tmp_path)
    assert (status, free) == (1, 0)
    place = "Corefile in ConfigMap kube-system/coredns, line "
    assert f"hosts       no  {line}{place}" in output
    assert f") answers {', '.join(hosts)} before the stanza is asked" in output
    assert output.splitlines()[-1].startswith(f"installed and loaded, and not asked for every host: {line}{place}")
    assert [row["hostname"] for row in json.loads(text)["taken"]] == hosts


async def test_without_the_right_to_list_ingresses_it_is_unknown_whether_a_line_takes_a_host(tmp_path: Path) -> None:
    async with faulty_upstream(dnsproxy) as server:
        where = ["--dns", str(server.endpoint), "--address", str(server.endpoint), "--output", "json"]
        with serving(FakeApi(edited("    # BEGIN", HOSTS), forbidden=("/ingresses",)), tmp_path) as kubeconfig:
            done = await run(kubeconfig, *where)
    document = json.loads(done.stdout)
    assert done.returncode == 3
    assert ("taken", "ingresses.networking.k8s.io") in [
        (one["fact"], one["right"]["resource"]) for one in document["unknown"]
    ]


DENIED = [
    pytest.param("/services/kube-dns", "get services kube-dns in namespace kube-system",
                 {"service", "server", "node-local", "method", "installed", "zones"}, id="the DNS Service"),
    pytest.param("/kube-system/deployments", "list deployments.apps in namespace kube-system",
                 {"server", "method", "installed", "zones"}, id="Deployments"),
    pytest.param("/kube-system/daemonsets", "list daemonsets.apps in namespace kube-system",
                 {"node-local", "method", "up to date", "zones"}, id="DaemonSets"),
    pytest.param("/configmaps/coredns", "get configmaps coredns in namespace kube-system",
                 {"method", "installed", "zones"}, id="the Corefile"),
    pytest.param("/configmaps/coredns-custom", "get configmaps coredns-custom in namespace kube-system",
                 {"method", "installed", "zones"}, id="its imports"),
    pytest.param("/services/dnsproxy", "get services dnsproxy in namespace switchback",
                 {"up to date"}, id="dnsproxy's Service"),
    pytest.param("/ingresses", "list ingresses.networking.k8s.io in all namespaces", {"zones"}, id="Ingresses"),
    pytest.param("/kube-system/events", "list events.events.k8s.io in namespace kube-system",
                 {"installer"}, id="Events of the DNS"),
    pytest.param("/switchback/events", "list events.events.k8s.io in namespace switchback",
                 {"installer"}, id="Events of dnsproxy"),
    pytest.param("/endpointslices", "list endpointslices.discovery.k8s.io in namespace switchback",
                 {"zones", "steering", "version"}, id="pods of dnsproxy and operate"),
    pytest.param("/proxy/steering", "get pods/proxy operate-0 in namespace switchback", {"steering"}, id="steering"),
]  # fmt: skip


def operate_pod() -> Manifest:
    """A pod of operate without a direct route to it."""
    endpoint = {
        "addresses": ["127.0.0.1"],
        "conditions": {"ready": True},
        "targetRef": {"kind": "Pod", "name": "operate-0"},
    }
    labels = {"kubernetes.io/service-name": "operate"}
    metadata = {"name": "operate-1", "namespace": "switchback", "labels": labels}
    return {
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": "IPv4",
        "endpoints": [endpoint],
        "ports": [{"name": "admin", "port": 9}],
    }


async def read_without(
    folder: Path, forbidden: Sequence[str], *more: Manifest
) -> tuple[int, list[str], dict[str, Any]]:
    """Status, the lines and the JSON document, of a loaded stanza for zones, while something must not be read."""
    async with faulty_upstream(dnsproxy) as server:
        objects = [*import_cluster("a.example.org"), *more]
        with serving(FakeApi(objects, forbidden=forbidden), folder) as kubeconfig:
            where = ["--dns", str(server.endpoint), "--address", str(server.endpoint)]
            done = await run(kubeconfig, *where)
            as_json = await run(kubeconfig, *where, "--output", "json")
    assert (done.returncode, done.stderr, as_json.stderr) == (as_json.returncode, "", "")
    return done.returncode, done.stdout.splitlines(), json.loads(as_json.stdout)


@pytest.mark.parametrize(("path", "right", "facts"), DENIED)
async def test_a_fact_that_must_not_be_read_is_unknown_with_the_right_that_is_missing(
    path: str, right: str, facts: set[str], tmp_path: Path
) -> None:
    more = [operate_pod()] if path.startswith("/proxy") else []
    status, lines, document = await read_without(tmp_path, [path], *more)
    assert (status, document["status"]) == (3, 3)
    rows = {line[:10].strip() for line in lines[:-2] if f"not allowed to {right}" in line and " ?" in line[:16]}
    assert rows - {"fault"} == facts
    assert f"not allowed to {right}" in lines[-1]
    unknown = {one["fact"]: one["right"] for one in document["unknown"]}
    verb, resource, *_ = right.split()
    assert {(one["verb"], one["resource"]) for one in unknown.values()} == {(verb, resource)}


async def test_a_version_that_must_not_be_read_is_unknown_and_changes_no_verdict(tmp_path: Path) -> None:
    endpoint = operate_pod()
    endpoint["metadata"]["labels"]["kubernetes.io/service-name"] = "dnsproxy"
    status, lines, document = await read_without(tmp_path, ["/proxy/metrics"], endpoint)
    assert (status, lines[-1]) == (0, "installed and loaded: the cluster's DNS asks dnsproxy")
    (row,) = [line for line in lines if line.startswith("version     ?")]
    assert "not allowed to get pods/proxy operate-0 in namespace switchback" in row
    assert [one["fact"] for one in document["unknown"]] == ["versions"]


async def test_without_any_right_nothing_is_stated(tmp_path: Path) -> None:
    status, lines, document = await read_without(tmp_path, [""])
    rows = {line[:10].strip(): line[12:].split()[0] for line in lines[:-2]}
    assert (status, set(rows) & {"service", "server", "method", "installed", "installer", "steering"}) == (
        3, {"service", "server", "method", "installed", "installer", "steering"},
    )  # fmt: skip
    assert [what for what, state in rows.items() if state not in ("?", "ok")] == []
    assert {what for what, state in rows.items() if state == "ok"} == {"loaded", "dnsproxy"}
    assert lines[-1].startswith("could not read everything: ")
    assert {one["fact"] for one in document["unknown"]} >= {"service", "server", "choice", "installed", "event"}
    assert (document["service"], document["choice"]["method"], document["event"]) == (None, None, None)


async def test_a_no_that_was_read_stays_one_beside_what_must_not_be_read(tmp_path: Path) -> None:
    api = FakeApi(edited("policy sequential", "policy random"), forbidden=["/events"])
    async with faulty_upstream(dnsproxy) as server:
        with serving(api, tmp_path) as kubeconfig:
            done = await run(kubeconfig, "--dns", str(server.endpoint), "--address", str(server.endpoint))
    assert done.returncode == 1
    assert "installer   ?   unknown: not allowed to list events" in done.stdout


async def test_the_hosts_are_those_of_a_running_dnsproxy_if_it_is_named(tmp_path: Path) -> None:
    with serve_process.serving(tmp_path, "--host", "static.example.com=192.0.2.1") as own:
        async with faulty_upstream(dnsproxy) as server:
            status, output, _ = await ask(import_cluster("new.example.net"), server, tmp_path, "--from", own.admin)
    assert status == 1
    assert "its zones do not contain static.example.com; " in output.splitlines()[-1]
    async with faulty_upstream(dnsproxy) as server:
        status, output, _ = await ask(import_cluster("new.example.net"), server, tmp_path, "--from", own.admin)
    assert status == 0
    assert f"not compared with the live hostnames: --from {own.admin}: no server answers there" in output


async def test_zones_that_a_user_chose_are_a_note_and_no_fault(tmp_path: Path) -> None:
    objects = manifests("kubeadm")
    objects = [*play(objects, plan(objects, wanted("example.org"))), ingress("new.example.net")]
    async with faulty_upstream(dnsproxy) as server:
        status, output, _ = await ask(objects, server, tmp_path)
    assert status == 0
    assert "zones       part  example.net missing, for new.example.net" in output


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
    assert "192.0.2.1 for .: 8 of 8 " in done.stdout
    assert "not asked: no address of it is known" in none.stdout


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
        ["--zone", "*.example.org"],
        ["--zone", "a..b"],
        ["--from", "127.0.0.1"],
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
