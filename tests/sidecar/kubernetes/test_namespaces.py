"""Following a kind in several namespaces, each with a script of its own."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import h11
import msgspec
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from sidecar.kubernetes.follower_status import FollowerState, FollowerStatus
from sidecar.kubernetes.listwatch import Changes
from sidecar.kubernetes.namespaces import follow_in
from sidecar.kubernetes.objects import Collection, ObjectMeta
from tests.kit.faulty_api import SILENCE, Answer, FaultyApi, client_in_memory, event, failure, page, watch


class Thing(msgspec.Struct):
    metadata: ObjectMeta


THINGS = Collection("Thing", "/apis/example.org/v1/things", Thing, label_selector="a=b")
OPTIONAL = Collection("Thing", "/apis/example.org/v1/things", Thing, optional=True)


def thing(key: str, version: str = "1") -> dict[str, Any]:
    namespace, name = key.split("/")
    return {"metadata": {"name": name, "namespace": namespace, "resourceVersion": version}}


@dataclass
class NamespacedApi(FaultyApi):
    """A script for each namespace; the lists and watches of its own are for all of them."""

    lists: Sequence[Answer] = ()
    namespaces: dict[str, FaultyApi] = field(default_factory=dict)

    def _answer(self, request: h11.Request) -> Answer:
        parts = request.target.decode().split("?")[0].split("/")
        if "namespaces" not in parts:
            return super()._answer(request)
        return self.namespaces[parts[parts.index("namespaces") + 1]]._answer(request)


@dataclass
class Seen:
    """What the follower told."""

    status: FollowerStatus = field(default_factory=FollowerStatus)
    objects: set[str] = field(default_factory=set)
    syncs: int = 0

    def change(self, changes: Changes[Thing]) -> None:
        for key, value in changes.items():
            (self.objects.discard if value is None else self.objects.add)(key)

    def synced(self) -> None:
        assert self.status.synced
        self.syncs += 1

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110  # the state of a task, which gives no signal; the clock jumps
            await trio.sleep(0.1)


@asynccontextmanager
async def following(
    api: FaultyApi, *namespaces: str, things: Collection[Thing] = THINGS, expected: int = 0
) -> AsyncIterator[Seen]:
    seen = Seen()
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:
        nursery.start_soon(
            lambda: follow_in(
                client,
                things,
                namespaces,
                on_change=seen.change,
                on_synced=seen.synced,
                status=seen.status,
                expected=expected,
                draw=lambda: 0.0,
            )
        )
        yield seen
        nursery.cancel_scope.cancel()


async def test_without_namespaces_one_follower_reads_all(autojump_clock: MockClock) -> None:
    api = NamespacedApi([page(thing("shop/a"), thing("blog/b"))])
    async with following(api) as seen:
        await seen.until(lambda: seen.status.state is FollowerState.WATCHING)
        assert (seen.objects, seen.syncs, seen.status.kind) == ({"shop/a", "blog/b"}, 1, "Thing")
    assert {one.path for one in api.asked} == {"/apis/example.org/v1/things"}
    assert len(api.asked) == 2


async def test_each_namespace_is_listed_and_watched_by_itself_with_the_selector(autojump_clock: MockClock) -> None:
    shop = FaultyApi([page(thing("shop/a"))], [watch(event("ADDED", thing("shop/c", "11")), SILENCE)])
    blog = FaultyApi([page(thing("blog/a"), thing("blog/b"))])
    api = NamespacedApi(namespaces={"shop": shop, "blog": blog})
    async with following(api, "shop", "blog") as seen:
        await seen.until(lambda: len(seen.objects) == 4 and seen.status.state is FollowerState.WATCHING)
        assert seen.objects == {"shop/a", "shop/c", "blog/a", "blog/b"}
        assert (seen.status.objects, seen.status.lists, seen.status.watches, seen.status.events) == (4, 2, 2, 1)
        assert seen.status.kind == "Thing"
    assert not api.asked
    for name, one in api.namespaces.items():
        assert {asked.path for asked in one.asked} == {f"/apis/example.org/v1/namespaces/{name}/things"}
        assert {asked.params["labelSelector"] for asked in one.asked} == {"a=b"}


async def test_it_is_synced_once_the_last_namespace_is_and_then_after_each_list(autojump_clock: MockClock) -> None:
    gone = watch(event("ERROR", {"code": 410, "reason": "Expired"}))
    shop = FaultyApi([page()], [watch(120.0), gone, watch(SILENCE)])
    blog = FaultyApi([failure(503, "Unavailable")] * 3 + [page()])
    async with following(NamespacedApi(namespaces={"shop": shop, "blog": blog}), "shop", "blog") as seen:
        await seen.until(lambda: seen.status.lists == 1)
        assert (seen.syncs, seen.status.synced, seen.status.state) == (0, False, FollowerState.RETRYING)
        await seen.until(lambda: seen.status.lists == 2)
        assert (seen.syncs, seen.status.synced) == (1, True)
        await seen.until(lambda: seen.syncs == 2)
        assert seen.status.lists == 3


async def test_a_forbidden_namespace_stops_no_other_and_is_named(autojump_clock: MockClock) -> None:
    shop = FaultyApi([page(thing("shop/a"))], [watch(event("ADDED", thing("shop/b", "11")), SILENCE)])
    blog = FaultyApi([failure(403, "Forbidden")] * 5 + [page(thing("blog/a"))])
    with capture_logs() as logs:
        async with following(NamespacedApi(namespaces={"shop": shop, "blog": blog}), "shop", "blog") as seen:
            await seen.until(lambda: seen.status.errors["forbidden"] >= 2)
            assert seen.objects == {"shop/a", "shop/b"}
            assert seen.status.describe() == "retrying: namespace blog: 403: so it goes"
            assert (seen.status.synced, seen.syncs) == (False, 0)
            await seen.until(lambda: seen.status.synced)
            assert seen.objects == {"shop/a", "shop/b", "blog/a"}
            await seen.until(lambda: seen.status.error is None)
    assert [one["kind"] for one in logs if one["event"] == "retrying"] == ["Thing in blog"]


async def test_a_right_that_is_lost_keeps_what_is_known(autojump_clock: MockClock) -> None:
    shop = FaultyApi([page(thing("shop/a"))])
    blog = FaultyApi([page(thing("blog/a"))], [watch(1.5), failure(403, "Forbidden")])
    async with following(NamespacedApi(namespaces={"shop": shop, "blog": blog}), "shop", "blog") as seen:
        await seen.until(lambda: seen.status.error is not None)
        assert seen.objects == {"shop/a", "blog/a"}
        assert seen.status.synced


async def test_an_optional_kind_is_empty_where_it_is_hidden(autojump_clock: MockClock) -> None:
    shop = FaultyApi([page(thing("shop/a"))])
    blog = FaultyApi([failure(403, "Forbidden")])
    api = NamespacedApi(namespaces={"shop": shop, "blog": blog})
    async with following(api, "shop", "blog", things=OPTIONAL) as seen:
        await seen.until(lambda: seen.status.synced)
        assert (seen.objects, seen.syncs) == ({"shop/a"}, 1)


async def test_empty_lists_after_a_restart_are_confirmed_in_every_namespace(autojump_clock: MockClock) -> None:
    scripts = {name: FaultyApi([page(), page(thing(f"{name}/a"))]) for name in ("shop", "blog", "wiki")}
    async with following(NamespacedApi(namespaces=scripts), *scripts, expected=2) as seen:
        await seen.until(lambda: seen.status.doubted)
        assert not seen.status.synced
        await seen.until(lambda: seen.status.synced)
        assert seen.objects == {"shop/a", "blog/a", "wiki/a"}
        assert not seen.status.doubted
