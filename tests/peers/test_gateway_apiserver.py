"""The Gateway API and the Services of targets on a real kube-apiserver, answered by a real `dnsproxy serve`."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio
import yaml

from dnsproxy.sources.annotations import TARGET
from tests.kit import gateway_api as api
from tests.kit.accounts import cluster_role, create_account, role, write_kubeconfig
from tests.kit.apiserver import ApiServer, in_thread, running_apiserver
from tests.kit.polling import pause
from tests.kit.prepared_program import play
from tests.kit.ready_services import delete_endpoint, put_endpoint
from tests.kit.serve_inside import addresses_in, ask, get, never_missing, until_answered
from tests.kit.serve_process import Serving, serving
from tests.peers.steady import TABLE_SUFFIX, Outcome, asking

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "gateway-api")

RELAY: Final = "10.96.0.50"
DEAD_UPSTREAM: Final = ("--upstream", "127.0.0.1:9")
BOTH: Final = ("--source", "gateway", "--source", "ingress", "--target", "service:edge/relay")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A separate API server: definitions apply to the whole cluster, and the tests kill it."""
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as one:
        one.create_namespace("edge")
        one.allow_annotations()
        create_service(one, "edge/relay", RELAY)
        one.create_ingress("apps", [f"*.{TABLE_SUFFIX}"])
        yield one


