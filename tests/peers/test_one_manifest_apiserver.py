"""`dnsproxy serve` of the one installation, with its rights alone, on a real kube-apiserver and every cluster DNS.

The rights and the list of ConfigMaps are those of tests/kit/one_manifest.py. `dnsproxy operate` is in
tests/deploy/test_operate_rights.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from dnsproxy.cluster_dns.original_upstreams import find_original
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.corefile.upstream_routes import differences
from tests.kit.accounts import create_account, write_kubeconfig
from tests.kit.allowed import REVIEWS
from tests.kit.apiserver import ApiServer, in_thread, running_apiserver
from tests.kit.log_lines import whole_lines
from tests.kit.manifest_cluster import discover, manifests
from tests.kit.one_manifest import DNS, OWN, SERVE, UPSTREAM_CONFIG_MAPS, UPSTREAM_IMPORTS
from tests.kit.polling import pause
from tests.kit.recorded_cluster import PATHS, recorded_cluster, writable
from tests.kit.serve_inside import get
from tests.kit.serve_process import Serving, serving

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver"), pytest.mark.timeout(400)]

CONFIG_MAPS: Final = PATHS["ConfigMap"].format(DNS)


@dataclass(frozen=True)
class Account:
    """An API server, and the account of `dnsproxy serve`."""

    server: ApiServer
    kubeconfig: Path

    def may(self, call: str) -> bool:
        """Whether the account may make a call: VERB RESOURCE[.GROUP] [NAME] [in NAMESPACE]."""
        words, _, namespace = call.partition(" in ")
        verb, resource, *name = words.split()
        plural, _, group = resource.partition(".")
        asked = {"verb": verb, "resource": plural, "group": group, "namespace": namespace, "name": "".join(name)}
        user = {"user": f"system:serviceaccount:{OWN}:dnsproxy", "groups": ["system:authenticated"]}
        review = self.server.request("POST", REVIEWS, {"spec": {**user, "resourceAttributes": asked}})
        return bool(review["status"]["allowed"])


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    folder = tmp_path_factory.mktemp("one-manifest")
    with running_apiserver(folder) as server:
        server.create_namespace(OWN)
        kubeconfig = write_kubeconfig(server, create_account(server, OWN, "dnsproxy", SERVE), folder / "kubeconfig")
        server.create_ingress("shop", ["shop.example.org"])
        yield Account(server, kubeconfig)


@contextmanager
def served(account: Account, folder: Path) -> Iterator[Serving]:
    """The program as the installation starts it, with a resolv.conf of its own."""
    resolv_conf = folder / "resolv.conf"
    resolv_conf.write_text("nameserver 192.0.2.99\n", encoding="utf-8")
    flags = ["--kubeconfig", str(account.kubeconfig), "--resolv-conf", str(resolv_conf)]
    flags += [word for text in UPSTREAM_CONFIG_MAPS for word in ("--upstream-configmap", text)]
    flags += [word for text in UPSTREAM_IMPORTS for word in ("--upstream-imports", text)]
    flags += ["--source", "ingress", "--source", "gateway", "--target", "auto", "--routes-namespace", OWN]
    with serving(folder, *flags) as ours:
        yield ours


async def until_ready(ours: Serving) -> None:
    """Each request waits for its reply."""
    with trio.fail_after(40):
        while (await get(ours.admin_endpoint, "/readyz"))[0] != 200:
            await pause()


async def forwards(ours: Serving) -> str | None:
    """Where it says to forward, as the installer asks it; None if one of the replies is late or says something else."""
    (result,) = await ask_all([ours.endpoint], (".",))
    told = {one.forwards for one in result.outcomes}
    return told.pop() if len(told) == 1 else None


async def until_it_tells(ours: Serving, wanted: str | None = None) -> str:
    """Where it says to forward, once all replies say so, or say what is wanted. Each probe waits for its replies."""
    with trio.fail_after(60):
        while (told := await forwards(ours)) is None or (wanted is not None and told != wanted):
            await pause()
    return told


def decided(ours: Serving) -> list[str]:
    """The ConfigMaps that gave upstreams, in their order."""
    lines = map(json.loads, whole_lines(ours.log))
    return [one["config_map"] for one in lines if one["event"] == "forwarding as the cluster's DNS did"]


def refusals(ours: Serving) -> list[Any]:
    lines = map(json.loads, whole_lines(ours.log))
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
    account: Account, tmp_path: Path, name: str, config_map: str
) -> None:
    original = find_original(discover(manifests(name)))
    with recorded_cluster(account.server, name), served(account, tmp_path) as ours:
        await until_ready(ours)
        assert decided(ours) == [config_map]
        told = await until_it_tells(ours)
        assert list(differences((".",), original.routes, told)) == []
        assert refusals(ours) == []
        assert ours.metric("dnsproxy_forward_upstreams_not_followed") == 0


def corefile_of(upstream: str) -> dict[str, str]:
    return {"Corefile": f".:53 {{\n    forward . {upstream}\n}}\n"}


async def test_serve_follows_the_first_config_map_whatever_comes_and_goes(account: Account, tmp_path: Path) -> None:
    server = account.server

    def create(name: str, data: dict[str, str]) -> None:
        server.request("POST", CONFIG_MAPS, writable({"metadata": {"name": name}, "data": data}))

    with served(account, tmp_path) as ours:
        await until_ready(ours)
        await until_it_tells(ours, ". /etc/resolv.conf")
        assert "none of these ConfigMaps is there" in (await get(ours.admin_endpoint, "/"))[1]
        await in_thread(create, "kube-dns", {"upstreamNameservers": '["192.0.2.61"]'})
        await until_it_tells(ours, ". 192.0.2.61")
        await in_thread(create, "coredns", corefile_of("192.0.2.62"))
        await until_it_tells(ours, ". 192.0.2.62")
        await in_thread(create, "nodelocaldns", corefile_of("192.0.2.63"))
        await until_it_tells(ours, ". 192.0.2.63")
        for name, told in (("nodelocaldns", "192.0.2.62"), ("coredns", "192.0.2.61")):
            await in_thread(server.request, "DELETE", f"{CONFIG_MAPS}/{name}")
            await until_it_tells(ours, f". {told}")
        await in_thread(server.request, "DELETE", f"{CONFIG_MAPS}/kube-dns")
        with trio.fail_after(60):
            while "the last good upstreams stay" not in (await get(ours.admin_endpoint, "/"))[1]:
                await pause()
        assert await until_it_tells(ours) == ". 192.0.2.61"
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


def test_it_may_do_nothing_else(account: Account) -> None:
    assert [call for call in NEVER if account.may(call)] == []


def test_it_may_write_nothing_at_all(account: Account) -> None:
    verbs = ("create", "update", "patch", "delete")
    kinds = ("configmaps coredns", "services any", "endpointslices.discovery.k8s.io any", "events.events.k8s.io any")
    calls = [f"{verb} {kind} in {namespace}" for verb in verbs for kind in kinds for namespace in (DNS, OWN)]
    assert [call for call in calls if account.may(call)] == []
