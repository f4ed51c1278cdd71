"""`deploy/remove.sh` with a kubectl that logs its calls: their order, and where the script stops."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.deploy.manifests import DEPLOY

# The answers to each call; the input of `create -f -` is kept.
KUBECTL = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
  kustomize*) [ -s "$RENDERED" ] || exit 1; cat "$RENDERED" ;;
  *"get cronjob"*) [ "$UNINSTALLER" != unknown ] || exit 1; [ "$UNINSTALLER" = nowhere ] || echo cronjob.batch/here ;;
  *"get deployment,job"*)
    [ "$AGAIN" != unknown ] || exit 1
    case "$*" in *"name=$AGAIN "*) echo "deployment.apps/$AGAIN" ;; esac ;;
  *"get daemonset"*) [ "$AGAIN" != agents ] || echo daemonset.apps/wholeip ;;
  *"get services"*) [ "$ADDRESSES" != unknown ] || exit 1; printf '%s' "$ADDRESSES" ;;
  *"get configmaps"*) [ "$MAPS" != unknown ] || exit 1; printf '%b' "$MAPS" ;;
  *"get job dnsproxy"*) echo "$STATUS" ;;
  *"create job wholeip"*) cat "$TEMPLATE" ;;
  *"create job"*) [ "$STATUS" != refused ] || exit 1 ;;
  *"delete deployment"*) [ "$KEEPER" != stays ] || exit 1 ;;
  *"delete jobs"*) [ "$EARLIER" != stay ] || exit 1 ;;
  *"delete daemonset"*) [ "$AGENTS" != stay ] || exit 1 ;;
  *"get nodes"*) printf 'node-1\\nnode.2\\n' ;;
  *"create -f -"*) cat > "$GIVEN" ;;
  *"get jobs"*) [ "$JOBS" != unknown ] || exit 1; printf '%b' "$JOBS" ;;
esac
"""
TEMPLATE = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: wholeip-uninstall
  ownerReferences:
  - kind: CronJob
    name: wholeip-uninstall
spec:
  template:
    spec:
      nodeName: each.node
