"""With its own token each ServiceAccount may make its program's calls, and other calls are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.called import DNSPROXY, GATEWAYS, NEVER_ALLOWED, RELAY, rows, serving
from tests.deploy.calls import Caller, account
from tests.kit.apiserver import ApiServer

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")


@pytest.fixture(scope="module")
def dnsproxy(applied: ApiServer) -> Caller:
    return account(applied, "switchback", "dnsproxy")


@pytest.fixture(scope="module")
def relay(applied: ApiServer) -> Caller:
    return account(applied, "switchback", "relay")


def test_dnsproxy_may_do_what_serve_does(dnsproxy: Caller) -> None:
    assert dnsproxy.allowed(rows(DNSPROXY)) == rows(DNSPROXY)


def test_dnsproxy_may_do_nothing_else(dnsproxy: Caller) -> None:
    assert dnsproxy.allowed(rows(NEVER_ALLOWED, GATEWAYS)) == []


def test_the_relay_may_follow_route_services_and_their_backends(relay: Caller) -> None:
    assert relay.allowed(rows(RELAY)) == rows(RELAY)


READ_BY_THE_RELAY = ("list services", "watch services", "list endpointslices", "watch endpointslices")


def test_the_relay_may_do_nothing_else(relay: Caller) -> None:
    others = rows(DNSPROXY, NEVER_ALLOWED, GATEWAYS)
    assert relay.allowed(one for one in others if not one.startswith(READ_BY_THE_RELAY)) == []


def test_the_program_works_with_its_rights(applied: ApiServer, tmp_path: Path) -> None:
    config = account(applied, "switchback", "dnsproxy").write_kubeconfig(tmp_path / "kubeconfig")
    applied.create_ingress("shop", ["shop.example.org"])
    with serving("--source", "ingress", kubeconfig=config, folder=tmp_path) as log:
        assert "forbidden" not in log.read_text().lower()


def test_without_its_rights_the_program_is_not_ready(applied: ApiServer, tmp_path: Path) -> None:
    config = account(applied, "switchback", "relay").write_kubeconfig(tmp_path / "kubeconfig")
    with serving("--source", "ingress", kubeconfig=config, folder=tmp_path, until="forbidden") as log:
        assert "forbidden" in log.read_text().lower()
