"""Discovery and `dnsproxy status` against a real kube-apiserver, whose RBAC decides what may be read."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.cluster_dns.found import Found, Server, ServiceRef
from dnsproxy.cluster_dns.method_choice import Method, choose_method
from dnsproxy.cluster_dns.owner import Form
from dnsproxy.cluster_dns.read import discover
from sidecar.kubernetes.config import load_cluster
from sidecar.kubernetes.http import ApiClient
from tests.dnsproxy.corefile.shapes import installed
from tests.kit.accounts import Rules, role
from tests.kit.apiserver import ApiServer
from tests.kit.coredns import running_coredns
from tests.kit.living_dns import LivingCluster
from tests.kit.manifest_cluster import NAMES, faults_of, manifests, pick
from tests.kit.manifest_cluster import discover as discover_offline
from tests.kit.ports import free_port
from tests.kit.serve_process import serving
from tests.peers.test_corefile_coredns import localized

pytestmark = pytest.mark.peer("etcd", "kube-apiserver")

LOOKING: Final = [
    {"apiGroups": [""], "resources": ["services"], "resourceNames": ["kube-dns"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["coredns"], "verbs": ["get"]},
    {"apiGroups": ["apps"], "resources": ["deployments", "daemonsets"], "verbs": ["list"]},
]
"""All rights that discovery needs in a kubeadm cluster."""

numbers = itertools.count()


class Playground(LivingCluster):
    """A namespace with a cluster's DNS in it, and accounts that may read only a part of it."""

    def reader(self, rules: Rules) -> Path:
        """The kubeconfig of a service account that has only these rights."""
        return self.kubeconfig([role(self.namespace, rules)])[0]

    async def discover(self, rules: Rules) -> Found:
        """The result of discovery with these rights."""
        async with ApiClient(load_cluster(kubeconfig=str(self.reader(rules)))) as client:
            return await discover(client, ServiceRef(self.namespace))

    def status(self, *arguments: str, rules: Rules = LOOKING) -> subprocess.CompletedProcess[str]:
        """The output of `dnsproxy status` with these rights."""
        return self.dnsproxy("status", *arguments, kubeconfig=self.reader(rules))


@pytest.fixture
def playground(apiserver: ApiServer, tmp_path: Path) -> Iterator[Playground]:
    namespace = f"discovery-{next(numbers)}"
    apiserver.create_namespace(namespace)
    yield Playground(apiserver, namespace, tmp_path)
    apiserver.request("DELETE", f"/api/v1/namespaces/{namespace}")


async def test_a_kubeadm_cluster_is_found_with_the_least_that_rbac_can_grant(playground: Playground) -> None:
    playground.create(manifests("kubeadm"))
    found = await playground.discover(LOOKING)
    assert found.faults == ()
    assert found.service is not None
    assert found.service.addresses[0].startswith("10.96.")
    assert found.server is not None
    assert found.server.version == (1, 12, 1)
    assert found.server.corefile is not None
    assert found.server.corefile.owner.evidence == "manager kubeadm"
    assert found.server.corefile.source.resource_version.isdigit()
    assert choose_method(found).method is Method.COREFILE


def servers_of(found: Found) -> list[Server]:
    both = [found.server, found.node_local.server if found.node_local else None]
    return [server for server in both if server is not None]


@pytest.mark.parametrize("name", NAMES)
async def test_every_cluster_of_the_corpus_is_one_that_an_api_server_holds(name: str, playground: Playground) -> None:
    playground.create(manifests(name), manager="test")
    where = ServiceRef(playground.namespace, "dns-default" if name == "openshift" else "kube-dns")
    async with ApiClient(load_cluster(kubeconfig=str(playground.server.kubeconfig))) as client:
        found = await discover(client, where)
    expected = discover_offline(manifests(name))
    assert found.faults == ()
    assert (found.node_local is None) is (expected.node_local is None)
    for live, written in zip(servers_of(found), servers_of(expected), strict=True):
        assert (live.program, live.version) == (written.program, written.version)
        if written.corefile is not None:
            assert live.corefile is not None
            assert live.corefile.text == written.corefile.text
            assert [hook.path for hook in live.corefile.hooks] == [hook.path for hook in written.corefile.hooks]


