"""Annotations, Services and ownership with a real kube-apiserver as the cluster and a real NSD as public DNS."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
import trio

from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.targets import Targets
from dnsproxy.serve.service import Bound
from dnsproxy.sources.annotations import HOSTNAME, IGNORE, TARGET
from dnsproxy.sources.settings import ClusterSettings, IngressOptions
from sidecar.values.endpoints import Endpoint
from tests.kit.apiserver import ApiServer, collection_path, in_thread, running_apiserver
from tests.kit.nsd import running_nsd
from tests.kit.polling import pause
from tests.kit.ready_services import put_endpoint
from tests.kit.serve_inside import addresses_in, ask, get, serving, settings

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "nsd")

BALANCER, ELSEWHERE, RELAY = "192.0.2.1", "198.51.100.9", "10.96.7.7"
ZONE: Final = f"""
own A {BALANCER}
login A {ELSEWHERE}
alias CNAME lb
lb A {BALANCER}
cdn A {ELSEWHERE}
*.wild A {ELSEWHERE}
*.open A {BALANCER}
"""
NEIGHBOURS: Final = ("zoo", "ant")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A cluster for this module: the answers depend on all its objects."""
    with running_apiserver(tmp_path_factory.mktemp("owned")) as server:
        for name in NEIGHBOURS:
            server.create_namespace(name)
        server.allow_annotations()
        yield server


@pytest.fixture(scope="module")
def public_dns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running_nsd(tmp_path_factory.mktemp("public"), ZONE) as port:
        yield port


@pytest.fixture(autouse=True)
def _emptied(cluster: ApiServer) -> Iterator[None]:
    yield
    cluster.delete_all_ingresses()
    for one in cluster.request("GET", "/api/v1/namespaces/default/services")["items"]:
        if one["metadata"]["name"] != "kubernetes":
            cluster.request("DELETE", f"/api/v1/namespaces/default/services/{one['metadata']['name']}")


def put(server: ApiServer, name: str, *hosts: str, point: dict[str, str]) -> None:
    """Create an Ingress, with a status like its controller's."""
    server.create_ingress(name, list(hosts))
    set_status(server, f"{collection_path('default')}/{name}", point)


def set_status(server: ApiServer, path: str, point: dict[str, str]) -> None:
    patch = {"status": {"loadBalancer": {"ingress": [point]}}}
    server.request("PATCH", f"{path}/status", patch, content_type="application/merge-patch+json")


def put_service(server: ApiServer, name: str, **annotations: str) -> dict[str, Any]:
    manifest = {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 22}]},
    }
    made: dict[str, Any] = server.request("POST", "/api/v1/namespaces/default/services", manifest)
    return made


@asynccontextmanager
async def served(server: ApiServer, public_dns: int, mode: Mode, **rest: Any) -> AsyncIterator[Bound]:
    followed = ClusterSettings(IngressOptions(), services=True, kubeconfig=str(server.kubeconfig))
    wanted = settings(
        hosts=(),
        cluster=followed,
        forwarding=ForwardSettings((Endpoint("127.0.0.1", public_dns),), detect_loops=False),
        targets=Targets((RELAY,)),
        ownership=OwnershipSettings(mode),
        **rest,
    )
    async with serving(wanted) as bound:
        await until(bound, "/readyz", "ready")
        yield bound


async def until(bound: Bound, path: str, text: str) -> str:
    """Wait until a page has the text; each round waits for its response."""
    with trio.fail_after(30):
        while True:
            page = (await get(bound.admin, path))[1]
            if text in page:
                return page
            await pause()


async def addresses(bound: Bound, name: str) -> list[str]:
    return addresses_in(await ask(bound.dns[0], f"{name}.example.org"))


async def until_answered(bound: Bound, name: str, address: str) -> None:
    """For what follows a page: pages come from the claims, and the table follows them a moment later."""
    with trio.fail_after(30):
        while await addresses(bound, name) != [address]:
            await pause()


