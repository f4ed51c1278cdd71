"""`dnsproxy ip-mode --check` on a real API server: what it reads, with all rights and with few."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.accounts import cluster_role, create_account, write_kubeconfig
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.prepared_program import play

pytestmark = [pytest.mark.peer("kube-apiserver"), pytest.mark.peer("etcd")]

ADDRESS = "203.0.113.10"
HOST = "app.example.org"
HCLOUD = {"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}
METALLB = {"metallb.io/address-pool": "default"}
MERGE = "application/merge-patch+json"
READS = [
    {
        "apiGroups": [""],
        "resources": ["services", "nodes", "namespaces", "configmaps", "pods"],
        "verbs": ["get", "list", "watch"],
    },
    {"apiGroups": ["apps"], "resources": ["daemonsets", "deployments"], "verbs": ["get", "list"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses", "ingressclasses"], "verbs": ["get", "list"]},
    {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"],
        "verbs": ["get"],
    },
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A cluster with kube-proxy 1.36, and two load balancers: one that sends the header, and one of MetalLB."""
    with running_apiserver(tmp_path_factory.mktemp("check")) as api:
        create_kube_proxy(api)
        create_service(api, "edge", HCLOUD, ADDRESS)
        create_service(api, "announced", METALLB, "203.0.113.20")
        api.create_ingress("shop", [HOST])
        write_ingress_status(api, "shop", ADDRESS)
        yield api


