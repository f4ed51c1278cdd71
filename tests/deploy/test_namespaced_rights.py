"""Roles in two namespaces, exactly as the guide shows them, on a real API server: what is answered and what refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import dns.message
import dns.query
import pytest

from tests.deploy.called import GATEWAYS, NEVER_ALLOWED, is_ready, rows
from tests.deploy.calls import Caller, account
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import find, render, settings_of
from tests.deploy.shown_files import PAGES, write_shown
from tests.kit.apiserver import ApiServer, ingress, send
from tests.kit.polling import poll_until
from tests.kit.serve_process import Serving, serving

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

RELAY = "192.0.2.50"
CHOSEN = ("shop", "edge")
READ = [f"{verb} ingresses" for verb in ("list", "watch")] + rows(GATEWAYS)
CLUSTER_WIDE = [f"{verb} {one}" for verb in ("list", "watch") for one in ("ingressclasses", "namespaces")]
_SECONDS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shown(PAGES / "sources.md", tmp_path_factory.mktemp("shown")) / "two-namespaces"


@pytest.fixture(scope="module")
def namespaced(bare: ApiServer, folder: Path) -> Iterator[ApiServer]:
    for name in (*CHOSEN, "other"):
        bare.create_namespace(name)
    kubectl(bare, "apply", "-k", str(folder))
    for name in (*CHOSEN, "other"):
        with bare.connection() as connection:
            item = ingress("app", [f"{name}.example.org"], namespace=name)
            send(connection, "POST", f"/apis/networking.k8s.io/v1/namespaces/{name}/ingresses", item)
    yield bare
    for name in (*CHOSEN, "other"):
        bare.delete_all_ingresses(namespace=name)


@pytest.fixture(scope="module")
def dnsproxy(namespaced: ApiServer) -> Caller:
    caller = account(namespaced, "switchback", "dnsproxy")
    calls = [f"list ingresses in {name}" for name in CHOSEN]
    poll_until(lambda: caller.allowed(calls) == calls, f"allowed: {calls}", seconds=_SECONDS)
    return caller


def test_dnsproxy_reads_the_chosen_namespaces(dnsproxy: Caller) -> None:
    calls = [f"{call} in {name}" for call in READ for name in CHOSEN]
    assert dnsproxy.allowed(calls) == calls


def test_dnsproxy_reads_nothing_of_other_namespaces_or_of_the_whole_cluster(dnsproxy: Caller) -> None:
    calls = [*READ, *(f"{call} in other" for call in READ), *CLUSTER_WIDE, *rows(NEVER_ALLOWED)]
    calls += [f"list {one} in shop" for one in ("secrets", "configmaps", "services", "pods", "endpointslices")]
    assert dnsproxy.allowed(calls) == []


def test_the_names_of_the_chosen_namespaces_are_answered(dnsproxy: Caller, folder: Path, tmp_path: Path) -> None:
    manifests = render(folder)
    shipped = settings_of(manifests, find(manifests, "Deployment", "dnsproxy")["spec"]["template"])
    wanted = ("DNSPROXY_SOURCE", "DNSPROXY_NAMESPACE", "DNSPROXY_UPSTREAM_CONFIGMAP")
    variables = {key: value for key, value in shipped.items() if key.startswith(wanted)}
    config = dnsproxy.write_kubeconfig(tmp_path / "kubeconfig")
    flags = (f"--target={RELAY}", "--ownership=off", f"--kubeconfig={config}")
    with serving(tmp_path, *flags, environment=variables) as server:
        poll_until(partial(is_ready, server.admin_endpoint.port), "ready", seconds=_SECONDS)
        found = {name: addresses(server, f"{name}.example.org") for name in (*CHOSEN, "other")}
        assert found == {"shop": [RELAY], "edge": [RELAY], "other": []}


def addresses(server: Serving, name: str) -> list[str]:
    query = dns.message.make_query(name, "A")
    answer = dns.query.udp(query, server.endpoint.host, port=server.endpoint.port, timeout=10)
    return [str(one) for rrset in answer.answer for one in rrset]
