"""`dnsproxy install` and `uninstall` on a cluster, as a process.

print_command.py is tested here too.
"""

from __future__ import annotations

import copy
import json
import os
import pty
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
import yaml
from click.testing import CliRunner

from dnsproxy.cli import main
from dnsproxy.install.report import event_reasons
from tests.dnsproxy.cluster_dns.test_probing import dnsproxy, with_rcode
from tests.dnsproxy.install.run.test_applying import cluster, corefile, touch
from tests.dnsproxy.install.run.test_stanza_writers import OPERATE
from tests.dnsproxy.install.run.test_stanza_writers import deployment as operate
from tests.dnsproxy.install.run.test_stanza_writers import pod as operate_pod
from tests.dnsproxy.install.test_status_command import COLOURLESS, ingress
from tests.kit.faulty_upstream import FaultyUpstream, faulty_upstream, silence
from tests.kit.manifest_api import FakeApi, serving
from tests.kit.manifest_cluster import Manifest, manifests, pick
from tests.kit.manifest_edits import plan, play, without_versions
from tests.kit.prepared_program import run_shared
from tests.kit.upstream_replies import NXDOMAIN

other = with_rcode(NXDOMAIN)


class Run:
    """What a command said to a cluster and a DNS server."""

    def __init__(self, api: FakeApi, status: int, output: str, errors: str) -> None:
        self.api = api
        self.status = status
        self.output = output
        self.errors = errors

    @property
    def verdict(self) -> str:
        return self.output.splitlines()[-1]


async def run(
    command: str,
    objects: Sequence[Manifest] | FakeApi,
    server: FaultyUpstream,
    folder: Path,
    *arguments: str,
    env: dict[str, str] | None = None,
) -> Run:
    """One run of a command, with one server for the cluster's DNS."""
    api = objects if isinstance(objects, FakeApi) else FakeApi(objects)
    with serving(api, folder) as kubeconfig:
        where = ["--kubeconfig", str(kubeconfig), "--dns", str(server.endpoint)]
        environment = {**COLOURLESS, **(env or {})}
        done = await run_shared("dnsproxy", command, *where, *arguments, environment=environment)
    return Run(api, done.returncode, done.stdout, done.stderr)


async def test_an_install_that_is_loaded_is_status_0_and_says_what_it_did(tmp_path: Path) -> None:
    async with faulty_upstream(dnsproxy) as server:
        done = await run("install", cluster(), server, tmp_path)
    assert (done.status, done.verdict) == (0, "installed and loaded: the cluster's DNS asks dnsproxy")
    assert done.output.splitlines()[:-1] == [
        "method   corefile: Corefile in ConfigMap kube-system/coredns",
        "zones    .",
        "asks     10.96.0.53",
        "changes  ConfigMap kube-system/coredns (Corefile)",
    ]
    assert "forward . 10.96.0.53 /etc/resolv.conf" in corefile(done.api)
    assert all(line.startswith("Note: ") for line in done.errors.splitlines())


async def test_an_install_names_the_line_that_answers_a_host_before_it(tmp_path: Path) -> None:
    objects = [*cluster(), ingress("app.example.org", "other.example.net")]
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace(
        "    forward", "    rewrite name app.example.org nginx.example.net\n    forward"
    )
    async with faulty_upstream(dnsproxy) as server:
        done = await run("install", objects, server, tmp_path)
        denied = await run("install", FakeApi(objects, forbidden=("/ingresses",)), server, tmp_path)
    assert (done.status, denied.status) == (0, 0)
    (note,) = [line for line in done.errors.splitlines() if "before the stanza is asked" in line]
    assert re.fullmatch(r"Note: rewrite \(.*, line \d+\) answers app\.example\.org before the stanza is asked", note)


