"""The chart on a real control plane: install, upgrade, roll back, test and uninstall, by the real Helm.

The hooks of an uninstallation run with the accounts and the rights that the chart gives them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.deploy.control_plane import (
    PEERS,
    PodsOfJobs,
    labelled,
    namespace_is_there,
    operate_has_run,
    running_control_plane,
)
from tests.deploy.helm import CHART, run_helm
from tests.deploy.kubectl import LABEL, kubectl
from tests.deploy.manifests import added, name_of, parse_manifests
from tests.kit.apiserver import ApiServer
from tests.kit.polling import poll_until
from tests.kit.programs import program
from tests.kit.recorded_cluster import PATHS, recorded_cluster

pytestmark = [
    pytest.mark.peer(*PEERS, "helm", "gateway-api", "prometheus-operator", "dnsendpoint"),
    pytest.mark.timeout(400),
]

COREFILE: Final = f"{PATHS['ConfigMap'].format('kube-system')}/coredns"
SECONDS: Final = 100.0
LEASE: Final = {"metadata": {"name": "switchback-operate"}, "spec": {"holderIdentity": "a"}}
NODES: Final = {"node-hosts": {"DNSPROXY_ZONE": "registry.example.org"}}
EVERYTHING: Final = {"components": {one.name: True for one in added() if one.name != "print"}, "settings": NODES}

SWITCHED_OFF: Final = (
    ({"operate": False}, "components.operate: .*dnsproxy uninstall --operate switchback/operate"),
    ({"print": True}, "components.print: .*dnsproxy uninstall --operate switchback/operate"),
    ({"wholeip": False}, "components.wholeip: .*wholeip uninstall --every-node switchback-wholeip"),
)
"""A component that goes or is replaced, and what is said while the program that undoes its work has not run."""


class Failed(Exception):
    """Helm failed; its output."""


class Helm:
    """Helm for one release on a test's API server."""

    def __init__(self, server: ApiServer, *, namespace: str = "default") -> None:
        self.server = server
        self.namespace = namespace

    def run(self, verb: str, *arguments: str, values: Mapping[str, Any] | None = None) -> str:
        """Its output. Raises Failed."""
        words = [*verb.split(), "switchback", *arguments, f"--kubeconfig={self.server.kubeconfig}"]
        words += [f"--namespace={self.namespace}"]
        words += [str(CHART)] if values is not None else []
        done = run_helm(*words, values=values)
        if done.returncode:
            raise Failed(done.stdout + done.stderr)
        return done.stdout

    def objects(self) -> set[str]:
        """What the release has, by kind, namespace and name."""
        return {name_of(one) for one in parse_manifests(self.run("get manifest"))}


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running_control_plane(tmp_path_factory.mktemp("control-plane")) as server:
        definitions = (f"{program('gateway-api')}/standard", program("prometheus-operator"), program("dnsendpoint"))
        kubectl(server, "apply", "--server-side", *(word for one in definitions for word in ("-f", one)))
        server.create_namespace("ingress-nginx")
        for name in ("node-1", "node-2"):
            metadata = {"name": name, "labels": {"kubernetes.io/os": "linux"}}
            server.request("POST", "/api/v1/nodes", {"metadata": metadata})
        yield server


def uninstall(server: ApiServer, folder: Path, helm: Helm, *, fail: bool = False) -> PodsOfJobs:
    """Uninstall while the hooks' pods are played. Raises Failed."""
    pods = PodsOfJobs(server, folder, fail=fail)
    with pods.played():
        helm.run("uninstall", f"--timeout={int(SECONDS)}s")
    poll_until(lambda: not namespace_is_there(server), "the namespace ends", seconds=SECONDS)
    return pods


def test_every_component_goes_in_and_out_again_and_the_dns_is_as_before(
    control_plane: ApiServer, tmp_path: Path
) -> None:
    server, helm = control_plane, Helm(control_plane)
    assert labelled(server) == []
    with recorded_cluster(server, "kubeadm"):
        before = server.request("GET", COREFILE)["data"]
        helm.run("install", values=EVERYTHING)
        operate_has_run(server, tmp_path, "operate")
        assert server.request("GET", COREFILE)["data"] != before
        pods = uninstall(server, tmp_path, helm)
        assert server.request("GET", COREFILE)["data"] == before, pods.said
        assert sorted(pods.nodes) == ["node-1", "node-2"]
        poll_until(lambda: labelled(server) == [], "every object is gone", seconds=SECONDS)


