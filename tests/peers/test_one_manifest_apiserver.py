"""One manifest for every cluster: with its rights alone, on a real kube-apiserver, and no flag about the cluster's DNS.

The rights and the list of ConfigMaps are those of tests/kit/one_manifest.py.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from dnsproxy.cluster_dns.method_choice import choose_method
from dnsproxy.cluster_dns.original_upstreams import find_original
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.corefile.upstream_routes import differences
from tests.kit.accounts import create_account, write_kubeconfig
from tests.kit.allowed import REVIEWS
from tests.kit.apiserver import ApiServer, in_thread, running_apiserver
from tests.kit.manifest_cluster import discover, manifests
from tests.kit.one_manifest import DNS, INSTALL, OWN, SERVE, UPSTREAM_CONFIG_MAPS
from tests.kit.recorded_cluster import PATHS, recorded_cluster, writable
from tests.kit.serve_inside import get
from tests.kit.serve_process import Serving, serving
from tests.kit.watching import watching

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver"), pytest.mark.timeout(400)]

WRITTEN: Final = (
    *("aks", "doks", "gke", "gke-kube-dns", "k3s", "kubeadm", "kubeadm-nodelocal", "kubespray", "kubespray-coredns"),
    *("microk8s", "rke2-nodelocal", "talos"),
)
"""Clusters in which a stanza stays; all the others are in tests/dnsproxy/install/test_distributions.py."""
PRINTED: Final = ("eks-addon", "openshift", "rke2")
"""Clusters whose DNS has an owner; cozystack's tenants are in test_rewrites_apiserver.py."""
WATCHED: Final = ("kubeadm", "k3s", "gke", "kubespray", "rke2-nodelocal")
CONFIG_MAPS: Final = PATHS["ConfigMap"].format(DNS)
numbers = itertools.count()


