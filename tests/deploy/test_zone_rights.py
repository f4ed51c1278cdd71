"""With node-local and rpz, on a real API server: what primaries and the nodes' pods may do, with their own tokens."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

import dns.message
import dns.query
import pytest

from sidecar.values.endpoints import Endpoint
from tests.deploy.called import DNSPROXY, GATEWAYS, NEVER_ALLOWED, is_ready, rows
from tests.deploy.calls import Caller, account
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import DEPLOY, compose
from tests.kit.apiserver import ApiServer
from tests.kit.polling import poll_until
from tests.kit.ports import free_port, free_ports
from tests.kit.processes import end_process, wait_for

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "gateway-api", "prometheus-operator", "dnsendpoint")

COMPONENTS = [DEPLOY / "components" / name for name in ("node-local", "rpz")]
ZONE = "table.switchback.internal"

LEASE = """
create leases in switchback
get leases dnsproxy-rpz in switchback
update leases dnsproxy-rpz in switchback
"""

OTHER_LEASES = """
create leases in default
create leases in kube-system
list leases in switchback
watch leases in switchback
update leases switchback-operate in switchback
get leases dnsproxy-rpz in default
patch leases dnsproxy-rpz in switchback
delete leases dnsproxy-rpz in switchback
deletecollection leases in switchback
get secrets dnsproxy-rpz-key in switchback
list secrets in switchback
"""

UPSTREAMS = [one for one in rows(DNSPROXY) if " configmaps " in one]


@pytest.fixture(scope="module")
def with_zone(bare: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> ApiServer:
    folder = compose(tmp_path_factory.mktemp("composed"), with_components=COMPONENTS)
    kubectl(bare, "apply", "-k", str(folder))
    return bare


@pytest.fixture(scope="module")
def primary(with_zone: ApiServer) -> Caller:
    return account(with_zone, "switchback", "dnsproxy")


@pytest.fixture(scope="module")
def node(with_zone: ApiServer) -> Caller:
    return account(with_zone, "switchback", "dnsproxy-node")


def test_a_primary_reads_what_dnsproxy_reads_and_keeps_its_lease(primary: Caller) -> None:
    calls = rows(DNSPROXY, GATEWAYS, LEASE)
    assert primary.allowed(calls) == calls


def test_a_primary_may_do_nothing_else(primary: Caller) -> None:
    others = rows(NEVER_ALLOWED, OTHER_LEASES)
    assert primary.allowed(one for one in others if one not in rows(LEASE)) == []


def test_a_nodes_pod_follows_the_upstreams(node: Caller) -> None:
    assert node.allowed(UPSTREAMS) == UPSTREAMS


def test_a_nodes_pod_may_do_nothing_else(node: Caller) -> None:
    others = rows(DNSPROXY, GATEWAYS, NEVER_ALLOWED, LEASE, OTHER_LEASES)
    assert node.allowed(one for one in others if one not in UPSTREAMS) == []


def test_an_administrator_may_do_all_of_it(with_zone: ApiServer) -> None:
    """Otherwise a call would be refused for another reason than its rights."""
    calls = rows(LEASE, OTHER_LEASES)
    assert Caller(with_zone, with_zone.token).allowed(calls) == calls


@contextmanager
def serving(log: Path, listen: Endpoint, *arguments: str) -> Iterator[int]:
    """`dnsproxy serve` from its readiness on. Returns its admin port."""
    admin = free_port()
    command = [sys.executable, "-m", "dnsproxy", "serve", "--listen", str(listen), f"--admin=127.0.0.1:{admin}"]
    resolv_conf = log.with_suffix(".conf")
    resolv_conf.write_text("nameserver 192.0.2.1\n", encoding="utf-8")
    command += ["--lameduck=0", "--drain=1", f"--resolv-conf={resolv_conf}", *arguments]
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stderr=stderr)
    try:
        wait_for(lambda: is_ready(admin), process=process, log=log)
        yield admin
    finally:
        end_process(process)


def document(admin: int, path: str) -> bytes:
    """A document of the admin port."""
    with urlopen(f"http://127.0.0.1:{admin}{path}", timeout=10) as answer:
        octets: bytes = answer.read()
    return octets


def addresses(at: Endpoint, name: str) -> list[str]:
    answer = dns.query.udp(dns.message.make_query(name, "A"), at.host, port=at.port, timeout=30)
    return [str(one) for rrset in answer.answer for one in rrset]


def test_two_primaries_and_a_replica_work_with_their_rights(with_zone: ApiServer, tmp_path: Path) -> None:
    configs = {
        name: account(with_zone, "switchback", name).write_kubeconfig(tmp_path / name)
        for name in ("dnsproxy", "dnsproxy-node")
    }
    with_zone.create_ingress("shop", ["shop.example.org"], ingress_class="fixed")
    with_zone.create_ingress("undecided", ["undecided.example.net"], ingress_class="new")
    one, other, replica = (Endpoint("127.0.0.1", port) for port in free_ports(3))
    upstreams = "--upstream-configmap=kube-system/coredns"
    with ExitStack() as stack:
        admins = []
        for number, place in enumerate((one, other)):
            primary = ["--source=ingress", "--source=gateway", "--target=auto", "--target-for=fixed=192.0.2.10"]
            primary += ["--routes-namespace=switchback", f"--rpz={ZONE}", upstreams]
            primary += ["--rpz-serial=lease:switchback/dnsproxy-rpz", f"--rpz-notify={replica}"]
            primary += ["--rpz-notify=service:switchback/dnsproxy-nodes", f"--kubeconfig={configs['dnsproxy']}"]
            primary += [f"--rpz-notify={other if place == one else one}"]
            admins.append(stack.enter_context(serving(tmp_path / f"primary-{number}.log", place, *primary)))
        words = [f"--source=rpz:{ZONE}@{other}", upstreams, f"--kubeconfig={configs['dnsproxy-node']}", "--target=auto"]
        admins.append(stack.enter_context(serving(tmp_path / "replica.log", replica, *words)))
        assert addresses(replica, "shop.example.org") == ["192.0.2.10"]
        with_zone.create_ingress("late", ["late.example.org"], ingress_class="fixed")
        poll_until(lambda: addresses(replica, "late.example.org") == ["192.0.2.10"], "the new name", seconds=60)
        # What operate, the publishers and the installer ask any dnsproxy of the Service.
        for path in ("/subjects", "/zones", "/rewrites"):
            poll_until(lambda path=path: len({document(admin, path) for admin in admins}) == 1, path, seconds=60)  # type: ignore[misc]
        assert b"ingressclass/new" in document(admins[-1], "/subjects")
    for log in tmp_path.glob("*.log"):
        assert "forbidden" not in log.read_text().lower(), log