"""
PARTS = {
    "dnsproxy": [
        "Deployment switchback/dnsproxy",
        "Deployment switchback/operate",
        "CronJob switchback/dnsproxy-uninstall",
    ],
    "operate alone": ["Deployment switchback/operate"],
    "wholeip": ["DaemonSet switchback-wholeip/wholeip", "CronJob switchback-wholeip/wholeip-uninstall"],
    "printing": [
        "DaemonSet switchback/dnsproxy",
        "Deployment switchback/operate",
        "CronJob switchback/dnsproxy-print",
    ],
    "neighbours": ["HorizontalPodAutoscaler switchback/dnsproxy", "ServiceMonitor switchback/dnsproxy"],
    "suffixed": ["Deployment switchback/dnsproxy-a", "CronJob switchback/dnsproxy-uninstall-a"],
    "moved": ["Deployment dns/dnsproxy", "CronJob dns/dnsproxy-uninstall"],
    "moved agents": ["DaemonSet dns/wholeip", "CronJob dns/wholeip-uninstall"],
}
"""Kustomizations, by the objects in which they differ."""
DONE = "node-1 SuccessCriteriaMet Complete\\nnode.2 SuccessCriteriaMet Complete\\n"


@dataclass(frozen=True)
class Removal:
    """The result of a removal."""

    status: int
    calls: list[str]
    told: str
    given: str
    """The objects that it created."""

    @property
    def deleted(self) -> bool:
        """Whether it deleted the applied objects."""
        return any(" -k " in f" {call} " for call in self.calls)


def remove(
    folder: Path,
    *arguments: str,
    parts: str = "dnsproxy",
    status: str = "Complete",
    uninstaller: str = "",
    keeper: str = "ends",
    agents: str = "end",
    earlier: str = "end",
    jobs: str = DONE,
    maps: str = "",
    addresses: str = "",
    again: str = "",
    wait: str = "4",
) -> Removal:
    program, calls, given, template = (folder / name for name in ("kubectl", "calls", "given", "template"))
    rendered = folder / "rendered"
    rendered.write_text("---\n".join(manifest(row) for part in parts.split(" + ") for row in PARTS.get(part, ())))
    program.write_text(KUBECTL, encoding="utf-8")
    program.chmod(0o755)
    template.write_text(TEMPLATE, encoding="utf-8")
    calls.touch()
    given.touch()
    environment = {
        **os.environ,
        "KUBECTL": str(program),
        "CALLS": str(calls),
        "GIVEN": str(given),
        "TEMPLATE": str(template),
        "RENDERED": str(rendered),
        "STATUS": status,
        "UNINSTALLER": uninstaller,
        "KEEPER": keeper,
        "AGENTS": agents,
        "EARLIER": earlier,
        "JOBS": jobs,
        "MAPS": maps,
        "ADDRESSES": addresses,
        "AGAIN": again,
        "SECONDS_TO_WAIT": wait,
    }
    command = ["sh", str(DEPLOY / "remove.sh"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return Removal(done.returncode, calls.read_text().splitlines(), done.stderr, given.read_text())


def manifest(row: str) -> str:
    """An object as kustomize prints it; its labels and its contents have names too."""
    kind, _, place = row.partition(" ")
    namespace, _, name = place.partition("/")
    metadata = {"labels": {"name": "dnsproxy"}, "name": name, "namespace": namespace}
    return yaml.safe_dump({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {"name": "wholeip"}})


def changes(done: Removal) -> list[str]:
    """Its changes to the cluster, one word for each call."""
    words = ["--dry-run", "operate dnsproxy-install", "daemonset", "create job", "delete jobs", "create -f"]
    words += ["services", "leases", "clusterroles", "roles", "-k"]
    found = [
        next(word for word in words if word in call) for call in done.calls if "delete" in call or "create" in call
    ]
    return [word for word in found if word != "--dry-run"]


REST = ["services", "leases", "roles", "clusterroles"]
"""What operate wrote, and what only an installation with an installer has."""


@pytest.mark.parametrize("parts", ["dnsproxy", "operate alone", "dnsproxy + neighbours"])
def test_operate_ends_first_then_the_stanza_goes_then_all_else(parts: str, tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", parts=parts)
    assert done.status == 0
    assert changes(done) == ["operate dnsproxy-install", "create job", *REST, "-k"]
    # A running operate, or an installer of an earlier version, would put the stanza back.
    assert done.calls[1].startswith("--namespace switchback delete deployment,job operate dnsproxy-install")
    assert "--cascade=foreground" in done.calls[1]
    assert done.calls[-1] == "delete -k my-cluster --ignore-not-found"


def test_route_services_of_people_go_with_the_namespace_alone(tmp_path: Path) -> None:
    (call,) = (one for one in remove(tmp_path, "my-cluster").calls if "delete services" in one)
    assert "--selector app.kubernetes.io/managed-by=switchback-operate" in call


@pytest.mark.parametrize(
    ("status", "wait", "told"),
    [
        ("Failed", "4", "could not be removed"),
        ("FailureTarget Failed", "4", "could not be removed"),
        ("FailureTarget", "0", "is not removed after 0 s"),
        ("", "0", "is not removed after 0 s"),
        ("refused", "4", ""),
    ],
)
def test_nothing_is_deleted_while_the_stanza_is_there(status: str, wait: str, told: str, tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", parts="dnsproxy + wholeip", status=status, wait=wait)
    assert done.status == 1
    assert not done.deleted
    assert "daemonset" not in changes(done)
    assert told in done.told


def test_without_the_uninstaller_the_rest_is_deleted_with_a_message(tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", uninstaller="nowhere")
    assert done.status == 0
    assert done.deleted
    assert "no dnsproxy-uninstall here" in done.told


@pytest.mark.parametrize("part", ["dnsproxy", "wholeip"])
def test_nothing_is_deleted_if_it_is_unknown_what_is_there(part: str, tmp_path: Path) -> None:
    # A missing right, or an API server that is away: no answer does not mean that there is none.
    done = remove(tmp_path, "my-cluster", parts=part, uninstaller="unknown")
    assert done.status == 1
    assert not done.deleted
    assert "it is unknown whether" in done.told
    assert "nothing else was deleted" in done.told


@pytest.mark.parametrize(
    ("maps", "told"),
    [
        ('other {"a":"b"}\\ncoredns {"Corefile":".:53 {\\\\n # BEGIN switchback: managed"}\\n', "still in: coredns."),
        ('kube-dns example.org{"stubDomains":"{}"}\\n', "still in: kube-dns."),
        ("unknown", "it is unknown whether the stanza is still in the DNS"),
    ],
    ids=["stanza", "stub domains", "no answer"],
)
def test_nothing_is_deleted_if_the_uninstaller_is_gone_and_the_stanza_is_not(
    maps: str, told: str, tmp_path: Path
) -> None:
    done = remove(tmp_path, "my-cluster", uninstaller="nowhere", maps=maps)
    assert done.status == 1
    assert not done.deleted
    assert told in done.told


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("10.96.0.53", 1),
        ("10.96.0.5", 0),
        ("10.96.0.53 2001:db8::53", 1),
        ("2001:db8::53 192.0.2.9", 0),
        ("unknown", 1),
    ],
    ids=["asked", "a longer one is asked", "both families", "others", "no answer"],
)
def test_a_stanza_without_its_markers_is_known_by_dnsproxys_address(address: str, status: int, tmp_path: Path) -> None:
    maps = r'coredns {"Corefile":".:53 {\\n forward . 10.96.0.53 /etc/resolv.conf {\\n }\\n}"}' + r"\n"
    done = remove(tmp_path, "my-cluster", uninstaller="nowhere", maps=maps, addresses=address)
    assert done.status == status, done.told
    assert done.deleted is (status == 0)


@pytest.mark.parametrize("part", ["dnsproxy", "printing"])
def test_what_others_have_in_their_dns_stops_nothing(part: str, tmp_path: Path) -> None:
    maps = 'coredns {"Corefile":".:53 {\\\\n # switchback road\\\\n}"}\\nempty \\n'
    done = remove(tmp_path, "my-cluster", parts=part, uninstaller="nowhere", maps=maps)
    assert (done.status, done.deleted) == (0, True)
    assert "no dnsproxy-uninstall here" in done.told


@pytest.mark.parametrize("parts", ["suffixed", "moved", "moved agents", "dnsproxy + moved agents"])
def test_renamed_objects_are_refused_before_any_change(parts: str, tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", parts=parts)
    assert (done.status, done.calls) == (1, ["kustomize my-cluster"])
    assert "renames objects or moves them to another namespace (CronJob" in done.told


def test_a_kustomization_of_neighbours_leaves_the_dns_as_it_is(tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", parts="neighbours")
    assert (done.status, changes(done)) == (0, ["-k"])


def test_what_cannot_be_rendered_changes_nothing(tmp_path: Path) -> None:
    done = remove(tmp_path, "my-clutter", parts="")
    assert (done.status, done.calls) == (1, ["kustomize my-clutter"])


@pytest.mark.parametrize("arguments", [(), ("one", "two")], ids=["none", "two"])
def test_it_takes_one_argument(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = remove(tmp_path, *arguments)
    assert (done.status, done.calls) == (2, [])
    assert "KUSTOMIZATION" in done.told
    assert "SECONDS_TO_WAIT" in done.told


def test_rules_go_when_no_agent_puts_them_back_and_before_all_else(tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", parts="dnsproxy + wholeip")
    assert done.status == 0
    rules = ["daemonset", "delete jobs", "create -f"]
    assert changes(done) == ["operate dnsproxy-install", "create job", *rules, *REST, "-k"]
    assert "--cascade=foreground" in next(call for call in done.calls if "daemonset" in call)


def test_each_node_gets_a_job_of_its_own(tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", parts="wholeip")
    jobs = [one for one in yaml.safe_load_all(done.given) if one]
    assert [one["metadata"]["name"] for one in jobs] == ["wholeip-uninstall-1", "wholeip-uninstall-2"]
    assert [one["spec"]["template"]["spec"]["nodeName"] for one in jobs] == ["node-1", "node.2"]
    assert {one["metadata"]["ownerReferences"][0]["name"] for one in jobs} == {"wholeip-uninstall"}


@pytest.mark.parametrize("parts", ["dnsproxy", "wholeip"])
def test_what_is_not_in_the_kustomization_stays(parts: str, tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", parts=parts)
    assert done.status == 0
    assert ("daemonset" in changes(done)) is (parts == "wholeip")
    for step in ("operate dnsproxy-install", *REST):
        assert (step in changes(done)) is (parts == "dnsproxy")


@pytest.mark.parametrize(
    ("jobs", "told"),
    [
        ("node-1 Complete\\nnode.2 FailureTarget Failed\\n", "node.2 FailureTarget Failed"),
        ("node-1 Failed\\nnode.2 Failed\\n", "node-1 Failed"),
        ("node-1 Complete\\nnode.2\\n", "still have the rules"),
        ("node-1 Complete\\nnode.2 SuccessCriteriaMet\\n", "node.2 SuccessCriteriaMet"),
        ("node-1 Complete\\n", "is unknown"),
        ("", "is unknown"),
        ("unknown", "is unknown"),
    ],
    ids=[
        "one failed",
        "all failed",
        "one is under way",
        "one is almost there",
        "one is gone",
        "all are gone",
        "no answer",
    ],
)
def test_nothing_is_deleted_while_a_node_may_have_rules(jobs: str, told: str, tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", parts="wholeip", jobs=jobs, wait="0")
    assert done.status == 1
    assert not done.deleted
    assert told in done.told


def test_what_has_failed_for_good_is_not_waited_for(tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", parts="wholeip", jobs="node-1 Failed\\nnode.2 Complete\\n", wait="960")
    assert done.status == 1
    assert sum("get jobs" in call for call in done.calls) == 2


def test_nothing_is_deleted_while_agents_are_there(tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", parts="wholeip", agents="stay")
    assert done.status == 1
    assert changes(done) == ["daemonset"]
    assert "do not end" in done.told


def test_every_wait_for_pods_to_end_has_an_end(tmp_path: Path) -> None:
    # The pod of a lost node never ends.
    done = remove(tmp_path, "my-cluster", parts="dnsproxy + wholeip")
    waits = [call for call in done.calls if "--cascade=foreground" in call]
    assert len(waits) == 3
    assert [call for call in waits if "--timeout=4s" not in call] == []


def test_nothing_is_deleted_while_operate_or_an_earlier_removal_is_there(tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", keeper="stays")
    assert (done.status, changes(done)) == (1, ["operate dnsproxy-install"])
    assert "operate does not end" in done.told
    assert "kubectl delete node" in done.told
    done = remove(tmp_path, "my-cluster", parts="wholeip", earlier="stay")
    assert (done.status, done.deleted) == (1, False)
    assert "an earlier removal do not end" in done.told


@pytest.mark.parametrize(
    ("again", "told"),
    [
        ("operate", "has created deployment.apps/operate again; suspend it"),
        ("dnsproxy-install", "has created deployment.apps/dnsproxy-install again; suspend it"),
        ("agents", "has created daemonset.apps/wholeip again; suspend it"),
        ("unknown", "it is unknown whether operate is there again"),
    ],
)
def test_nothing_is_deleted_if_another_program_brings_a_writer_back(again: str, told: str, tmp_path: Path) -> None:
    # Argo CD and Flux create what is missing, and operate would restore the stanza.
    done = remove(tmp_path, "my-cluster", parts="dnsproxy + wholeip", again=again)
    assert (done.status, done.deleted) == (1, False)
    assert told in done.told


def test_without_the_rules_cronjob_the_rest_is_deleted_with_a_message(tmp_path: Path) -> None:
    done = remove(tmp_path, "my-cluster", parts="wholeip", uninstaller="nowhere")
    assert (done.status, changes(done)) == (0, ["-k"])
    assert "nft delete table inet switchback_wholeip" in done.told