@dataclass(frozen=True)
class Accounts:
    """An API server with dnsproxy's Service, and the accounts of both programs."""

    server: ApiServer
    dnsproxy: Path
    """The kubeconfig of `dnsproxy serve`."""
    installer: Path
    namespace: str = OWN

    def command_line(self, command: str, *arguments: str, kubeconfig: Path | None = None) -> list[str]:
        """A command of ours as the installer's pod runs it."""
        where = ["--kubeconfig", str(kubeconfig or self.installer)]
        where += [] if command == "status" else ["--timeout", "0"]
        return [sys.executable, "-m", "dnsproxy", command, *where, *arguments]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "NO_COLOR": "1"}
        return subprocess.run(self.command_line(*words), capture_output=True, text=True, check=False, env=environment)

    def config_maps(self) -> dict[str, Any]:
        """What a person sees of the ConfigMaps in kube-system."""
        found = self.server.request("GET", CONFIG_MAPS)["items"]
        shown = ("annotations", "labels")
        return {
            one["metadata"]["name"]: (one.get("data"), *(one["metadata"].get(key) for key in shown)) for one in found
        }

    def may(self, account: str, call: str) -> bool:
        """Whether an account may make a call: VERB RESOURCE[.GROUP] [NAME] [in NAMESPACE]."""
        words, _, namespace = call.partition(" in ")
        verb, resource, *name = words.split()
        plural, _, group = resource.partition(".")
        asked = {"verb": verb, "resource": plural, "group": group, "namespace": namespace, "name": "".join(name)}
        user = {"user": f"system:serviceaccount:{OWN}:{account}", "groups": ["system:authenticated"]}
        review = self.server.request("POST", REVIEWS, {"spec": {**user, "resourceAttributes": asked}})
        return bool(review["status"]["allowed"])


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounts]:
    folder = tmp_path_factory.mktemp("one-manifest")
    with running_apiserver(folder) as server:
        server.create_namespace(OWN)
        made = {
            name: write_kubeconfig(server, create_account(server, OWN, name, roles), folder / f"{name}.kubeconfig")
            for name, roles in (("dnsproxy", SERVE), ("installer", INSTALL))
        }
        spec = {"selector": {"app": "dnsproxy"}, "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}]}
        server.request("POST", PATHS["Service"].format(OWN), {"metadata": {"name": "dnsproxy"}, "spec": spec})
        endpoints = [{"addresses": ["192.0.2.7"], "conditions": {"ready": True}}]
        metadata = {"name": "dnsproxy-1", "labels": {"kubernetes.io/service-name": "dnsproxy"}}
        pods = {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": []}
        server.request("POST", PATHS["EndpointSlice"].format(OWN), pods)
        server.create_ingress("shop", ["shop.example.org"])
        yield Accounts(server, made["dnsproxy"], made["installer"])


# --- dnsproxy install ---


@pytest.mark.parametrize("name", WRITTEN)
def test_it_installs_says_so_and_takes_out_without_a_flag(accounts: Accounts, name: str) -> None:
    expected = choose_method(discover(manifests(name)))
    assert expected.target is not None
    with recorded_cluster(accounts.server, name):
        before = accounts.config_maps()
        installed = accounts.run("install")
        assert installed.returncode == 0, installed.stderr
        after = accounts.config_maps()
        changed = {one for one in before.keys() | after.keys() if before.get(one) != after.get(one)}
        assert changed == {expected.target.source.name}
        (installed_by,) = json.loads(accounts.run("status", "--output", "json").stdout)["installed"]
        assert expected.method is not None
        assert (installed_by["method"], installed_by["fault"]) == (expected.method.value, "")
        removed = accounts.run("uninstall")
        assert removed.returncode == 0, removed.stderr
        assert accounts.config_maps() == before


@pytest.mark.parametrize("name", PRINTED)
def test_where_the_dns_has_an_owner_it_says_so_prints_for_it_and_writes_nothing(accounts: Accounts, name: str) -> None:
    with recorded_cluster(accounts.server, name):
        before = accounts.config_maps()
        refused = accounts.run("install")
        assert refused.returncode == 1
        assert "print it for the owner: dnsproxy install --method print" in refused.stderr
        printed = accounts.run("install", "--method", "print")
        assert printed.returncode == 0, printed.stderr
        service = accounts.server.request("GET", f"{PATHS['Service'].format(OWN)}/dnsproxy")
        assert service["spec"]["clusterIP"] in printed.stdout
        assert accounts.config_maps() == before


@pytest.mark.parametrize("name", WATCHED)
def test_one_that_stays_follows_and_repairs_with_no_right_missing(
    accounts: Accounts, tmp_path: Path, name: str
) -> None:
    with recorded_cluster(accounts.server, name):
        before = accounts.config_maps()
        with watching(accounts, tmp_path) as watcher:
            watcher.wait_ready()
            installed = accounts.config_maps()
            (changed,) = (one for one in installed if before.get(one) != installed[one])
            if changed in before:
                path = f"{CONFIG_MAPS}/{changed}"
                as_before = {**accounts.server.request("GET", path), "data": before[changed][0] or {}}
                accounts.server.request("PUT", f"{path}?fieldManager=owner-{next(numbers)}", as_before)
            else:
                accounts.server.request("DELETE", f"{CONFIG_MAPS}/{changed}")
            watcher.wait(lambda: accounts.config_maps() == installed)
            assert [one for one in watcher.lines("retrying") if one["cause"] == "forbidden"] == []
            assert watcher.lines("cannot make an Event") == []
            assert watcher.terminate() == 0
        assert accounts.run("uninstall").returncode == 0
        assert accounts.config_maps() == before


@pytest.mark.parametrize("name", ["rke2", "openshift"])
def test_one_that_stays_where_the_dns_has_an_owner_says_what_to_do_and_misses_no_right(
    accounts: Accounts, tmp_path: Path, name: str
) -> None:
    with recorded_cluster(accounts.server, name):
        before = accounts.config_maps()
        with watching(accounts, tmp_path) as watcher:
            watcher.wait(lambda: "dnsproxy install --method print" in watcher.log.read_text())
            followed = 6 if name == "openshift" else 8
            watcher.wait(lambda: len(watcher.lines("synced")) >= followed)
            assert [one for one in watcher.lines("retrying") if one["cause"] == "forbidden"] == []
            assert not watcher.ready()
        assert accounts.config_maps() == before


def test_where_nothing_serves_dns_the_remedy_is_named(accounts: Accounts) -> None:
    refused = accounts.run("install")
    assert refused.returncode == 3
    assert "name the Service that pods ask with --dns-service" in refused.stderr


# --- dnsproxy serve ---


@contextmanager
def served(accounts: Accounts, folder: Path) -> Iterator[Serving]:
    """The program as one manifest starts it, with a resolv.conf of its own."""
    resolv_conf = folder / "resolv.conf"
    resolv_conf.write_text("nameserver 192.0.2.99\n", encoding="utf-8")
    flags = ["--kubeconfig", str(accounts.dnsproxy), "--resolv-conf", str(resolv_conf)]
    flags += [word for text in UPSTREAM_CONFIG_MAPS for word in ("--upstream-configmap", text)]
    flags += ["--source", "ingress", "--source", "gateway", "--target", "auto", "--routes-namespace", OWN]
    with serving(folder, *flags) as ours:
        yield ours


async def until_ready(ours: Serving) -> None:
    """Each request waits for its reply."""
    with trio.fail_after(40):
        while (await get(ours.admin_endpoint, "/readyz"))[0] != 200:
            pass


async def forwards(ours: Serving) -> str:
    """Where it says to forward, as the installer asks it."""
    (result,) = await ask_all([ours.endpoint], (".",))
    (told,) = {one.forwards for one in result.outcomes}
    assert told is not None
    return told


def decided(ours: Serving) -> list[str]:
    """The ConfigMaps that gave upstreams, in their order."""
    lines = map(json.loads, ours.log.read_text().splitlines())
    return [one["config_map"] for one in lines if one["event"] == "forwarding as the cluster's DNS did"]


def refusals(ours: Serving) -> list[Any]:
    lines = map(json.loads, ours.log.read_text().splitlines())
    return [one for one in lines if one.get("cause") == "forbidden"]


SERVED: Final = [
    ("kubeadm", "kube-system/coredns"),
    ("k3s", "kube-system/coredns"),
    ("rke2", "kube-system/rke2-coredns-rke2-coredns"),
    ("kubespray", "kube-system/nodelocaldns"),
    ("kubespray-coredns", "kube-system/coredns"),
    ("microk8s", "kube-system/coredns"),
    ("gke", "kube-system/kube-dns"),
    ("kubeadm-nodelocal", "kube-system/coredns"),
    ("openshift", "openshift-dns/dns-default"),
]


@pytest.mark.parametrize(("name", "config_map"), SERVED, ids=[name for name, _ in SERVED])
async def test_serve_forwards_where_the_clusters_dns_did_and_misses_no_right(
    accounts: Accounts, tmp_path: Path, name: str, config_map: str
) -> None:
    original = find_original(discover(manifests(name)))
    with recorded_cluster(accounts.server, name), served(accounts, tmp_path) as ours:
        await until_ready(ours)
        assert decided(ours) == [config_map]
        assert list(differences((".",), original.routes, await forwards(ours))) == []
        assert refusals(ours) == []
        assert ours.metric("dnsproxy_forward_upstreams_not_followed") == 0


def corefile_of(upstream: str) -> dict[str, str]:
    return {"Corefile": f".:53 {{\n    forward . {upstream}\n}}\n"}


async def test_serve_follows_the_first_config_map_whatever_comes_and_goes(accounts: Accounts, tmp_path: Path) -> None:
    server = accounts.server

    def create(name: str, data: dict[str, str]) -> None:
        server.request("POST", CONFIG_MAPS, writable({"metadata": {"name": name}, "data": data}))

    async def until(ours: Serving, told: str) -> None:
        with trio.fail_after(20):
            while await forwards(ours) != told:
                pass

    with served(accounts, tmp_path) as ours:
        await until_ready(ours)
        assert await forwards(ours) == ". /etc/resolv.conf"
        assert "none of these ConfigMaps is there" in (await get(ours.admin_endpoint, "/"))[1]
        await in_thread(create, "kube-dns", {"upstreamNameservers": '["192.0.2.61"]'})
        await until(ours, ". 192.0.2.61")
        await in_thread(create, "coredns", corefile_of("192.0.2.62"))
        await until(ours, ". 192.0.2.62")
        await in_thread(create, "nodelocaldns", corefile_of("192.0.2.63"))
        await until(ours, ". 192.0.2.63")
        for name, told in (("nodelocaldns", "192.0.2.62"), ("coredns", "192.0.2.61")):
            await in_thread(server.request, "DELETE", f"{CONFIG_MAPS}/{name}")
            await until(ours, f". {told}")
        await in_thread(server.request, "DELETE", f"{CONFIG_MAPS}/kube-dns")
        with trio.fail_after(20):
            while "the last good upstreams stay" not in (await get(ours.admin_endpoint, "/"))[1]:
                pass
        assert await forwards(ours) == ". 192.0.2.61"
        assert refusals(ours) == []


# --- nothing else ---

NEVER: Final = """
list secrets
get secrets any in kube-system
list configmaps in kube-system
watch configmaps in kube-system
list configmaps
get configmaps extension-apiserver-authentication in kube-system
get configmaps kubeadm-config in kube-system
list services in kube-system
list services
list pods
list nodes
create configmaps in kube-system
create configmaps other in kube-system
patch configmaps kubeadm-config in kube-system
patch configmaps node-local-dns in kube-system
patch configmaps rke2-coredns-rke2-coredns in kube-system
patch configmaps dns-default in openshift-dns
patch configmaps any in switchback
update configmaps coredns in kube-system
delete configmaps coredns in kube-system
delete configmaps nodelocaldns in kube-system
deletecollection configmaps in kube-system
patch services kube-dns in kube-system
patch services dnsproxy in switchback
patch deployments.apps coredns in kube-system
patch daemonsets.apps dns-default in openshift-dns
list daemonsets.apps
list deployments.apps in openshift-dns
create pods in kube-system
create roles.rbac.authorization.k8s.io in kube-system
create clusterrolebindings.rbac.authorization.k8s.io
create events.events.k8s.io in default
list events.events.k8s.io in kube-system
patch ingresses.networking.k8s.io any in default
""".strip().splitlines()


@pytest.mark.parametrize("account", ["dnsproxy", "installer"])
def test_it_may_do_nothing_else(accounts: Accounts, account: str) -> None:
    assert [call for call in NEVER if accounts.may(account, call)] == []


def test_serve_may_write_nothing_at_all(accounts: Accounts) -> None:
    verbs = ("create", "update", "patch", "delete")
    kinds = ("configmaps coredns", "services any", "endpointslices.discovery.k8s.io any", "events.events.k8s.io any")
    calls = [f"{verb} {kind} in {namespace}" for verb in verbs for kind in kinds for namespace in (DNS, OWN)]
    assert [call for call in calls if accounts.may("dnsproxy", call)] == []