async def test_what_is_not_loaded_in_time_is_status_1_with_the_cause(tmp_path: Path) -> None:
    objects = cluster()
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace("    reload\n", "")
    async with faulty_upstream(other) as server:
        done = await run("install", objects, server, tmp_path, "--timeout", "1", "--address", str(server.endpoint))
    assert done.status == 1
    assert "there is no reload plugin: restart Deployment kube-system/coredns" in done.verdict
    assert f"dnsproxy does not answer at {server.endpoint}" in done.verdict
    assert "Waiting for the cluster's DNS to load it, 0 of up to 1 s" in done.errors
    assert "switchback" in corefile(done.api)


async def test_a_cluster_whose_dns_cannot_be_asked_from_here_is_status_3_at_once(tmp_path: Path) -> None:
    async with faulty_upstream(silence, silence) as server:
        pass
    done = await run("install", cluster(), server, tmp_path, "--timeout", "3600")
    assert (done.status, "Waiting" in done.errors) == (3, False)
    assert "written; whether it is loaded is unknown" in done.verdict
    out = await run("uninstall", done.api, server, tmp_path, "--timeout", "3600")
    assert out.status == 3
    assert "removed; whether it is still loaded is unknown" in out.verdict
    assert without_versions(out.api.objects) == without_versions(cluster())


async def test_a_dry_run_prints_a_diff_and_roles_and_writes_nothing(tmp_path: Path) -> None:
    api = FakeApi(cluster(), forbidden_writes=["/configmaps/coredns"])
    async with faulty_upstream(other) as server:
        done = await run("install", api, server, tmp_path, "--dry-run")
        assert server.asked_datagrams == []
    assert done.status == 0
    assert without_versions(api.objects) == without_versions(cluster())
    diff, _, roles = done.output.partition("---\napiVersion")
    assert diff.startswith("--- a/kube-system/coredns/Corefile\n+++ b/kube-system/coredns/Corefile\n")
    roles, _, to_watch = roles.partition("# Also needed for --watch:\n")
    kube_system, switchback = yaml.safe_load_all("apiVersion" + roles)
    written = [rule for rule in kube_system["rules"] if "patch" in rule["verbs"]]
    assert [(rule["resources"], rule["resourceNames"]) for rule in written] == [(["configmaps"], ["coredns"])]
    assert all(verb in ("get", "list") for rule in switchback["rules"] for verb in rule["verbs"])
    for role in yaml.safe_load_all(to_watch):
        assert role["metadata"]["name"] == "dnsproxy-install-watch"
        assert {verb for rule in role["rules"] for verb in rule["verbs"]} <= {"list", "watch", "create"}


async def test_a_dry_run_of_an_uninstall_shows_what_would_go(tmp_path: Path) -> None:
    there = play(manifests("k3s"), plan(manifests("k3s")))
    async with faulty_upstream(other) as server:
        done = await run("uninstall", there, server, tmp_path, "--dry-run")
        nothing = await run("uninstall", manifests("k3s"), server, tmp_path, "--dry-run")
    assert (done.status, nothing.status) == (0, 0)
    assert "-shop.example.net:53 example.org:53 {" in done.output
    assert "- delete" in done.output
    assert (
        "deletes  ConfigMap kube-system/coredns-custom (created by the install, and nothing else is in it)"
        in done.errors
    )
    assert "Nothing would change" in nothing.errors


async def test_an_uninstall_is_done_when_dnsproxy_no_longer_answers(tmp_path: Path) -> None:
    there = play(cluster(), plan(cluster()))
    async with faulty_upstream(other) as server:
        done = await run("uninstall", there, server, tmp_path)
        again = await run("uninstall", done.api, server, tmp_path)
    assert (done.status, done.verdict) == (0, "removed, and the cluster's DNS no longer asks dnsproxy")
    assert (again.status, again.output) == (0, "not installed: there is nothing to remove\n")


def migrated(objects: list[Manifest]) -> list[Manifest]:
    """The cluster after a migration of its Corefile, which drops every comment."""
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = re.sub(r"(?m)^ *#.*\n", "", data["Corefile"])
    return objects