def create_kube_proxy(api: ApiServer) -> None:
    container = {"name": "kube-proxy", "image": "registry.example.org/kube-proxy:v1.36.3"}
    labels = {"k8s-app": "kube-proxy"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    body = {
        "metadata": {"name": "kube-proxy", "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    api.request("POST", "/apis/apps/v1/namespaces/kube-system/daemonsets", body)


def create_service(api: ApiServer, name: str, annotations: dict[str, str], address: str) -> None:
    ports = [{"name": "http", "port": 80}, {"name": "https", "port": 443}]
    spec = {"type": "LoadBalancer", "ports": ports, "selector": {"app": name}}
    metadata = {"name": name, "annotations": annotations}
    api.request("POST", "/api/v1/namespaces/default/services", {"metadata": metadata, "spec": spec})
    write_status(api, name, address)


def write_status(api: ApiServer, name: str, address: str, mode: str = "VIP", manager: str = "hcloud-ccm") -> None:
    """As a provider's controller writes it."""
    body = {"status": {"loadBalancer": {"ingress": [{"ip": address, "ipMode": mode}]}}}
    path = f"/api/v1/namespaces/default/services/{name}/status?fieldManager={manager}"
    api.request("PATCH", path, body, content_type=MERGE)


def write_ingress_status(api: ApiServer, name: str, address: str) -> None:
    body = {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}
    path = f"/apis/networking.k8s.io/v1/namespaces/default/ingresses/{name}/status"
    api.request("PATCH", path, body, content_type=MERGE)


def run(api: ApiServer, *arguments: str, kubeconfig: Path | None = None, status: int) -> str:
    done = ip_mode(api, "--check", *arguments, kubeconfig=kubeconfig)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout or done.stderr


def ip_mode(api: ApiServer, *arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if name != "KUBERNETES_SERVICE_HOST"}
    command = [sys.executable, "-m", "dnsproxy", "ip-mode", "--kubeconfig", str(kubeconfig or api.kubeconfig)]
    return play([*command, *arguments], environment)


def check(api: ApiServer, *arguments: str, kubeconfig: Path | None = None, status: int) -> Any:
    return json.loads(run(api, *arguments, "--output", "json", kubeconfig=kubeconfig, status=status))


def test_a_host_whose_balancer_sends_the_header_would_be_helped(server: ApiServer) -> None:
    document = check(server, HOST, status=0)
    (service,) = document["services"]
    assert (service["service"], service["helps"], service["harms"]) == ("default/edge", "yes", "no")
    assert service["hosts"] == [HOST]
    assert [one["manager"] for one in service["writers"]] == ["hcloud-ccm"]
    assert service["ways_out"] == []
    assert document["api_version"] == "v1"
    assert document["data_plane"]["name"].startswith("kube-proxy 1.36.3")


def test_a_balancer_that_passes_packets_on_would_be_harmed(server: ApiServer) -> None:
    (service,) = check(server, "--service", "default/announced", status=1)["services"]
    assert service["harms"] == "yes"
    assert "cut off" in service["verdict"]
    # The user's word changes nothing about what is known.
    check(server, "--service", "default/announced", "--balancer-ends-connections", status=1)


def test_the_text_has_the_command_to_type_next(server: ApiServer) -> None:
    text = run(server, HOST, status=0)
    assert "dnsproxy ip-mode --apply --service default/edge --rewrite" in text
    assert "Nothing was dialled" in text


def test_nothing_is_written(server: ApiServer) -> None:
    before = server.request("GET", "/api/v1/namespaces/default/services")["metadata"]["resourceVersion"]
    versions = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in services(server)}
    check(server, HOST, status=0)
    assert {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in services(server)} == versions
    assert before


def services(api: ApiServer) -> Any:
    return api.request("GET", "/api/v1/namespaces/default/services")["items"]


def test_writes_of_the_status_are_counted_while_it_watches(server: ApiServer) -> None:
    create_service(server, "busy", HCLOUD, "203.0.113.30")
    command = [sys.executable, "-m", "dnsproxy", "ip-mode", "--kubeconfig", str(server.kubeconfig)]
    command += ["--check", "--service", "default/busy", "--seconds", "8", "--output", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        # More writes than are asserted: those before the watch begins do not count.
        mode = "Proxy"
        while running.poll() is None:
            write_status(server, "busy", "203.0.113.30", mode)
            mode = "VIP" if mode == "Proxy" else "Proxy"
            time.sleep(0.2)
        assert running.stdout is not None
        document = json.loads(running.stdout.read())
    assert document["services"][0]["writes"]["count"] > 3


def test_a_host_that_nobody_serves_is_not_found_out(server: ApiServer) -> None:
    assert "dnsproxy doctor absent.example.org" in run(server, "absent.example.org", status=3)


def test_a_service_that_does_not_exist_is_named(server: ApiServer) -> None:
    assert "--service default/absent" in run(server, "--service", "default/absent", status=3)


def test_an_account_that_may_not_list_services_learns_which_right_it_lacks(server: ApiServer, tmp_path: Path) -> None:
    token = create_account(server, "default", "nobody", [])
    kubeconfig = write_kubeconfig(server, token, tmp_path / "kubeconfig")
    assert "list services" in run(server, kubeconfig=kubeconfig, status=3)


def test_with_the_policy_the_dry_run_shows_whether_it_is_in_effect(server: ApiServer, tmp_path: Path) -> None:
    applied = ip_mode(server, "--apply", "--service", "default/edge", "--balancer-ends-connections")
    assert applied.returncode == 0, applied.stderr
    try:
        (service,) = check(server, HOST, status=0)["services"]
        assert service["selected"]
        assert service["in_effect"]["state"] == "yes"
        token = create_account(server, "default", "reader", [cluster_role(READS)])
        kubeconfig = write_kubeconfig(server, token, tmp_path / "kubeconfig")
        (service,) = check(server, HOST, kubeconfig=kubeconfig, status=0)["services"]
        # Without the right to patch a status, the dry run is refused, and the rest is as before.
        assert (service["helps"], service["in_effect"]["state"]) == ("yes", "unknown")
        write_status(server, "edge", ADDRESS)
        (service,) = check(server, HOST, status=0)["services"]
        assert service["verdict"].startswith("yes, and it does")
    finally:
        assert ip_mode(server, "--remove", "--service", "default/edge", "--rewrite").returncode == 0