def create_service(server: ApiServer, key: str, address: str) -> None:
    namespace, _, name = key.partition("/")
    spec = {"clusterIP": address, "ports": [{"port": 443}]}
    server.request("POST", f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": name}, "spec": spec})
    put_endpoint(server, key)


def delete_service(server: ApiServer, key: str) -> None:
    namespace, _, name = key.partition("/")
    server.request("DELETE", f"/api/v1/namespaces/{namespace}/services/{name}")
    delete_endpoint(server, key)


@contextmanager
def serving_cluster(folder: Path, kubeconfig: Path, *flags: str) -> Iterator[Serving]:
    with serving(folder, *DEAD_UPSTREAM, "--kubeconfig", str(kubeconfig), *(flags or BOTH)) as one:
        yield one


async def until_ready(server: Serving, reason: str = "ready, ") -> str:
    while True:
        status, text = await get(server.admin_endpoint, "/readyz")
        if status == 200 and text.startswith(reason):
            return text
        await pause()


def is_relayed(outcome: Outcome) -> bool:
    return outcome.in_table and outcome.said == RELAY


async def test_definitions_come_change_version_and_go_while_ingress_names_are_answered(
    server: ApiServer, tmp_path: Path
) -> None:
    """K15: no name is lost for a moment when the API is removed, installed or changes its version."""
    await in_thread(api.remove_crds, server)
    with serving_cluster(tmp_path, server.kubeconfig) as ours:
        await until_ready(ours, "ready, 1 names")
        async with asking(ours.port, rate=50) as tally:
            await in_thread(api.install_crds, server)
            await in_thread(api.create, server, "gateways", api.gateway(api.listener("http", "*.web.example.org")))
            await in_thread(api.create, server, "httproutes", api.route("HTTPRoute", "shop.web.example.org"))
            await until_answered(ours.endpoint, "shop.web.example.org", RELAY)
            await until_ready(ours, "ready, 2 names")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(never_missing, ours.endpoint, "shop.web.example.org", RELAY)
                await in_thread(api.serve_only, server, "httproutes", "v1beta1")
                await until_logged(ours, f"/apis/{api.GROUP}/v1beta1/httproutes")
                await tally.wait_for(10, is_relayed)
                nursery.cancel_scope.cancel()

            await in_thread(api.remove_crds, server)
            await until_answered(ours.endpoint, "shop.web.example.org")
            await tally.wait_for(10, is_relayed)
        assert set(tally.said(in_table=True)) == {RELAY}
        assert (await get(ours.admin_endpoint, "/readyz"))[0] == 200


async def until_logged(server: Serving, text: str) -> None:
    while text not in server.log.read_text():  # noqa: ASYNC110  # another process
        await trio.sleep(0.05)


RULES: Final = (
    {"apiGroups": [api.GROUP], "resources": list(api.RESOURCES), "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses", "ingressclasses"], "verbs": ["list", "watch"]},
)
"""The rights in the whole cluster; discovery is allowed for every account (system:discovery)."""
NEEDED: Final = (
    {"apiGroups": [api.GROUP], "resources": ["gateways", "httproutes"], "verbs": ["list", "watch"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses", "ingressclasses"], "verbs": ["list", "watch"]},
)
"""The required rights."""
RELAY_ALONE: Final = (
    {"apiGroups": [""], "resources": ["services"], "resourceNames": ["relay"], "verbs": ["list", "watch"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
)
"""The rights in the namespace of the relay."""


def make_kubeconfig(server: ApiServer, name: str, rules: Any) -> Path:
    """The kubeconfig of a new ServiceAccount that has only these rights, and those for the Service of the relay."""
    token = create_account(server, "edge", name, [cluster_role(rules), role("edge", RELAY_ALONE)])
    return write_kubeconfig(server, token, server.folder / f"kubeconfig-{name}")


def is_allowed(server: ApiServer, kubeconfig: Path, path: str) -> bool:
    (user,) = yaml.safe_load(kubeconfig.read_text())["users"]
    with server.connection() as connection:
        connection.request("GET", path, headers={"authorization": f"Bearer {user['user']['token']}"})
        response = connection.getresponse()
        response.read()
        assert response.status in {http.client.OK, http.client.FORBIDDEN}
        return response.status == http.client.OK


async def test_every_kind_is_answered_with_just_the_rights_we_ask_for(server: ApiServer, tmp_path: Path) -> None:
    """Created and deleted through the real server, with no other read rights."""
    kubeconfig = await in_thread(make_kubeconfig, server, "dnsproxy", RULES)
    assert is_allowed(server, kubeconfig, "/apis/networking.k8s.io/v1/ingresses")
    for secret in (
        "/api/v1/secrets",
        "/api/v1/services",
        "/api/v1/namespaces/edge/services",
        "/api/v1/namespaces/edge",
    ):
        assert not is_allowed(server, kubeconfig, secret)
    await in_thread(make_gateway, server)
    objects = {
        "httproutes": api.route("HTTPRoute", "web.h.example.org"),
        "grpcroutes": api.route("GRPCRoute", "calls.g.example.org"),
        "tlsroutes": api.route("TLSRoute", "mail.t.example.org"),
        "listenersets": api.listener_set(api.listener("own", "own.l.example.org"), name="more"),
    }
    with serving_cluster(tmp_path, kubeconfig) as ours:
        await until_ready(ours, "ready, 1 names")
        for resource, manifest in objects.items():
            await in_thread(api.create, server, resource, manifest)
        through = api.route("HTTPRoute", "set.l.example.org", parent="more", parent_kind="ListenerSet")
        await in_thread(api.create, server, "httproutes", through)
        names = ["web.h.example.org", "calls.g.example.org", "mail.t.example.org", "own.l.example.org"]
        for name in names:
            await until_answered(ours.endpoint, name, RELAY)
        while not (told := await explain(ours, "set.l.example.org"))["rejected"]:
            await pause()
        assert told["answer"] is None
        assert "has it" in told["rejected"][0]

        for resource, manifest in objects.items():
            await in_thread(api.delete, server, resource, manifest["metadata"]["name"])
        for name in names:
            await until_answered(ours.endpoint, name)


def make_gateway(server: ApiServer) -> None:
    """One Gateway for all kinds of routes, without a route."""
    api.install_crds(server)
    api.delete_all(server)
    http, tls = api.listener("http", "*.h.example.org"), api.passing_through("tls", "*.t.example.org")
    calls = api.listener("calls", "*.g.example.org", port=81)
    everyone = {"namespaces": {"from": "Same"}}
    api.create(server, "gateways", api.gateway(http, calls, tls, allowedListeners=everyone))


async def explain(server: Serving, name: str) -> Any:
    """The output of `dnsproxy explain`."""
    command = [sys.executable, "-m", "dnsproxy", "explain", name, "--admin", server.admin, "--output", "json"]
    done = await trio.to_thread.run_sync(play, command)
    return json.loads(done.stdout)


async def table(server: Serving) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dnsproxy", "table", "--admin", server.admin]
    return await trio.to_thread.run_sync(play, command)


async def test_without_rights_to_what_few_need_the_rest_is_answered(server: ApiServer, tmp_path: Path) -> None:
    """Without rights, ListenerSets, GRPCRoutes, TLSRoutes and Namespaces count as missing."""
    kubeconfig = await in_thread(make_kubeconfig, server, "modest", NEEDED)
    await in_thread(make_gateway, server)
    await in_thread(api.create, server, "httproutes", api.route("HTTPRoute", "modest.h.example.org"))
    with serving_cluster(tmp_path, kubeconfig) as ours:
        await until_ready(ours, "ready, 2 names")
        await until_answered(ours.endpoint, "modest.h.example.org", RELAY)


async def test_names_follow_the_service_of_their_target(server: ApiServer, tmp_path: Path) -> None:
    """A ClusterIP changes by deletion and creation; the Service that an object chooses may not exist yet."""
    await in_thread(make_routes, server)
    with serving_cluster(tmp_path, server.kubeconfig) as ours:
        await until_answered(ours.endpoint, "web.h.example.org", RELAY)
        await until_ready(ours)
        while not (told := await explain(ours, "own.h.example.org"))["notes"]:
            await pause()
        assert told["notes"] == ["target service:default/chosen: there is no such Service"]
        await in_thread(create_service, server, "default/chosen", "10.96.0.70")
        await until_answered(ours.endpoint, "own.h.example.org", "10.96.0.70")

        await in_thread(delete_service, server, "edge/relay")
        await until_answered(ours.endpoint, "web.h.example.org")
        await in_thread(create_service, server, "edge/relay", "10.96.0.60")
        await until_answered(ours.endpoint, "web.h.example.org", "10.96.0.60")
        await until_answered(ours.endpoint, f"any.{TABLE_SUFFIX}", "10.96.0.60")
        await until_answered(ours.endpoint, "own.h.example.org", "10.96.0.70")
    for key in ("edge/relay", "default/chosen"):
        await in_thread(delete_service, server, key)
    await in_thread(create_service, server, "edge/relay", RELAY)


def make_routes(server: ApiServer) -> None:
    """One object that points at the relay, and one that chose another Service."""
    make_gateway(server)
    chosen = {TARGET: "service:default/chosen"}
    api.create(server, "httproutes", api.route("HTTPRoute", "own.h.example.org", annotations=chosen))
    api.create(server, "httproutes", api.route("HTTPRoute", "web.h.example.org"))


def has(snapshot: Path, *words: str) -> bool:
    return snapshot.exists() and all(word.encode() in snapshot.read_bytes() for word in words)


async def test_a_killed_api_server_changes_no_answer_and_a_restart_meanwhile_starts_from_the_snapshot(
    server: ApiServer, tmp_path: Path
) -> None:
    """The snapshot has names and Services' addresses; their age is reported, and a recovered API server is followed."""
    snapshot = tmp_path / "snapshot"
    await in_thread(make_routes, server)
    await in_thread(create_service, server, "default/chosen", "10.96.0.70")
    answers = {"web.h.example.org": RELAY, "own.h.example.org": "10.96.0.70", f"any.{TABLE_SUFFIX}": RELAY}
    saved = ("web.h.example.org", "own.h.example.org", TABLE_SUFFIX, RELAY, "10.96.0.70")
    with serving_cluster(tmp_path, server.kubeconfig, *BOTH, "--snapshot", str(snapshot)) as ours:
        await until_ready(ours, "ready, 3 names")
        # The first one may be older than the Services' addresses.
        while not has(snapshot, *saved):  # noqa: ASYNC110  # another process
            await trio.sleep(0.05)
        async with asking(ours.port, rate=50) as tally:
            await in_thread(server.kill)
            await tally.wait_for(20, is_relayed)
        assert set(tally.said(in_table=True)) == {RELAY}
        for name, address in answers.items():
            assert addresses_in(await ask(ours.endpoint, name)) == [address]
        assert await get(ours.admin_endpoint, "/readyz") == (200, "ready, 3 names\n")

    with serving_cluster(tmp_path, server.kubeconfig, *BOTH, "--snapshot", str(snapshot)) as ours:
        for name, address in answers.items():
            assert addresses_in(await ask(ours.endpoint, name)) == [address]
        age = "the cluster's names are from a snapshot, "
        await until_ready(ours, f"ready, {age}")
        shown = await table(ours)
        assert age in shown.stderr
        assert "web.h.example.org" in shown.stdout
        told = await explain(ours, "web.h.example.org")
        assert told["answer"]["addresses"] == [RELAY]
        assert told["notes"][1].startswith(age)

        await in_thread(server.start)
        await in_thread(api.delete, server, "httproutes", "web")
        await until_answered(ours.endpoint, "web.h.example.org")
        await until_ready(ours, "ready, 2 names")
        assert (await explain(ours, "own.h.example.org"))["notes"] == []
    await in_thread(delete_service, server, "default/chosen")