async def test_a_stanza_whose_comments_a_migration_dropped_is_removed(tmp_path: Path) -> None:
    there = migrated(play(cluster(), plan(cluster())))
    assert "policy sequential" in corefile(FakeApi(there))
    async with faulty_upstream(other) as server:
        done = await run("uninstall", there, server, tmp_path)
    assert (done.status, done.verdict) == (0, "removed, and the cluster's DNS no longer asks dnsproxy")
    assert corefile(done.api) == corefile(FakeApi(migrated(cluster())))


@pytest.mark.parametrize("address", ["10.96.0.53", "10.96.0.99"], ids=["the same", "a new one"])
async def test_a_stanza_whose_comments_a_migration_dropped_gets_them_back_with_the_services_address(
    tmp_path: Path, address: str
) -> None:
    there = migrated(play(cluster(), plan(cluster())))
    pick(there, "Service", "dnsproxy")["spec"].update(clusterIP=address, clusterIPs=[address])
    async with faulty_upstream(dnsproxy) as server:
        status = await run("status", FakeApi(there), server, tmp_path)
        done = await run("install", there, server, tmp_path)
    assert (status.status, done.status) == (0, 0)
    assert "corefile: Corefile in ConfigMap kube-system/coredns, for ., asks 10.96.0.53\n" in status.output
    written = corefile(done.api)
    assert (written.count("BEGIN switchback"), written.count("policy sequential")) == (1, 1)
    assert f"forward . {address} /etc/resolv.conf" in written


async def test_what_is_still_loaded_after_an_uninstall_is_status_1(tmp_path: Path) -> None:
    there = play(cluster(), plan(cluster()))
    async with faulty_upstream(dnsproxy) as server:
        done = await run("uninstall", there, server, tmp_path, "--timeout", "1")
        unmarked = await run("uninstall", cluster(), server, tmp_path, "--timeout", "1")
    assert (done.status, unmarked.status) == (1, 1)
    assert "removed, and the cluster's DNS still asks dnsproxy" in done.verdict
    assert "nothing has Switchback's markers, and the cluster's DNS still asks dnsproxy" in unmarked.verdict


async def test_what_an_earlier_uninstall_removed_is_waited_for(tmp_path: Path) -> None:
    """One that was killed, or that a person ended, before the cluster's DNS had loaded the change."""
    async with faulty_upstream(dnsproxy) as server, trio.open_nursery() as nursery:

        async def load() -> None:
            await server.wait_asked(datagrams=8)
            server.datagrams = other

        nursery.start_soon(load)
        done = await run("uninstall", cluster(), server, tmp_path, "--timeout", "3600")
    assert (done.status, done.verdict) == (0, "not installed: there is nothing to remove")


async def test_what_is_damaged_is_told_and_is_status_1(tmp_path: Path) -> None:
    objects = cluster()
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = "# END switchback\n" + data["Corefile"]
    async with faulty_upstream(other) as server:
        done = await run("uninstall", objects, server, tmp_path)
    assert done.status == 1
    assert "Corefile in ConfigMap kube-system/coredns, line 1: a marker stands alone" in done.verdict


async def test_json_is_one_document_and_nothing_beside_it(tmp_path: Path) -> None:
    async with faulty_upstream(dnsproxy) as server:
        done = await run("install", cluster(), server, tmp_path, "--output", "json")
        out = await run("uninstall", done.api, server, tmp_path, "--timeout", "1", env={"DNSPROXY_OUTPUT": "json"})
    document, gone = json.loads(done.output), json.loads(out.output)
    assert (done.errors, out.errors) == ("", "")
    assert (document["status"], document["wrote"], document["method"]) == (0, True, "corefile")
    assert document["loaded"][0]["state"] == "yes"
    assert (gone["status"], out.status, gone["method"]) == (1, 1, None)
    assert gone["zones"] == ["."]