def test_an_upgrade_removes_what_its_values_no_longer_have_and_a_rollback_brings_it_back(
    control_plane: ApiServer, tmp_path: Path
) -> None:
    server, helm = control_plane, Helm(control_plane)
    with recorded_cluster(server, "kubeadm"):
        helm.run("install", values={"components": {"doctor": True}})
        installed = helm.objects()
        changed = {"components": {"doctor": True, "node-local": True}, "settings": {"dnsproxy": {"DNSPROXY_TTL": 7}}}
        before = pod_annotations(server, "deployment/dnsproxy")
        helm.run("upgrade", values=changed)
        assert installed - helm.objects() == {
            "Deployment switchback/dnsproxy",
            "PodDisruptionBudget switchback/dnsproxy",
        }
        kinds = kubectl(server, "get", "deployments,daemonsets", "-n", "switchback", "-o", "name").split()
        deployments = [f"deployment.apps/{name}" for name in ("dnsproxy-primary", "operate", "relay")]
        assert sorted(kinds) == ["daemonset.apps/dnsproxy", *deployments]
        assert pod_annotations(server, "daemonset/dnsproxy") != before
        settings = server.request("GET", "/api/v1/namespaces/switchback/configmaps/dnsproxy-settings")["data"]
        assert settings["DNSPROXY_TTL"] == "7"
        helm.run("rollback", "1")
        assert helm.objects() == installed
        assert pod_annotations(server, "deployment/dnsproxy") == before
        uninstall(server, tmp_path, helm)


def pod_annotations(server: ApiServer, workload: str) -> Any:
    found = json.loads(kubectl(server, "get", workload, "-n", "switchback", "-o", "json"))
    return found["spec"]["template"]["metadata"]["annotations"]


def test_a_stanza_that_cannot_be_taken_out_keeps_everything(control_plane: ApiServer, tmp_path: Path) -> None:
    server, helm = control_plane, Helm(control_plane)
    with recorded_cluster(server, "kubeadm"):
        helm.run("install", values={})
        installed = helm.objects()
        with pytest.raises(Failed, match="switchback-removal"):
            uninstall(server, tmp_path, helm, fail=True)
        for one in ("deployment/dnsproxy", "deployment/relay", "deployment/operate", "networkpolicy/dnsproxy"):
            kubectl(server, "get", one, "-n", "switchback")
        assert helm.objects() == installed
        # The cause is mended, and it runs again.
        uninstall(server, tmp_path, helm)
        assert labelled(server) == []


def test_what_wrote_outside_of_its_objects_is_not_switched_off_while_it_runs(
    control_plane: ApiServer, tmp_path: Path
) -> None:
    server, helm = control_plane, Helm(control_plane)
    with recorded_cluster(server, "kubeadm"):
        helm.run("install", values={"components": {"wholeip": True}})
        installed = helm.objects()
        for change, words in SWITCHED_OFF:
            with pytest.raises(Failed, match=words):
                helm.run("upgrade", values={"components": {"wholeip": True} | change})
            assert helm.objects() == installed
        # Once its work is undone it may go; the program that undoes it deletes the workload.
        kubectl(server, "delete", "deployment", "operate", "-n", "switchback")
        helm.run("upgrade", values={"components": {"wholeip": True, "print": True}})
        with pytest.raises(Failed, match=r"components\.wholeip: "):
            helm.run("upgrade", values={"components": {"operate": False}})
        kubectl(server, "delete", "daemonset", "wholeip", "-n", "switchback-wholeip")
        helm.run("upgrade", values={"components": {"operate": False}})
        assert {name.split("/")[-1] for name in installed - helm.objects()} >= {"operate", "wholeip"}
        uninstall(server, tmp_path, helm)
        poll_until(lambda: labelled(server) == [], "every object is gone", seconds=SECONDS)


