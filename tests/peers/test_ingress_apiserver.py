"""The Ingress source against a real kube-apiserver: lists in chunks, watches, restarts of the server."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.sources.followers import IngressStatus, follow_ingresses
from dnsproxy.sources.ingress import INGRESSES, Ingress
from dnsproxy.sources.settings import IngressOptions
from sidecar.kubernetes.cluster import Tls
from sidecar.kubernetes.config import load_cluster
from sidecar.kubernetes.errors import ApiError, Forbidden, Gone, NotFound, ServerTrouble, Unauthorized
from sidecar.kubernetes.follower_status import FollowerState, FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.protocol import Decoder
from sidecar.kubernetes.watch_policy import Pace
from tests.kit.apiserver import ApiServer, collection_path, in_thread, ingress, running_apiserver, send
from tests.kit.faulty_api import AUTHORITY

pytestmark = pytest.mark.peer("etcd", "kube-apiserver")

MANY = 1200
ALL = IngressOptions()
BRISK = Pace(watch_timeout=5, backoff_limit=2)


@dataclass
class Followed:
    """A running follower, and ways to wait for it."""

    store: ClaimStore
    status: IngressStatus
    batches: list[frozenset[str]] = field(default_factory=list)
    news: trio.Event = field(default_factory=trio.Event)

    def tell(self, hostnames: frozenset[str] = frozenset()) -> None:
        self.batches.append(hostnames)
        self.news.set()
        self.news = trio.Event()

    async def until(self, condition: Callable[[], object]) -> None:
        """Poll: claims send an event, but a state does not."""
        while not condition():
            with trio.move_on_after(0.02):
                await self.news.wait()

    def names(self) -> set[str]:
        return {claim.hostname for claim in self.store.claims()}


@asynccontextmanager
async def following(server: ApiServer, *, options: IngressOptions = ALL, pace: Pace = BRISK) -> AsyncIterator[Followed]:
    followed = Followed(ClaimStore(), IngressStatus())
    cluster = load_cluster(kubeconfig=str(server.kubeconfig))
    async with ApiClient(cluster) as client, trio.open_nursery() as nursery:
        nursery.start_soon(
            lambda: follow_ingresses(
                client,
                followed.store,
                options=options,
                on_claims=followed.tell,
                on_synced=followed.tell,
                status=followed.status,
                pace=pace,
            )
        )
        yield followed
        nursery.cancel_scope.cancel()


@pytest.fixture
def namespace(apiserver: ApiServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for one test; its Ingresses are deleted afterwards."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:60].rstrip("-")
    apiserver.create_namespace(name)
    yield name
    apiserver.delete_all_ingresses(namespace=name)


def create_many(server: ApiServer, namespace: str, numbers: range) -> None:
    with server.connection() as connection:
        for number in numbers:
            manifest = ingress(f"app-{number}", [f"app-{number}.example.org"], namespace=namespace)
            send(connection, "POST", collection_path(namespace), manifest)


async def test_lists_what_is_there_in_chunks(apiserver: ApiServer, namespace: str) -> None:
    """1,200 objects arrive in several compressed pages, and none is lost between pages."""

    def fill() -> None:
        with ThreadPoolExecutor(4) as pool:
            quarter = MANY // 4
            parts = [range(start, start + quarter) for start in range(0, MANY, quarter)]
            list(pool.map(lambda part: create_many(apiserver, namespace, part), parts))

    await in_thread(fill)
    async with following(apiserver, pace=replace(BRISK, page_octets=400_000)) as followed:
        await followed.until(lambda: followed.status.synced)
        assert {f"app-{number}.example.org" for number in range(MANY)} <= followed.names()
        assert followed.status.ingresses.pages >= 3
        assert max(map(len, followed.batches)) <= Pace().slice_size


async def test_watch_shows_creation_update_and_deletion(apiserver: ApiServer, namespace: str) -> None:
    """The follower reports each change with the whole claim."""
    async with following(apiserver) as followed:
        await followed.until(lambda: followed.status.synced)
        await in_thread(
            apiserver.create_ingress, "shop", ["shop.example.org", "*.shop.example.org"], namespace=namespace
        )
        await followed.until(lambda: {"shop.example.org", "*.shop.example.org"} <= followed.names())
        (claim,) = followed.store.claims_for("*.shop.example.org")
        assert claim.reach is Reach.ONE_LABEL
        assert str(claim.origin) == f"Ingress {namespace}/shop"
        assert claim.origin.created.endswith("Z")

        patch = {"spec": {"rules": [{"host": "new.example.org"}], "tls": None}}
        await in_thread(apiserver.patch_ingress, "shop", patch, namespace=namespace)
        await followed.until(lambda: "new.example.org" in followed.names())
        assert not followed.store.claims_for("shop.example.org")

        await in_thread(apiserver.delete_ingress, "shop", namespace=namespace)
        await followed.until(lambda: not followed.store.claims_for("new.example.org"))


async def test_default_ingress_class_applies_as_soon_as_it_is_marked(apiserver: ApiServer, namespace: str) -> None:
    """An Ingress without class follows the default class, which is itself watched."""
    await in_thread(apiserver.create_ingress, "plain", ["plain.example.org"], namespace=namespace)
    async with following(apiserver, options=IngressOptions(classes=frozenset({"relayed"}))) as followed:
        await followed.until(lambda: followed.status.synced)
        assert "plain.example.org" not in followed.names()
        await in_thread(
            apiserver.request, "POST", "/apis/networking.k8s.io/v1/ingressclasses", default_class("relayed")
        )
        await followed.until(lambda: "plain.example.org" in followed.names())
        (claim,) = followed.store.claims_for("plain.example.org")
        assert claim.terms.ingress_class == "relayed"
        await in_thread(apiserver.request, "DELETE", "/apis/networking.k8s.io/v1/ingressclasses/relayed")
        await followed.until(lambda: "plain.example.org" not in followed.names())


def default_class(name: str) -> dict[str, Any]:
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"controller": "example.org/none"}}


async def test_watch_goes_on_where_the_last_one_ended(apiserver: ApiServer, namespace: str) -> None:
    """The server ends each watch on request; the next request is a watch, not a list."""
    async with following(apiserver, pace=Pace(watch_timeout=1, steady=0.2)) as followed:
        await followed.until(lambda: followed.status.synced)
        lists = followed.status.ingresses.lists
        for number in range(3):
            watches, host = followed.status.ingresses.watches, f"late-{number}.example.org"
            await followed.until(partial(has_grown, followed.status.ingresses, watches))
            await in_thread(apiserver.create_ingress, f"late-{number}", [host], namespace=namespace)
            await followed.until(partial(followed.store.claims_for, host))
        assert followed.status.ingresses.lists == lists


def has_grown(status: FollowerStatus, watches: int) -> bool:
    return status.watches > watches


async def test_errors_of_a_real_server_are_recognised(apiserver: ApiServer) -> None:
    """A wrong token, missing rights, an unknown kind and an expired version are different errors."""
    cluster = load_cluster(kubeconfig=str(apiserver.kubeconfig))
    async with ApiClient(cluster) as client:
        with pytest.raises(NotFound):
            await client.get("/apis/example.org/v1/things", seconds=10)
    stranger = type(cluster)(cluster.server, "test", lambda: "Bearer wrong", lambda: stranger, cluster.tls)
    async with ApiClient(stranger) as client:
        with pytest.raises(Unauthorized):
            await client.get(INGRESSES.path, seconds=10)
    nobody = type(cluster)(cluster.server, "test", lambda: None, lambda: nobody, cluster.tls)
    async with ApiClient(nobody) as client:
        with pytest.raises(Forbidden, match=r"anonymous.*ingresses"):
            await client.get(INGRESSES.path, seconds=10)


async def test_forgotten_continue_token_is_gone(apiserver: ApiServer, namespace: str) -> None:
    """After compaction of etcd, a list cannot continue."""
    for name in "abc":
        await in_thread(apiserver.create_ingress, name, [f"{name}.example.org"], namespace=namespace)
    path = collection_path(namespace)
    async with ApiClient(load_cluster(kubeconfig=str(apiserver.kubeconfig))) as client:
        first = Decoder(Ingress).split_page(await client.get(path, {"limit": "1"}, seconds=10))
        assert first.token
        await in_thread(apiserver.compact)
        with pytest.raises(Gone):
            await client.get(path, {"limit": "1", "continue": token_of_revision(2)}, seconds=10)


def token_of_revision(revision: int) -> str:
    """A continue token; format: k8s.io/apiserver/pkg/storage/continue.go."""
    token = {"v": "meta.k8s.io/v1", "rv": revision, "start": "a\0"}
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")


@pytest.mark.parametrize("context", ["certificate", "named", "insecure"])
async def test_ways_of_a_kubeconfig_to_be_let_in(apiserver: ApiServer, context: str) -> None:
    """A client certificate inside the file; another name in the server's certificate; no verification."""
    cluster = load_cluster(kubeconfig=str(apiserver.kubeconfig), context=context)
    async with ApiClient(cluster) as client:
        assert Decoder(Ingress).split_page(await client.get(INGRESSES.path, seconds=10)).version