async def test_what_is_refused_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    async with faulty_upstream(other) as server:
        rke2 = await run("install", cluster("rke2"), server, tmp_path)
        loop = await run("install", cluster(), server, tmp_path, "--address", "10.96.0.10")
        rights = await run("install", FakeApi(cluster(), forbidden=["/daemonsets"]), server, tmp_path)
    assert [done.status for done in (rke2, loop, rights)] == [1, 1, 3]
    assert all(done.errors.splitlines()[-1].startswith("Error: ") for done in (rke2, loop, rights))
    assert "dnsproxy install --method print" in rke2.errors
    assert "10.96.0.10 is the cluster's DNS itself" in loop.errors
    assert "not allowed to list daemonsets.apps in namespace kube-system" in rights.errors


async def test_text_from_the_cluster_cannot_drive_a_terminal(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    objects = cluster()
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = "# \x1b[2J\x07\n" + data["Corefile"]
    async with faulty_upstream(dnsproxy) as server:
        with serving(FakeApi(objects), tmp_path) as kubeconfig:
            where = ["--kubeconfig", str(kubeconfig), "--dns", str(server.endpoint)]
            command = [sys.executable, "-m", "dnsproxy", "install", *where]
            environment = {**COLOURLESS, "TERM": "xterm"}
            for arguments in (["--dry-run"], []):
                await trio.run_process([*command, *arguments], stdout=follower, check=False, env=environment)
    os.close(follower)
    text = await trio.to_thread.run_sync(os.read, leader, 65_536)
    os.close(leader)
    assert b"\x1b[2J" not in text
    assert b"\x07" not in text
    assert b"\x1b[32m" in text


def test_all_bad_values_are_reported_together() -> None:
    bad = {"--dns-service": "x", "--method": "y", "--service": "a/b/c", "--admin": "1", "--timeout": "-1"}
    arguments = [word for pair in bad.items() for word in pair]
    result = CliRunner().invoke(main, ["install", *arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    assert sorted(line.split(":")[1].strip() for line in result.stderr.splitlines()) == sorted(bad)


def test_a_cluster_that_cannot_be_reached_is_one_line_and_status_3(tmp_path: Path) -> None:
    with serving(FakeApi([]), tmp_path) as kubeconfig:
        pass
    for command in ("install", "uninstall"):
        result = CliRunner().invoke(main, [command, "--kubeconfig", str(kubeconfig)])
        assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (3, "", 1)
        assert "could not be asked" in result.stderr


async def test_what_the_owner_is_to_be_given_is_printed_alone_on_stdout(tmp_path: Path) -> None:
    async with faulty_upstream(other) as server:
        rke2 = await run("install", cluster("rke2"), server, tmp_path, "--method", "print")
        k3s = await run("install", cluster("k3s"), server, tmp_path, "--method", "print", "--zone", "example.org")
        document = await run("install", cluster("eks-addon"), server, tmp_path, "--method", "print", "--output", "json")
        assert server.asked_datagrams == []
    assert [done.status for done in (rke2, k3s, document)] == [0, 0, 0]
    assert yaml.safe_load(rke2.output)["kind"] == "HelmChartConfig"
    assert "goes into: a HelmChartConfig" in rke2.errors
    assert "example.org:53 {" in yaml.safe_load(k3s.output)["data"]["switchback.server"]
    assert "forward . 10.96.0.53" in json.loads(json.loads(document.output)["text"])["corefile"]
    assert all(without_versions(done.api.objects) == without_versions(cluster("rke2")) for done in (rke2,))


async def test_it_may_be_printed_before_dnsproxy_is_ready_but_not_without_an_address(tmp_path: Path) -> None:
    objects = [one for one in cluster("rke2") if one["kind"] != "EndpointSlice"]
    bare = [one for one in objects if one["metadata"]["name"] != "dnsproxy"]
    async with faulty_upstream(other) as server:
        early = await run("install", objects, server, tmp_path, "--method", "print")
        none = await run("install", bare, server, tmp_path, "--method", "print")
        named = await run("install", bare, server, tmp_path, "--method", "print", "--address", "192.0.2.53")
    assert (early.status, none.status, named.status) == (0, 1, 0)
    assert "no pod behind Service switchback/dnsproxy is ready" in early.errors
    assert "there is no Service dnsproxy in namespace switchback" in none.errors
    assert "192.0.2.53" in named.output


async def test_what_is_printed_for_zones_takes_those_of_the_live_hosts(tmp_path: Path) -> None:
    hosts = [{"host": "app.example.org"}]
    ingress = {"kind": "Ingress", "metadata": {"name": "x", "namespace": "web"}, "spec": {"rules": hosts}}
    name = ["--dns-service", "openshift-dns/dns-default", "--method", "print"]
    async with faulty_upstream(other) as server:
        done = await run("install", [*cluster("openshift"), ingress], server, tmp_path, *name)
    assert done.status == 0
    assert yaml.safe_load(done.output)["spec"]["servers"][0]["zones"] == ["example.org"]
    assert "zones: example.org (from the hosts of the cluster's Ingresses)" in done.errors


async def test_with_events_the_result_is_one_about_dnsproxys_service_whatever_it_is(tmp_path: Path) -> None:
    def written(api: FakeApi) -> list[Manifest]:
        return [one for one in api.objects if one["kind"] == "Event"]

    async with faulty_upstream(dnsproxy) as server:
        done = await run("install", cluster(), server, tmp_path, "--events")
        broken = await run("install", FakeApi(cluster(), forbidden=["/daemonsets"]), server, tmp_path, "--events")
        dry = await run("install", cluster(), server, tmp_path, "--events", "--dry-run")
        without = await run("install", cluster(), server, tmp_path)
    (event,), (failure,) = written(done.api), written(broken.api)
    assert (done.status, event["reason"], event["type"], event["note"]) == (
        0, "StanzaInstalled", "Normal", "installed and loaded: the cluster's DNS asks dnsproxy",
    )  # fmt: skip
    assert (event["regarding"]["kind"], event["metadata"]["namespace"]) == ("Service", "switchback")
    assert (broken.status, failure["reason"], failure["type"]) == (3, "InstallFailed", "Warning")
    assert failure["note"] in broken.errors
    assert written(dry.api) == written(without.api) == []


async def test_an_event_that_is_not_allowed_changes_no_result(tmp_path: Path) -> None:
    api = FakeApi(cluster(), forbidden_writes=["/events"])
    async with faulty_upstream(dnsproxy) as server:
        done = await run("install", api, server, tmp_path, "--events")
    assert done.status == 0
    assert "Note: there is no Event in namespace switchback: 403" in done.errors


@pytest.mark.parametrize("gone", [("Service",), ("Deployment",), ("Service", "Deployment")], ids=" and ".join)
@pytest.mark.parametrize("forbidden", [[], ["/kube-system/configmaps"]], ids=["listed", "not listed"])
async def test_an_uninstall_that_cannot_find_the_dns_says_so_and_where_the_marks_are(
    gone: tuple[str, ...], forbidden: list[str], tmp_path: Path
) -> None:
    there = play(cluster(), plan(cluster()))
    ours = [one for one in there if not (one["kind"] in gone and one["metadata"]["namespace"] == "kube-system")]
    api = FakeApi(ours, forbidden=forbidden)
    async with faulty_upstream(other) as server:
        done = await run("uninstall", api, server, tmp_path)
    assert (done.status, done.output) == (3, "")
    assert "Error: whether anything is installed is unknown: " in done.errors
    assert ("Switchback's marks are in ConfigMap kube-system/coredns" in done.errors) == (not forbidden)
    assert "BEGIN switchback" in corefile(api)


def with_operate() -> FakeApi:
    """A cluster with the stanza, and operate, which would restore it."""
    replica = ("ReplicaSet", "operate-5f6c")
    there = play(cluster(), plan(cluster()))
    return FakeApi([*there, operate(*OPERATE), operate_pod(*OPERATE, owner=replica)])


@pytest.mark.parametrize("arguments", [[], ["--output", "json"], ["--timeout", "0"]], ids=" ".join)
async def test_while_operate_runs_an_uninstall_is_refused_with_the_command_that_does_both(
    arguments: list[str], tmp_path: Path
) -> None:
    before = copy.deepcopy(with_operate().objects)
    async with faulty_upstream(other) as server:
        done = await run("uninstall", with_operate(), server, tmp_path, *arguments)
    assert (done.status, done.output) == (1, "")
    assert "Error: dnsproxy operate in Deployment switchback/operate restores the stanza" in done.errors
    assert "`dnsproxy uninstall --stop-writers`" in done.errors
    assert done.api.objects == before


async def test_with_stop_writers_operate_is_scaled_to_0_before_the_stanza_goes(tmp_path: Path) -> None:
    async with faulty_upstream(other) as server:
        dry = await run("uninstall", with_operate(), server, tmp_path, "--dry-run")
        shown = await run("uninstall", dry.api, server, tmp_path, "--dry-run", "--stop-writers", "--output", "json")
        done = await run("uninstall", dry.api, server, tmp_path, "--stop-writers")
    assert (dry.status, shown.status) == (1, 0)
    assert "Note: refused while it runs, without --stop-writers: dnsproxy operate in Deployment switc" in dry.errors
    document = json.loads(shown.output)
    rules = [rule for role in document["rbac"] for rule in role["rules"]]
    assert {
        "apiGroups": ["apps"],
        "resources": ["deployments/scale"],
        "resourceNames": ["operate"],
        "verbs": ["patch"],
    } in rules
    assert (document["stopped"], document["writers"]) == (["dnsproxy operate in Deployment switchback/operate"], [])
    assert (done.status, done.verdict) == (0, "removed, and the cluster's DNS no longer asks dnsproxy")
    assert "Scaled Deployment switchback/operate to 0; its pods have ended" in done.errors
    assert pick(done.api.objects, "Deployment", "operate")["spec"]["replicas"] == 0
    assert "switchback" not in corefile(done.api)


async def test_what_cannot_be_scaled_is_refused_in_a_dry_run_too_and_nothing_is_scaled_then(tmp_path: Path) -> None:
    api = FakeApi([*with_operate().objects, operate_pod("dnsproxy", "install", "--watch", name="by-hand")])
    async with faulty_upstream(other) as server:
        dry = await run("uninstall", api, server, tmp_path, "--dry-run", "--stop-writers", "--output", "json")
        text = await run("uninstall", api, server, tmp_path, "--dry-run", "--stop-writers")
        done = await run("uninstall", api, server, tmp_path, "--stop-writers")
    assert (dry.status, text.status, done.status) == (1, 1, 1)
    document = json.loads(dry.output)
    assert document["stopped"] == ["dnsproxy operate in Deployment switchback/operate"]
    assert document["writers"] == ["dnsproxy install in Pod switchback/by-hand"]
    assert "by-hand" not in json.dumps(document["rbac"])
    assert "Note: refused while it runs: dnsproxy install in Pod switchback/by-hand" in text.errors
    assert "Note: scaled to 0 first: dnsproxy operate in Deployment switchback/operate" in text.errors
    assert pick(api.objects, "Deployment", "operate")["spec"]["replicas"] == 1


async def test_a_writer_is_not_ended_for_a_stanza_that_cannot_be_removed(tmp_path: Path) -> None:
    api = with_operate()
    touch(api, Corefile=corefile(api).replace("# END switchback", "# gone"))
    async with faulty_upstream(other) as server:
        done = await run("uninstall", api, server, tmp_path, "--stop-writers")
    assert done.status == 1
    assert "; nothing was changed" in done.errors
    assert pick(api.objects, "Deployment", "operate")["spec"]["replicas"] == 1


async def test_a_stanza_that_could_not_be_removed_comes_with_the_way_to_start_its_writer_again(tmp_path: Path) -> None:
    api = with_operate()
    api.forbidden_writes = ["/configmaps/coredns"]
    async with faulty_upstream(other) as server:
        done = await run("uninstall", api, server, tmp_path, "--stop-writers")
    assert done.status == 3
    assert "`kubectl -n switchback scale deployment operate --replicas=1` starts it again" in done.errors
    assert "switchback" in corefile(api)


def installer_event(reason: str, instance: str, minutes: int) -> Manifest:
    return {
        "kind": "Event",
        "metadata": {"name": "repaired", "namespace": "switchback"},
        "eventTime": (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(),
        "reportingController": event_reasons.INSTALLER.controller,
        "reportingInstance": instance,
        "reason": reason,
    }


@pytest.mark.parametrize(
    ("event", "status"),
    [
        pytest.param(("StanzaRepaired", "laptop", 1), 3, id="it restored the stanza"),
        pytest.param(("StanzaUndone", "laptop", 1), 3, id="it was kept from it"),
        pytest.param(("StanzaRepaired", "operate-5f6c-x", 1), 0, id="it was ended"),
        pytest.param(("StanzaRepaired", "laptop", 15), 0, id="long ago"),
        pytest.param(("StanzaInstalled", "laptop", 1), 0, id="an install"),
    ],
)
async def test_whether_a_stanza_stays_away_is_unknown_while_a_program_may_be_in_its_pause(
    event: tuple[str, str, int], status: int, tmp_path: Path
) -> None:
    said = installer_event(*event)
    async with faulty_upstream(other) as server:
        done = await run("uninstall", FakeApi([*with_operate().objects, said]), server, tmp_path, "--stop-writers")
    assert done.status == status
    assert ("a program on laptop restored it at 20" in done.verdict) == (status == 3)
    assert "switchback" not in corefile(done.api)


@pytest.mark.parametrize("path", ["/switchback/deployments", "/pods", "/leases/switchback-operate"])
async def test_an_uninstall_that_must_not_look_for_writers_is_status_3_and_writes_nothing(
    path: str, tmp_path: Path
) -> None:
    api = FakeApi(play(cluster(), plan(cluster())), forbidden=[path])
    async with faulty_upstream(other) as server:
        done = await run("uninstall", api, server, tmp_path)
        stopped = await run("uninstall", api, server, tmp_path, "--stop-writers")
    assert (done.status, stopped.status, done.output) == (3, 3, "")
    assert "is unknown, and nothing was removed: not allowed to " in done.errors
    assert "BEGIN switchback" in corefile(api)


async def test_a_stanza_that_another_program_writes_again_within_a_second_is_not_removed(tmp_path: Path) -> None:
    class Watched(FakeApi):
        """Something that no look can find restores the Corefile, some reads after each write."""

        reads = 0
        stanza = ""

        def write(self, method: str, path: str, body: Any) -> tuple[int, Any]:
            self.stanza, self.reads = corefile(self), 0
            return super().write(method, path, body)

        def decide(self, path: str, selector: str = "") -> tuple[int, Any]:
            self.reads += path.endswith("/configmaps/coredns")
            # The first read after a write is that of the write.
            if self.stanza and self.reads == 2:
                touch(self, Corefile=self.stanza)
            return super().decide(path, selector)

    api = Watched(play(cluster(), plan(cluster())))
    async with faulty_upstream(other) as server:
        done = await run("uninstall", api, server, tmp_path, "--timeout", "0")
    assert done.status == 1
    assert done.verdict.startswith("not removed: another program has written it again")
    assert "BEGIN switchback" in corefile(api)


async def test_a_last_look_that_fails_is_status_3(tmp_path: Path) -> None:
    class Closing(FakeApi):
        """Rights that are taken away after the write is read back."""

        def decide(self, path: str, selector: str = "") -> tuple[int, Any]:
            gone = path.endswith("/configmaps/coredns") and "switchback" not in corefile(self)
            self.asked.append(("GET", path, selector)) if gone else None
            self.forbidden = ["/configmaps/coredns"] if len(self.asked) > 1 else []
            return super().decide(path, selector)

    async with faulty_upstream(other) as server:
        there = Closing(play(cluster(), plan(cluster())))
        done = await run("uninstall", there, server, tmp_path, "--timeout", "0")
    assert done.status == 3
    assert "Error: removed; whether the stanza is there again is unknown: not allowed to get configmaps" in done.errors
