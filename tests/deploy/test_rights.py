"""With its own token each ServiceAccount may make its program's calls, and other calls are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.called import DNSPROXY, GATEWAYS, NEVER_ALLOWED, RELAY, rows, serving
from tests.deploy.calls import ALLOWED, FORBIDDEN, Caller, account, parse_call
from tests.kit.apiserver import ApiServer

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")


@pytest.fixture(scope="module")
def dnsproxy(applied: ApiServer) -> Caller:
    return account(applied, "switchback", "dnsproxy")


@pytest.fixture(scope="module")
def relay(applied: ApiServer) -> Caller:
    return account(applied, "switchback", "relay")


@pytest.mark.parametrize("call", rows(DNSPROXY))
def test_dnsproxy_may_do_what_serve_does(dnsproxy: Caller, call: str) -> None:
    assert dnsproxy.verdict(parse_call(call)) == ALLOWED


@pytest.mark.parametrize("call", [*rows(NEVER_ALLOWED), *rows(GATEWAYS)])
def test_dnsproxy_may_do_nothing_else(dnsproxy: Caller, call: str) -> None:
    assert dnsproxy.verdict(parse_call(call)) == FORBIDDEN


@pytest.mark.parametrize("call", rows(RELAY))
def test_the_relay_may_follow_route_services_and_their_backends(relay: Caller, call: str) -> None:
    assert relay.verdict(parse_call(call)) == ALLOWED


READ_BY_THE_RELAY = ("list services", "watch services", "list endpointslices", "watch endpointslices")


@pytest.mark.parametrize(
    "call",
    [
        one
        for one in dict.fromkeys((*rows(DNSPROXY), *rows(NEVER_ALLOWED), *rows(GATEWAYS)))
        if not one.startswith(READ_BY_THE_RELAY)
    ],
)
def test_the_relay_may_do_nothing_else(relay: Caller, call: str) -> None:
    assert relay.verdict(parse_call(call)) == FORBIDDEN


def test_the_program_works_with_its_rights(applied: ApiServer, tmp_path: Path) -> None:
    config = account(applied, "switchback", "dnsproxy").write_kubeconfig(tmp_path / "kubeconfig")
    applied.create_ingress("shop", ["shop.example.org"])
    with serving("--source", "ingress", kubeconfig=config, folder=tmp_path) as log:
        assert "forbidden" not in log.read_text().lower()


def test_without_its_rights_the_program_is_not_ready(applied: ApiServer, tmp_path: Path) -> None:
    config = account(applied, "switchback", "relay").write_kubeconfig(tmp_path / "kubeconfig")
    with serving("--source", "ingress", kubeconfig=config, folder=tmp_path, until="forbidden") as log:
        assert "forbidden" in log.read_text().lower()