def test_hooks_that_kubectl_applies_change_nothing(control_plane: ApiServer, tmp_path: Path) -> None:
    # `helm template --dry-run=server` looks the cluster up, as an installation does, and so it has the hooks.
    server, helm = control_plane, Helm(control_plane)
    with recorded_cluster(server, "kubeadm"):
        helm.run("install", values={"components": {"wholeip": True}})
        operate_has_run(server, tmp_path, "operate")
        before = server.request("GET", COREFILE)["data"]
        text = helm.run("template", "--dry-run=server", values={"components": {"wholeip": True}})
        rendered = parse_manifests(text)
        assert "helm.sh/hook" in text
        pods = PodsOfJobs(server, tmp_path)
        with pods.played():
            kubectl(server, "apply", "--server-side", "--force-conflicts", "-f", "-", given=rendered)
            for name, namespace in (("switchback-removal", "switchback"), ("wholeip-removal", "switchback-wholeip")):
                kubectl(server, "wait", f"job/{name}", "-n", namespace, "--for=condition=Failed", "--timeout=60s")
        assert pods.said.count("is a hook of Helm, and kubectl made it; nothing was changed") == 2
        kubectl(server, "get", "deployment/operate", "service/relay-nginx", "-n", "switchback")
        kubectl(server, "get", "daemonset/wholeip", "-n", "switchback-wholeip")
        assert server.request("GET", COREFILE)["data"] == before
        uninstall(server, tmp_path, helm)
        kubectl(server, "delete", "namespace,clusterrole,clusterrolebinding", "-l", LABEL, "--wait=false")
        poll_until(lambda: labelled(server) == [], "every object is gone", seconds=SECONDS)


def test_an_installation_that_prints_leaves_the_stanza_to_its_owner(control_plane: ApiServer, tmp_path: Path) -> None:
    server, helm = control_plane, Helm(control_plane)
    with recorded_cluster(server, "kubeadm"):
        helm.run("install", values={"components": {"print": True}})
        server.request("POST", "/apis/coordination.k8s.io/v1/namespaces/switchback/leases", LEASE)
        before = server.request("GET", COREFILE)
        pods = uninstall(server, tmp_path, helm)
        assert "Deleted switchback/operate" in pods.said
        assert server.request("GET", COREFILE)["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        assert labelled(server) == []


def test_a_namespace_that_helm_made_is_left_and_nothing_in_it(control_plane: ApiServer, tmp_path: Path) -> None:
    server, helm = control_plane, Helm(control_plane, namespace="switchback")
    with recorded_cluster(server, "kubeadm"):
        helm.run("install", "--create-namespace", values={})
        operate_has_run(server, tmp_path, "operate")
        server.request("DELETE", "/api/v1/namespaces/switchback/services/by-hand")
        pods = PodsOfJobs(server, tmp_path)
        with pods.played():
            helm.run("uninstall", f"--timeout={int(SECONDS)}s")
        assert labelled(server) == []
        kinds = "services,leases,configmaps,secrets,serviceaccounts,deployments,roles,jobs"
        left = kubectl(server, "get", kinds, "-n", "switchback", "-o", "name").split()
        assert [one for one in left if "kube-root-ca" not in one and "/default" not in one] == []
        kubectl(server, "delete", "namespace", "switchback")


def test_the_doctor_is_a_test_that_leaves_nothing(control_plane: ApiServer, tmp_path: Path) -> None:
    server, helm = control_plane, Helm(control_plane)
    with recorded_cluster(server, "kubeadm"):
        helm.run("install", values={"test": {"hosts": ["app.example.org", "shop.example.org"]}})
        before = labelled(server)
        pods = PodsOfJobs(server, tmp_path)
        with pods.played(), pytest.raises(Failed, match="switchback-test-0"):
            helm.run("test", f"--timeout={int(SECONDS)}s")
        assert "app.example.org" in pods.said
        uninstall(server, tmp_path, helm)
        assert before
        poll_until(lambda: labelled(server) == [], "every object is gone", seconds=SECONDS)