async def test_wrong_name_and_unknown_authority_are_said(apiserver: ApiServer) -> None:
    """The message has the reason of a failed handshake."""
    for context, reason in [("misnamed", "match|mismatch"), ("untrusted", "self-signed|self signed|verify")]:
        async with ApiClient(load_cluster(kubeconfig=str(apiserver.kubeconfig), context=context)) as client:
            with pytest.raises(ServerTrouble, match=reason):
                await client.get(INGRESSES.path, seconds=10)


async def test_rotated_authority_is_read_again(apiserver: ApiServer) -> None:
    """The handshake fails with the old certificate, and the request succeeds with the new one."""
    good = load_cluster(kubeconfig=str(apiserver.kubeconfig))
    old = replace(good, tls=Tls(ca=AUTHORITY), reload=lambda: good)
    async with ApiClient(old) as client:
        await client.get(INGRESSES.path, seconds=10)
        assert client.cluster is good


async def test_proxy_url_of_a_kubeconfig_is_used(apiserver: ApiServer) -> None:
    """The connection is tunnelled through the proxy."""
    tunnels: list[bytes] = []

    async def tunnel(stream: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += await stream.receive_some()
        tunnels.append(head.split(b"\r\n")[0])
        await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
        async with await trio.open_tcp_stream("127.0.0.1", apiserver.port) as server, trio.open_nursery() as nursery:
            nursery.start_soon(copy, stream, server)
            await copy(server, stream)
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, tunnel, 0, host="127.0.0.1"))
        proxy = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        cluster = replace(load_cluster(kubeconfig=str(apiserver.kubeconfig)), proxy=proxy)
        async with ApiClient(cluster) as client:
            await client.get(INGRESSES.path, seconds=10)
        nursery.cancel_scope.cancel()
    assert tunnels == [f"CONNECT 127.0.0.1:{apiserver.port} HTTP/1.1".encode()]