@pytest.mark.parametrize(
    ("kept", "missing"),
    [
        ([], "get services kube-dns"),
        ([1, 2], "get services kube-dns"),
        ([0, 2], "get configmaps coredns"),
        ([0, 1], "list deployments.apps"),
    ],
    ids=["nothing", "no services", "no configmaps", "no workloads"],
)
async def test_what_rbac_lacks_is_named_by_verb_and_object(
    playground: Playground, kept: list[int], missing: str
) -> None:
    playground.create(manifests("kubeadm"))
    found = await playground.discover([LOOKING[index] for index in kept])
    assert not found.complete
    assert faults_of(found)[0].startswith(f"not allowed to {missing} in namespace {playground.namespace}; grant ")
    assert choose_method(found).method is None


async def test_imports_are_read_and_one_that_is_not_there_yet_is_no_fault(playground: Playground) -> None:
    playground.create(manifests("k3s"), manager="k3s")
    rules = [*LOOKING, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    found = await playground.discover(rules)
    assert found.faults == ()
    choice = choose_method(found)
    assert str(choice.target) == f"switchback.server in ConfigMap {playground.namespace}/coredns-custom"
    missing = await playground.discover(LOOKING)
    assert faults_of(missing)[0].startswith("not allowed to get configmaps coredns-custom")


async def test_a_service_of_another_name_is_found_by_its_label(playground: Playground) -> None:
    playground.create(manifests("rke2"), manager="helm")
    everything = [{"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["get", "list"]}]
    found = await playground.discover(everything)
    assert found.faults == ()
    assert found.service is not None
    assert found.service.name == "rke2-coredns-rke2-coredns"
    assert choose_method(found).form is Form.HELM_CHART_CONFIG


async def test_a_cluster_without_dns_is_reported(playground: Playground) -> None:
    rules = [{"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list"]}]
    found = await playground.discover(rules)
    # OpenShift has the object in another namespace, which this account may not read.
    assert "not allowed to get services dns-default in namespace openshift-dns" in faults_of(found)[0]
    assert f"there is no Service kube-dns in namespace {playground.namespace}" in faults_of(found)[1]


def test_status_says_what_is_missing_and_exits_3(playground: Playground) -> None:
    playground.create(manifests("kubeadm"))
    done = playground.status("--dns", f"127.0.0.1:{free_port()}", rules=LOOKING[:2])
    assert done.returncode == 3
    assert f"not allowed to list deployments.apps in namespace {playground.namespace}" in done.stdout.splitlines()[-1]
    assert done.stderr == ""


@pytest.mark.peer("coredns")
def test_status_follows_a_stanza_from_written_to_loaded_to_dead(playground: Playground, tmp_path: Path) -> None:
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    port = free_port()
    upstream = "forward . 127.0.0.1:9 {\n  max_fails 0\n }"
    stock = data["Corefile"].replace("forward . /etc/resolv.conf {\n       max_concurrent 1000\n    }", upstream)
    assert upstream in stock
    with serving(tmp_path, "--upstream", "127.0.0.1:9") as dnsproxy:
        data["Corefile"] = installed(stock, str(dnsproxy.endpoint)).new
        playground.create(objects)
        with running_coredns(tmp_path, localized(stock, port), port=port):
            written = playground.status("--dns", f"127.0.0.1:{port}")
        assert written.returncode == 1
        assert "written, not loaded" in written.stdout.splitlines()[-1]
        with running_coredns(tmp_path, localized(data["Corefile"], port), port=port):
            loaded = playground.status("--dns", f"127.0.0.1:{port}")
            # It may not read what is beside the DNS, and says so.
            assert loaded.returncode == 3, loaded.stdout
            assert f"asks {dnsproxy.endpoint}" in loaded.stdout
            assert loaded.stdout.count("8 of 8 dnsproxy") == 2
            dnsproxy.kill()
            dead = playground.status("--dns", f"127.0.0.1:{port}")
        assert dead.returncode == 1
        assert f"dnsproxy does not answer at {dnsproxy.endpoint}" in dead.stdout.splitlines()[-1]