@pytest.mark.parametrize("mode", [Mode.VERIFY, Mode.ENFORCE], ids=["verify", "enforce"])
async def test_only_the_names_whose_records_lead_elsewhere_are_passed_on(
    cluster: ApiServer, public_dns: int, mode: Mode
) -> None:
    hosts = [f"{name}.example.org" for name in ("own", "login", "alias", "unknown", "*.wild", "*.open")]
    await in_thread(put, cluster, "all", *hosts, point={"ip": BALANCER})
    async with served(cluster, public_dns, mode) as bound:
        for name in ("own", "alias", "x.open"):
            await until_answered(bound, name, RELAY)
        for name in ("login", "x.wild"):
            await until_answered(bound, name, ELSEWHERE)
        assert await addresses(bound, "unknown") == ([RELAY] if mode is Mode.VERIFY else [])
        for name in ("login", "x.wild"):
            await until(bound, f"/explain?name={name}.example.org", f"leads elsewhere ({ELSEWHERE})")
        assert (await get(bound.admin, "/left-out"))[1].count("every claim to a name counts") == 1


async def test_warned_about_a_name_is_answered_and_shown(cluster: ApiServer, public_dns: int) -> None:
    await in_thread(put, cluster, "all", "own.example.org", "login.example.org", point={"ip": BALANCER})
    async with served(cluster, public_dns, Mode.WARN) as bound:
        assert await addresses(bound, "own") == await addresses(bound, "login") == [RELAY]
        page = await until(bound, "/explain?name=login.example.org", f"leads elsewhere ({ELSEWHERE})")
        assert "it is answered all the same" in page
        assert await addresses(bound, "login") == [RELAY]
        assert "elsewhere" not in (await get(bound.admin, "/explain?name=own.example.org"))[1]


async def test_a_status_that_the_controller_writes_later_gives_the_name_back(
    cluster: ApiServer, public_dns: int
) -> None:
    await in_thread(put, cluster, "moved", "cdn.example.org", point={"hostname": "lb.example.org"})
    async with served(cluster, public_dns, Mode.ENFORCE) as bound:
        await until_answered(bound, "cdn", ELSEWHERE)
        await in_thread(set_status, cluster, f"{collection_path('default')}/moved", {"ip": ELSEWHERE})
        await until_answered(bound, "cdn", RELAY)


async def test_marks_on_an_ingress_count_and_are_followed(cluster: ApiServer, public_dns: int) -> None:
    marks = {HOSTNAME: "mqtt.example.org", TARGET: "status"}
    await in_thread(cluster.create_ingress, "marked", ["own.example.org"], annotations=marks)
    await in_thread(set_status, cluster, f"{collection_path('default')}/marked", {"ip": "192.0.2.77"})
    async with served(cluster, public_dns, Mode.OFF) as bound:
        assert await addresses(bound, "mqtt") == await addresses(bound, "own") == ["192.0.2.77"]
        await in_thread(cluster.patch_ingress, "marked", {"metadata": {"labels": {IGNORE: "true"}}})
        await until(bound, "/readyz", "ready, 0 names")
        explanation = (await get(bound.admin, "/explain?name=own.example.org"))[1]
        assert f"it is ignored ({IGNORE})" in explanation


async def test_marked_services_are_answered_for_and_others_are_not(cluster: ApiServer, public_dns: int) -> None:
    await in_thread(put_service, cluster, "plain")
    made = await in_thread(put_service, cluster, "git", **{HOSTNAME: "git.example.org,*.ssh.example.org"})
    await in_thread(put_endpoint, cluster, "default/git")
    async with served(cluster, public_dns, Mode.WARN) as bound:
        await until(bound, "/readyz", "ready, 2 names")
        assert await addresses(bound, "git") == await addresses(bound, "a.b.ssh") == [RELAY]
        await in_thread(
            cluster.request,
            "PATCH",
            "/api/v1/namespaces/default/services/git",
            {"metadata": {"annotations": {HOSTNAME: "git.example.org", TARGET: "service:default/git"}}},
            content_type="application/merge-patch+json",
        )
        await until(bound, "/explain?name=git.example.org", made["spec"]["clusterIP"])
        await until_answered(bound, "git", made["spec"]["clusterIP"])
        await in_thread(cluster.request, "DELETE", "/api/v1/namespaces/default/services/git")
        await until(bound, "/readyz", "ready, 0 names")


async def owner_of(bound: Bound, name: str) -> str:
    """The namespace of the object whose claim is answered; empty if the name is forwarded."""
    lines = (await get(bound.admin, f"/explain?name={name}"))[1].splitlines()
    # Between the lengths of chunks.
    answer = json.loads(next(line for line in lines if line.startswith("{")))["answer"]
    return answer["origin"]["namespace"] if answer else ""


async def until_owner(bound: Bound, name: str, namespace: str) -> None:
    with trio.fail_after(30):
        while await owner_of(bound, name) != namespace:
            await pause()


