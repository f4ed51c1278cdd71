"""`dnsproxy operate` with its own token, on each recorded cluster DNS: installs, repairs, takes out or prints, no more.

How it steers with that token is in test_steering_rights.py, what the commands of people may do in tests/peers.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest

from dnsproxy.admin.rewrites_document import PATH, Name, RewritesDocument, format_rewrites_document
from dnsproxy.cluster_dns.method_choice import Method, choose_method
from dnsproxy.dns.names import Reach
from tests.deploy.calls import Caller, account
from tests.deploy.manifests import DEPLOY, INSTALLATION, Manifest, find, render, settings_of
from tests.deploy.putting import put, take_away
from tests.kit.apiserver import ApiServer
from tests.kit.log_lines import whole_lines
from tests.kit.manifest_cluster import NAMES, discover, manifests
from tests.kit.prepared_program import play
from tests.kit.recorded_cluster import PATHS, recorded_cluster
from tests.kit.watching import Watching, launched_watch

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

BEYOND: Final = ("coredns-chart", "coreweave", "idpbuilder")
"""Clusters whose names the Roles lack; deploy/README.md has the patch."""
ADDRESSED: Final = ("kops-forward",)
"""Its cache forwards to the ClusterIP of its Service, which has another one on this API server."""
CLUSTERS: Final = [name for name in NAMES if name not in (*BEYOND, *ADDRESSED)]
PRINTED: Final = [name for name in CLUSTERS if choose_method(discover(manifests(name))).method is Method.PRINT]
WRITTEN: Final = ("kubeadm", "k3s", "gke", "kubespray", "rke2-nodelocal", "cozystack")
"""One cluster of each method and ConfigMap, and one with a cache on its nodes: what RBAC sees of an installation."""

RIGHTS: Final = frozenset({"ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})
DNS_MAPS: Final = PATHS["ConfigMap"].format("kube-system")
LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/switchback/leases/switchback-operate"
WRITES: Final = ("create", "patch", "update", "delete")

MAPS: Final = {
    "coredns": ["patch"],
    "nodelocaldns": ["patch"],
    "coredns-custom": ["create", "patch", "delete"],
    "kube-dns": ["create", "patch", "delete"],
    "node-local-dns": [],
    "rke2-coredns-rke2-coredns": [],
    "kube-proxy": [],
    "kubeadm-config": [],
    "extension-apiserver-authentication": [],
}
"""What operate may do to ConfigMaps of kube-system, beside reading those of the cluster's DNS."""

REFUSED: Final = """
list secrets
get secrets any in kube-system
get secrets any in switchback
list configmaps
list configmaps in kube-system
watch configmaps in kube-system
list configmaps in switchback
get configmaps extension-apiserver-authentication in kube-system
get configmaps kubeadm-config in kube-system
get configmaps any in switchback
get configmaps any in default
list configmaps kube-proxy in kube-system
create configmaps in switchback
patch configmaps any in switchback
patch configmaps dns-default in openshift-dns
deletecollection configmaps in kube-system
patch deployments coredns in kube-system
delete deployments coredns in kube-system
patch deployments dnsproxy in switchback
patch daemonsets any in kube-system
list deployments
list deployments in default
watch daemonsets
get services any in default
create services in default
create services in kube-system
patch services kube-dns in kube-system
delete services kube-dns in kube-system
patch services controller in ingress-nginx
patch services/status controller in ingress-nginx
patch services/status any in switchback
deletecollection services in switchback
update services any in switchback
create endpointslices in switchback
patch endpointslices any in switchback
patch ingressclasses any
create ingressclasses
patch gateways any in default
patch gateways/status any in default
list httproutes
watch ingresses
patch ingresses any in default
create leases in kube-system
get leases other in switchback
update leases other in switchback
delete leases switchback-operate in switchback
list leases in switchback
get felixconfigurations other
list felixconfigurations
list events
list events in default
patch events any in switchback
delete events any in switchback
list pods
list pods in kube-system
get pods any in switchback
get pods/proxy any in switchback
create pods in kube-system
create pods in switchback
patch configmaps kubeadm-config in kube-system
patch configmaps node-local-dns in kube-system
patch configmaps rke2-coredns-rke2-coredns in kube-system
update configmaps coredns in kube-system
delete configmaps coredns in kube-system
delete configmaps nodelocaldns in kube-system
patch services dnsproxy in kube-system
list deployments in openshift-dns
patch daemonsets dns-default in openshift-dns
create pods/exec any in switchback
create serviceaccounts/token operate in switchback
create serviceaccounts/token dnsproxy in switchback
list namespaces
create namespaces
delete namespaces switchback
list nodes
get nodes any
create roles in kube-system
patch roles switchback-operate-writing in kube-system
create clusterrolebindings
delete networkpolicies nothing-else in switchback
""".strip().splitlines()

