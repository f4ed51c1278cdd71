"""The followers and a snapshot: restored claims count until the cluster has reported, and no longer."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone
from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import h11
import trio
from trio.testing import MockClock

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.sources.annotations import HOSTNAME
from dnsproxy.sources.followers import IngressStatus, follow_ingresses, follow_services
from dnsproxy.sources.settings import IngressOptions
from sidecar.kubernetes.follower_status import FollowerStatus
from tests.kit.faulty_api import Answer, FaultyApi, client_in_memory, event, failure, page, watch


@dataclass
class IngressApi(FaultyApi):
    """A script for Ingresses, and no IngressClass."""

    classes: FaultyApi = field(default_factory=lambda: FaultyApi([page()]))

    def _answer(self, request: h11.Request) -> Answer:
        return self.classes._answer(request) if b"ingressclasses" in request.target else super()._answer(request)


def ingress(name: str, *hosts: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"rules": [{"host": host} for host in hosts]}}


def claim(hostname: str, name: str) -> Claim:
    return Claim(hostname, Reach.NAME, Origin("Ingress", name, "shop"))


def restored(**hosts: str) -> ClaimStore:
    store = ClaimStore()
    for name, hostname in hosts.items():
        store.restore("Ingress", f"shop/{name}", [claim(hostname, name)])
    return store


@dataclass
class Followed:
    store: ClaimStore
    told: set[str] = field(default_factory=set)
    status: IngressStatus = field(default_factory=IngressStatus)
    services: FollowerStatus = field(default_factory=FollowerStatus)
    synced: trio.Event = field(default_factory=trio.Event)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110  # the state of a task, which gives no signal; the clock jumps
            await trio.sleep(0.1)


@asynccontextmanager
async def following(store: ClaimStore, lists: Sequence[Answer], watches: Sequence[Answer]) -> AsyncIterator[Followed]:
    followed = Followed(store)
    api = IngressApi(lists, watches)
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:
        follow = partial(
            follow_ingresses,
            client,
            store,
            options=IngressOptions(),
            on_claims=followed.told.update,
            on_synced=followed.synced.set,
            status=followed.status,
        )
        nursery.start_soon(follow)
        yield followed
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def following_services(
    store: ClaimStore, lists: Sequence[Answer], watches: Sequence[Answer]
) -> AsyncIterator[Followed]:
    followed = Followed(store)
    async with client_in_memory(FaultyApi(lists, watches)) as client, trio.open_nursery() as nursery:
        follow = partial(
            follow_services,
            client,
            store,
            on_claims=followed.told.update,
            on_synced=followed.synced.set,
            status=followed.services,
        )
        nursery.start_soon(follow)
        yield followed
        nursery.cancel_scope.cancel()


def service(name: str, hostnames: str | None = None, version: str = "1") -> dict[str, Any]:
    annotations = {} if hostnames is None else {HOSTNAME: hostnames}
    return {"metadata": {"name": name, "namespace": "git", "resourceVersion": version, "annotations": annotations}}


QUIET = [watch(60.0)]


async def test_what_the_cluster_does_not_have_any_more_goes_with_the_first_list(autojump_clock: MockClock) -> None:
    store = restored(kept="kept.example.org", moved="old.example.org", gone="gone.example.org")
    answers = [page(ingress("kept", "kept.example.org"), ingress("moved", "new.example.org"))]
    async with following(store, answers, QUIET) as followed:
        await followed.synced.wait()
        await followed.until(lambda: store.restored("Ingress") == 0)
        assert set(store.names()) == {"kept.example.org", "new.example.org"}
        assert followed.told == {"old.example.org", "new.example.org", "gone.example.org"}


async def test_restored_claims_count_while_the_server_is_away(autojump_clock: MockClock) -> None:
    store = restored(a="a.example.org")
    answers = [failure(503, "Unavailable"), failure(500, "InternalError"), page(ingress("b", "b.example.org"))]
    async with following(store, answers, QUIET) as followed:
        await followed.until(lambda: followed.status.ingresses.errors["server-trouble"] >= 2)
        assert list(store.names()) == ["a.example.org"]
        await followed.until(lambda: list(store.names()) == ["b.example.org"])


async def test_a_first_list_that_is_empty_is_confirmed_before_it_counts(autojump_clock: MockClock) -> None:
    store = restored(a="a.example.org")
    async with following(store, [page(), page(ingress("a", "a.example.org"))], QUIET) as followed:
        await followed.synced.wait()
        assert list(store.names()) == ["a.example.org"]
        assert followed.told == set()


async def test_two_empty_lists_are_believed(autojump_clock: MockClock) -> None:
    store = restored(a="a.example.org")
    async with following(store, [page(), page()], QUIET) as followed:
        await followed.synced.wait()
        await followed.until(lambda: not store.names())
        assert followed.told == {"a.example.org"}


async def test_an_object_is_deleted_by_the_watch_as_ever(autojump_clock: MockClock) -> None:
    store = restored(a="a.example.org")
    changes = [watch(event("DELETED", ingress("a", "a.example.org")), 60.0)]
    async with following(store, [page(ingress("a", "a.example.org"))], changes) as followed:
        await followed.synced.wait()
        await followed.until(lambda: not store.names())
        assert followed.told == {"a.example.org"}


async def test_annotated_services_come_change_and_go(autojump_clock: MockClock) -> None:
    store = ClaimStore()
    changes = [
        watch(
            event("MODIFIED", service("a", "new.example.org", "2")),
            event("ADDED", service("c", "c.example.org")),
            event("DELETED", service("b")),
            event("MODIFIED", service("d", version="2")),
            60.0,
        )
    ]
    lists = [page(service("a", "a.example.org"), service("b"), service("d", "d.example.org"))]
    async with following_services(store, lists, changes) as followed:
        await followed.until(lambda: set(store.names()) == {"new.example.org", "c.example.org"})
        assert followed.told == {"a.example.org", "new.example.org", "c.example.org", "d.example.org"}
        assert followed.services.objects == 3


async def test_services_of_a_snapshot_count_until_the_cluster_has_spoken(autojump_clock: MockClock) -> None:
    store = ClaimStore()
    for name in ("kept", "gone"):
        origin = Origin("Service", name, "git")
        store.restore(
            "Service", f"git/{name}", [Claim(f"{name}.example.org", Reach.NAME, origin, Terms(annotated=True))]
        )
    lists = [failure(503, "Unavailable"), page(service("kept", "kept.example.org"), service("other"))]
    async with following_services(store, lists, QUIET) as followed:
        await followed.until(lambda: followed.services.errors["server-trouble"] == 1)
        assert set(store.names()) == {"kept.example.org", "gone.example.org"}
        await followed.synced.wait()
        await followed.until(lambda: list(store.names()) == ["kept.example.org"])
        assert followed.told == {"gone.example.org"}