def create_younger(server: ApiServer, namespace: str, host: str, *, than: str) -> str:
    """Create an Ingress a second later than that time, as often as it takes; its own time."""
    while True:
        made = server.create_ingress("app", [host], namespace=namespace)
        created: str = made["metadata"]["creationTimestamp"]
        if created > than:
            return created
        server.delete_ingress("app", namespace=namespace)


@pytest.fixture
def neighbours(cluster: ApiServer) -> Iterator[tuple[str, str]]:
    """A victim and a tenant, whose namespace comes first by the alphabet."""
    yield NEIGHBOURS
    for name in NEIGHBOURS:
        cluster.delete_all_ingresses(namespace=name)


async def test_a_reinstalled_ingress_has_its_name_whoever_waited_for_it(
    cluster: ApiServer, public_dns: int, neighbours: tuple[str, str]
) -> None:
    victim, tenant = neighbours
    host = "own.example.org"
    first = await in_thread(create_younger, cluster, victim, host, than="")
    waited = await in_thread(create_younger, cluster, tenant, host, than=first)
    async with served(cluster, public_dns, Mode.OFF) as bound:
        assert await owner_of(bound, host) == victim
        await in_thread(cluster.delete_ingress, "app", namespace=victim)
        page = await until(bound, f"/explain?name={host}", "namespace zoo has the name: it waits until 20")
        assert "Ingress" in page
        await until_answered(bound, "own", BALANCER)
        await in_thread(create_younger, cluster, victim, host, than=waited)
        await until_owner(bound, host, victim)
        await until(bound, "/left-out", "Ingress zoo/app has it")
        await until_answered(bound, "own", RELAY)


async def test_after_the_time_a_claim_that_waited_has_the_name(
    cluster: ApiServer, public_dns: int, neighbours: tuple[str, str]
) -> None:
    victim, tenant = neighbours
    host = "own.example.org"
    first = await in_thread(create_younger, cluster, victim, host, than="")
    await in_thread(create_younger, cluster, tenant, host, than=first)
    async with served(cluster, public_dns, Mode.OFF, hold=1.0) as bound:
        await in_thread(cluster.delete_ingress, "app", namespace=victim)
        await until_owner(bound, host, tenant)
        metrics = (await get(bound.admin, "/metrics"))[1]
        assert "dnsproxy_table_names_contested 0.0" in metrics


@pytest.mark.parametrize("mode", [Mode.VERIFY, Mode.ENFORCE], ids=["verify", "enforce"])
async def test_a_name_without_a_status_leads_nowhere(cluster: ApiServer, public_dns: int, mode: Mode) -> None:
    """Its controller has written no load balancer, so that no record can lead to it."""
    await in_thread(cluster.create_ingress, "none", ["login.example.org", "new.example.org", "own.example.org"])
    async with served(cluster, public_dns, mode) as bound:
        await until_answered(bound, "login", ELSEWHERE)
        await until_answered(bound, "own", BALANCER)
        assert await addresses(bound, "new") == ([RELAY] if mode is Mode.VERIFY else [])


@pytest.mark.parametrize("mode", [Mode.VERIFY, Mode.ENFORCE], ids=["verify", "enforce"])
async def test_many_names_of_one_namespace_do_not_delay_another(
    cluster: ApiServer, public_dns: int, neighbours: tuple[str, str], mode: Mode
) -> None:
    """A name is asked upstream when it is queried, so that names which nobody queries cost nothing."""
    async with served(cluster, public_dns, mode) as bound:
        for number in range(10):
            hosts = [f"h{number}-{one}.example.org" for one in range(1000)]
            await in_thread(cluster.create_ingress, f"many{number}", hosts, namespace=neighbours[1])
        await in_thread(put, cluster, "own", "own.example.org", point={"ip": BALANCER})
        await until_owner(bound, "own.example.org", "default")
        await until_answered(bound, "own", RELAY)
        assert await forwarded(bound) < 100, "only what this test has asked for goes upstream"


async def forwarded(bound: Bound) -> float:
    """How many queries an upstream was asked for."""
    lines = (await get(bound.admin, "/metrics"))[1].splitlines()
    start = 'dnsproxy_dns_request_duration_seconds_count{source="upstream"} '
    (count,) = [float(line.removeprefix(start)) for line in lines if line.startswith(start)]
    return count