async def copy(source: trio.SocketStream, sink: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        async for chunk in source:
            await sink.send_all(chunk)


async def first_error_of_watch(server: ApiServer, *, version: str) -> ApiError | None:
    """The response of a server, started after `version`, to a watch from that version."""
    async with ApiClient(load_cluster(kubeconfig=str(server.kubeconfig))) as client:
        params = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "5"}
        lines = (await client.get(INGRESSES.path, params, seconds=10)).splitlines()
    return Decoder(Ingress).decode_events(lines).error


@pytest.fixture
def own_apiserver(tmp_path: Path) -> Iterator[ApiServer]:
    """A server that tests may kill. Synchronous, so that it ends in a cancelled test too."""
    with running_apiserver(tmp_path) as server:
        yield server


async def test_claims_survive_a_killed_server_and_catch_up_with_the_next(own_apiserver: ApiServer) -> None:
    """Known claims stay while the server is away; changes meanwhile or right after are caught up with."""
    await in_thread(own_apiserver.create_ingress, "keep", ["keep.example.org"])
    await in_thread(own_apiserver.create_ingress, "leave", ["leave.example.org"])
    async with following(own_apiserver) as followed:
        await followed.until(lambda: followed.status.synced)
        await in_thread(own_apiserver.kill)
        await followed.until(lambda: followed.status.ingresses.state is FollowerState.RETRYING)
        assert followed.names() == {"keep.example.org", "leave.example.org"}
        assert followed.status.synced
        assert followed.status.ingresses.errors["server-trouble"] >= 1

        await in_thread(own_apiserver.start)
        await in_thread(own_apiserver.create_ingress, "late", ["late.example.org"])
        await in_thread(own_apiserver.delete_ingress, "leave")
        await followed.until(lambda: followed.names() == {"keep.example.org", "late.example.org"})
        await followed.until(lambda: followed.status.ingresses.error is None)
    assert isinstance(await first_error_of_watch(own_apiserver, version="2"), Gone)