GRANTED: Final = """
list services
watch services
list endpointslices
watch endpointslices
list ingressclasses
watch ingressclasses
list gateways
watch gateways
list gatewayclasses
watch gatewayclasses
list daemonsets
list ingresses
get configmaps kube-proxy in kube-system
get configmaps cilium-config in cilium
get configmaps antrea-config in kube-system
get felixconfigurations default
get services dns-default in openshift-dns
get configmaps dns-default in openshift-dns
watch configmaps dns-default in openshift-dns
watch daemonsets dns-default in openshift-dns
create events in default
create events in kube-system
create events in ingress-nginx
create events in switchback
create services in switchback
patch services relay-nginx in switchback
delete services relay-nginx in switchback
create leases in switchback
get leases switchback-operate in switchback
update leases switchback-operate in switchback
list events in kube-system
list events in switchback
list pods in switchback
list statefulsets in switchback
list cronjobs in switchback
""".strip().splitlines()
"""What steering, `status` and `uninstall` take. What the cluster's DNS takes is shown by the installations below."""

numbers = itertools.count()


@dataclass(frozen=True)
class Installed:
    """An API server with the accounts of a kustomization, and the token of operate's."""

    server: ApiServer
    operate: Caller
    kubeconfig: Path
    settings: dict[str, str]
    """Those of operate's pod."""

    def command_line(self, command: str, *arguments: str) -> list[str]:
        where = ["--kubeconfig", str(self.kubeconfig), "--service", "switchback/dnsproxy"]
        where += [] if command == "status" else ["--timeout", "0"]
        return [sys.executable, "-m", "dnsproxy", command, *where, *arguments]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of ours until it ends, as operate's pod would."""
        environment = {**os.environ, **self.settings, "NO_COLOR": "1"}
        return play(self.command_line(*words), environment)

    def config_maps(self) -> dict[str, Any]:
        """What a person sees of the ConfigMaps in kube-system."""
        found = self.server.request("GET", DNS_MAPS)["items"]
        shown = ("annotations", "labels")
        return {
            one["metadata"]["name"]: (one.get("data"), *(one["metadata"].get(key) for key in shown)) for one in found
        }

    def reasons(self, namespace: str = "kube-system") -> set[str]:
        """The reasons of the Events in a namespace."""
        found = self.server.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
        return {one["reason"] for one in found}


