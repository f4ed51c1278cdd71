"""With its own token each ServiceAccount may do what its program does, and is refused what it must not do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.deploy.calls import ALLOWED, FORBIDDEN, Caller, account, parse_call
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import BASE, DEPLOY, compose
from tests.peers.apiserver import ApiServer, running_apiserver
from tests.peers.processes import end_process, free_ports, wait_for
from tests.peers.programs import program

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "dnsendpoint")

GATEWAY_API = DEPLOY / "components" / "gateway-api"
EXTERNAL_DNS = DEPLOY / "components" / "external-dns"

DNSPROXY = """
list ingresses
watch ingresses
list ingressclasses
watch ingressclasses
list services relay in switchback
watch services relay in switchback
"""

GATEWAYS = """
list gateways
watch gateways
list httproutes
watch httproutes
list grpcroutes
watch grpcroutes
list listenersets
watch listenersets
list tlsroutes
watch tlsroutes
list namespaces
watch namespaces
"""

PUBLISHER = """
list dnsendpoints in switchback
create dnsendpoints in switchback
patch dnsendpoints any in switchback
delete dnsendpoints any in switchback
"""

NOBODY = """
list secrets
get secrets any in switchback
get secrets any in kube-system
list configmaps in kube-system
get configmaps coredns in kube-system
update configmaps coredns in kube-system
patch configmaps coredns in kube-system
delete configmaps coredns in kube-system
create configmaps in switchback
list services
list services in switchback
list services in kube-system
watch services dnsproxy in switchback
get services relay in switchback
patch services relay in switchback
delete services relay in switchback
create ingresses in default
update ingresses any in default
patch ingresses any in default
delete ingresses any in default
deletecollection ingresses in default
get ingresses any in default
list pods
create pods in switchback
create pods in kube-system
create pods/exec any in switchback
create serviceaccounts/token dnsproxy in switchback
list nodes
get nodes any
list deployments in switchback
patch deployments dnsproxy in switchback
list endpointslices in switchback
create roles in switchback
patch roles dnsproxy-target in switchback
create clusterrolebindings
list networkpolicies in switchback
delete networkpolicies nothing-else in switchback
create leases in switchback
create namespaces
delete namespaces switchback
"""


def rows(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running_apiserver(tmp_path_factory.mktemp("rights")) as server:
        kubectl(server, "apply", "-k", str(BASE))
        yield server


@pytest.fixture(scope="module")
def with_gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running_apiserver(tmp_path_factory.mktemp("gateways")) as server:
        kubectl(server, "apply", "--server-side", "-f", f"{program('gateway-api')}/standard")
        kubectl(server, "apply", "--server-side", "-f", program("dnsendpoint"))
        folder = compose(tmp_path_factory.mktemp("composed"), with_components=[GATEWAY_API, EXTERNAL_DNS])
        kubectl(server, "apply", "-k", str(folder))
        yield server


@pytest.fixture(scope="module")
def dnsproxy(cluster: ApiServer) -> Caller:
    return account(cluster, "switchback", "dnsproxy")


@pytest.fixture(scope="module")
def relay(cluster: ApiServer) -> Caller:
    return account(cluster, "switchback", "relay")


@pytest.fixture(scope="module")
def gateway_reader(with_gateways: ApiServer) -> Caller:
    return account(with_gateways, "switchback", "dnsproxy")


@pytest.fixture(scope="module")
def publisher(with_gateways: ApiServer) -> Caller:
    return account(with_gateways, "switchback", "publisher")


@pytest.mark.parametrize("call", rows(DNSPROXY))
def test_dnsproxy_may_do_what_serve_does(dnsproxy: Caller, call: str) -> None:
    assert dnsproxy.verdict(parse_call(call)) == ALLOWED


@pytest.mark.parametrize("call", [*rows(NOBODY), *rows(GATEWAYS)])
def test_dnsproxy_may_do_nothing_else(dnsproxy: Caller, call: str) -> None:
    assert dnsproxy.verdict(parse_call(call)) == FORBIDDEN


@pytest.mark.parametrize("call", [*rows(DNSPROXY), *rows(NOBODY), *rows(GATEWAYS)])
def test_the_relay_may_do_nothing(relay: Caller, call: str) -> None:
    assert relay.verdict(parse_call(call)) == FORBIDDEN


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


def test_the_program_itself_gets_along_with_its_rights(cluster: ApiServer, tmp_path: Path) -> None:
    config = account(cluster, "switchback", "dnsproxy").write_kubeconfig(tmp_path / "kubeconfig")
    cluster.create_ingress("shop", ["shop.example.org"])
    with serving("--source", "ingress", kubeconfig=config, folder=tmp_path) as log:
        assert "forbidden" not in log.read_text().lower()


def test_the_program_itself_gets_along_with_gateways(with_gateways: ApiServer, tmp_path: Path) -> None:
    config = account(with_gateways, "switchback", "dnsproxy").write_kubeconfig(tmp_path / "kubeconfig")
    with serving("--source", "ingress", "--source", "gateway", kubeconfig=config, folder=tmp_path) as log:
        assert "forbidden" not in log.read_text().lower()


def test_without_its_rights_the_program_is_not_ready(cluster: ApiServer, tmp_path: Path) -> None:
    config = account(cluster, "switchback", "relay").write_kubeconfig(tmp_path / "kubeconfig")
    with serving("--source", "ingress", kubeconfig=config, folder=tmp_path, until="forbidden") as log:
        assert "forbidden" in log.read_text().lower()


@contextmanager
def serving(*arguments: str, kubeconfig: Path, folder: Path, until: str = "") -> Iterator[Path]:
    """`dnsproxy serve` from when it is ready, or its log has a word, to the end of the block; gives the log."""
    dns, admin = free_ports(2)
    log = folder / "dnsproxy.log"
    command = [sys.executable, "-m", "dnsproxy", "serve", f"--listen=127.0.0.1:{dns}", f"--admin=127.0.0.1:{admin}"]
    command += ["--upstream=127.0.0.1:9", "--target=service:switchback/relay", f"--kubeconfig={kubeconfig}"]
    with log.open("wb") as stderr:
        process = subprocess.Popen([*command, *arguments], stderr=stderr)
    try:
        wait_for(
            lambda: until in log.read_text().lower() if until else is_ready(admin),
            process=process,
            log=log,
        )
        yield log
    finally:
        end_process(process)


def is_ready(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10):
            return True
    except (URLError, OSError):
        return False
