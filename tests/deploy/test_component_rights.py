"""With the components that add to it: what the accounts may do then, and still not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.called import DNSPROXY, GATEWAYS, NOBODY, PUBLISHER, rows, serving
from tests.deploy.calls import ALLOWED, FORBIDDEN, Caller, account, parse_call
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY, compose
from tests.peers.apiserver import ApiServer

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

COMPONENTS = [DEPLOY / "components" / name for name in ("gateway-api", "external-dns")]


@pytest.fixture(scope="module")
def with_gateways(bare: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> ApiServer:
    folder = compose(tmp_path_factory.mktemp("composed"), with_components=COMPONENTS)
    kubectl(bare, "apply", "-k", str(folder))
    return bare


@pytest.fixture(scope="module")
def gateway_reader(with_gateways: ApiServer) -> Caller:
    return account(with_gateways, "switchback", "dnsproxy")


@pytest.fixture(scope="module")
def publisher(with_gateways: ApiServer) -> Caller:
    return account(with_gateways, "switchback", "publisher")


@pytest.mark.parametrize("call", [*rows(DNSPROXY), *rows(GATEWAYS)])
def test_with_the_component_dnsproxy_reads_gateways(gateway_reader: Caller, call: str) -> None:
    assert gateway_reader.verdict(parse_call(call)) == ALLOWED


@pytest.mark.parametrize("call", rows(NOBODY))
def test_with_the_component_dnsproxy_may_do_nothing_else(gateway_reader: Caller, call: str) -> None:
    assert gateway_reader.verdict(parse_call(call)) == FORBIDDEN


@pytest.mark.parametrize("call", rows(PUBLISHER))
def test_the_publisher_may_keep_its_records(publisher: Caller, call: str) -> None:
    assert publisher.verdict(parse_call(call)) == ALLOWED


@pytest.mark.parametrize("call", [*rows(DNSPROXY), *rows(NOBODY), *rows(GATEWAYS), "list dnsendpoints"])
def test_the_publisher_may_do_nothing_else(publisher: Caller, call: str) -> None:
    assert publisher.verdict(parse_call(call)) == FORBIDDEN


@pytest.mark.parametrize("call", [*rows(DNSPROXY), *rows(NOBODY), *rows(GATEWAYS), *rows(PUBLISHER)])
def test_an_administrator_may_do_all_of_it(with_gateways: ApiServer, call: str) -> None:
    """Else a call would be refused for another reason than its rights."""
    assert Caller(with_gateways, with_gateways.token).verdict(parse_call(call)) == ALLOWED


def test_the_program_itself_gets_along_with_gateways(with_gateways: ApiServer, tmp_path: Path) -> None:
    config = account(with_gateways, "switchback", "dnsproxy").write_kubeconfig(tmp_path / "kubeconfig")
    with serving("--source", "ingress", "--source", "gateway", kubeconfig=config, folder=tmp_path) as log:
        assert "forbidden" not in log.read_text().lower()