@pytest.fixture(scope="module")
def installed(
    bare: ApiServer, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """The installation, or with an indirect parameter the overlay of that name."""
    folder = DEPLOY / "overlays" / request.param if hasattr(request, "param") else INSTALLATION
    rendered = render(folder)
    # It runs here as a process, if at all.
    find(rendered, "Deployment", "operate")["spec"]["replicas"] = 0
    put(bare, [one for one in rendered if one["kind"] in {"Namespace", "Service", "Deployment", *RIGHTS}])
    bare.request("PATCH", SLICE, ready_slice(), content_type="application/apply-patch+yaml")
    bare.create_ingress("shop", ["shop.example.org"])
    operate = account(bare, "switchback", "operate")
    config = operate.write_kubeconfig(tmp_path_factory.mktemp("operate") / "kubeconfig")
    settings = settings_of(rendered, find(rendered, "Deployment", "operate")["spec"]["template"])
    try:
        yield Installed(bare, operate, config, settings)
    finally:
        bare.delete_all_ingresses()
        for namespace in ("default", "kube-system", "switchback"):
            bare.request("DELETE", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
        # Otherwise the next account would have the rights of this one.
        take_away(bare, [one for one in rendered if one["kind"] in RIGHTS])


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    """The admin port of a dnsproxy that says which names a Service answers, for a method that writes these."""
    document = RewritesDocument(names=(Name("shop.example.org", Reach.NAME, "switchback/relay-nginx"),))
    octets, tag = format_rewrites_document(document)

    class Admin(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == PATH
            self.send_response(200 if found else 404)
            self.send_header("etag", f'"{tag}"')
            self.send_header("content-length", str(len(octets) if found else 0))
            self.end_headers()
            self.wfile.write(octets if found else b"")

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Admin)
    serving = Thread(target=server.serve_forever)
    serving.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    serving.join()


printing = pytest.mark.parametrize("installed", ["eks"], indirect=True, ids=["print"], scope="module")


# --- the stanza ---


def test_every_cluster_is_written_by_the_calls_of_one_that_is_tried() -> None:
    def written(name: str) -> tuple[Method | None, str]:
        choice = choose_method(discover(manifests(name)))
        assert choice.target is not None, name
        return choice.method, choice.target.source.name

    assert {written(name) for name in CLUSTERS if name not in PRINTED} == {written(name) for name in WRITTEN}


@pytest.mark.parametrize("name", WRITTEN)
def test_it_installs_repeats_and_takes_out_with_its_own_rights(installed: Installed, names: str, name: str) -> None:
    choice = choose_method(discover(manifests(name)))
    assert choice.target is not None
    told = ["--from", names] if choice.method is Method.OVERRIDE_REWRITES else []
    with recorded_cluster(installed.server, name):
        before = installed.config_maps()
        for _ in range(2):
            done = installed.run("install", *told)
            assert done.returncode == 0, done.stderr
        after = installed.config_maps()
        assert {one for one in before.keys() | after.keys() if before.get(one) != after.get(one)} == {
            choice.target.source.name
        }
        (stanza,) = json.loads(installed.run("status", *told, "--output", "json").stdout)["installed"]
        assert choice.method is not None
        assert (stanza["method"], stanza["fault"]) == (choice.method.value, "")
        for _ in range(2):
            removed = installed.run("uninstall")
            assert removed.returncode == 0, removed.stderr
        # A key of ours, and a ConfigMap that was made for it, are gone too.
        assert installed.config_maps() == before


@pytest.mark.parametrize("name", WRITTEN)
def test_the_program_itself_installs_and_repairs_with_no_right_missing(
    installed: Installed, names: str, tmp_path: Path, name: str
) -> None:
    told = ["--from", names] if name == "cozystack" else []
    with recorded_cluster(installed.server, name):
        before = installed.config_maps()
        with operating(installed, tmp_path, *told) as operate:
            operate.wait_ready()
            after = installed.config_maps()
            (changed,) = (one for one in after if before.get(one) != after[one])
            undo(installed.server, changed, before.get(changed))
            operate.wait(lambda: installed.config_maps() == after)
            operate.wait(lambda: {"StanzaInstalled", "StanzaRepaired"} <= installed.reasons())
            assert faults(operate) == []
            assert installed.server.request("GET", LEASE)["spec"]["holderIdentity"]
            refused = installed.run("uninstall")
            assert (refused.returncode, "which holds the Lease switchback/" in refused.stderr) == (1, True)
            assert installed.config_maps() == after
            assert operate.terminate() == 0
        # It was given back, so that a successor leads at once.
        assert not installed.server.request("GET", LEASE)["spec"].get("holderIdentity")
        assert installed.run("uninstall").returncode == 0
        assert installed.config_maps() == before


@pytest.mark.parametrize("name", PRINTED)
def test_where_the_dns_has_an_owner_it_writes_nothing_and_says_what_to_print(
    installed: Installed, tmp_path: Path, name: str
) -> None:
    with recorded_cluster(installed.server, name):
        before = installed.config_maps()
        refused = installed.run("install")
        assert refused.returncode == 1
        assert "print it for the owner: dnsproxy install --method print" in refused.stderr
        with operating(installed, tmp_path) as operate:
            operate.wait(lambda: "dnsproxy install --method print" in operate.log.read_text())
            assert not operate.ready()
            assert faults(operate) == []
        assert installed.config_maps() == before


@printing
@pytest.mark.parametrize("name", PRINTED)
def test_an_overlay_prints_for_the_owner_and_may_write_nothing_there(
    installed: Installed, tmp_path: Path, name: str
) -> None:
    with recorded_cluster(installed.server, name):
        before = installed.config_maps()
        printed = installed.run("install", "--method", "print")
        assert printed.returncode == 0, printed.stderr
        service = installed.server.request("GET", f"{PATHS['Service'].format('switchback')}/dnsproxy")
        assert service["spec"]["clusterIP"] in printed.stdout
        assert "goes into: " in printed.stderr
        # It is ready without a stanza, because it keeps none.
        with operating(installed, tmp_path, "--method", "print") as operate:
            operate.wait_ready()
            assert faults(operate) == []
        assert installed.config_maps() == before


def test_where_nothing_serves_dns_it_names_the_remedy(installed: Installed) -> None:
    refused = installed.run("install")
    assert refused.returncode == 1
    assert "name the Service that pods ask with --dns-service" in refused.stderr


# --- nothing else ---


def test_it_may_do_what_steering_takes(installed: Installed) -> None:
    assert installed.operate.allowed(GRANTED) == GRANTED


def test_it_may_do_nothing_else(installed: Installed) -> None:
    assert installed.operate.allowed(REFUSED) == []


@pytest.mark.parametrize("name", MAPS)
def test_of_the_config_maps_of_the_dns_it_writes_those_that_keep_an_edit(installed: Installed, name: str) -> None:
    calls = {f"{verb} configmaps {name} in kube-system": verb for verb in WRITES if verb != "create"}
    allowed = [calls[call] for call in installed.operate.allowed(calls)]
    assert allowed == [verb for verb in MAPS[name] if verb != "create"]


def test_it_creates_no_config_map_of_another_name(installed: Installed) -> None:
    assert installed.operate.allowed(["create configmaps in kube-system"]) == []
    # By a patch, in which RBAC sees the name.
    made = {name: creates(installed, name) for name in ("coredns-custom", "kube-dns", "coredns", "anything")}
    assert made == {"coredns-custom": True, "kube-dns": True, "coredns": False, "anything": False}


@printing
def test_an_overlay_takes_the_rights_to_write_the_dns_away_and_no_other(installed: Installed) -> None:
    calls = [f"{verb} configmaps {name} in kube-system" for verb in WRITES for name in MAPS if verb != "create"]
    assert installed.operate.allowed(calls) == []
    assert not any(creates(installed, name) for name in ("coredns-custom", "kube-dns"))
    assert installed.operate.allowed(GRANTED) == GRANTED
    assert installed.operate.allowed(REFUSED) == []


def test_an_administrator_may_do_all_of_it(installed: Installed) -> None:
    """Otherwise a call would be refused for another reason than its rights."""
    administrator = Caller(installed.server, installed.server.token)
    assert administrator.allowed([*GRANTED, *REFUSED]) == [*GRANTED, *REFUSED]


def operating(installed: Installed, folder: Path, *arguments: str) -> Any:
    """`dnsproxy operate` as its pod runs it, for the duration of a block."""
    return launched_watch(installed.command_line("operate", *arguments), folder)


def faults(operate: Watching) -> list[Any]:
    """The log lines about rights that are missing."""
    lines = [json.loads(line) for line in whole_lines(operate.log)]
    return [one for one in lines if "forbidden" in json.dumps(one).lower() or one["event"] == "cannot make an Event"]


def undo(server: ApiServer, name: str, before: Any) -> None:
    """What the owner does when it renders the ConfigMap again."""
    path = f"{DNS_MAPS}/{name}"
    if before is None:
        server.request("DELETE", path)
    else:
        found = {**server.request("GET", path), "data": before[0] or {}}
        server.request("PUT", f"{path}?fieldManager=owner-{next(numbers)}", found)


def creates(installed: Installed, name: str) -> bool:
    """Whether operate may create a ConfigMap by a patch; a dry run."""
    with installed.operate.connection() as connection:
        query = "fieldManager=test&force=true&dryRun=All"
        headers = {"authorization": f"Bearer {installed.operate.token}", "content-type": "application/apply-patch+yaml"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"}}
        connection.request("PATCH", f"{DNS_MAPS}/{name}?{query}", json.dumps(body), headers)
        return connection.getresponse().status in {200, 201}


SLICE: Final = "/apis/discovery.k8s.io/v1/namespaces/switchback/endpointslices/dnsproxy-1?fieldManager=test&force=true"


def ready_slice() -> Manifest:
    """The object that the control plane would create for a ready dnsproxy, which nobody can ask."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "dnsproxy-1", "labels": {"kubernetes.io/service-name": "dnsproxy"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.7"], "conditions": {"ready": True}}],
        "ports": [{"name": "dns", "port": 1053, "protocol": "UDP"}],
    }
