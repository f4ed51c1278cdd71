"""Objects for external-dns as a target: what is written, what never is, and what is logged; objects.py too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
import structlog.testing
import trio

from dnsproxy.publish.externaldns import objects
from dnsproxy.publish.externaldns import target as module
from dnsproxy.publish.externaldns.manifests import Kind, Style
from dnsproxy.publish.externaldns.target import ExternalDnsTarget
from dnsproxy.publish.following import PublishError
from dnsproxy.publish.publisher_status import PublishStatus
from tests.kit.object_api import ObjectApi, client_of
from tests.kit.publications import many, publication

ENDPOINTS: Final = Kind.DNS_ENDPOINT.path("edge")
SERVICES: Final = Kind.SERVICE.path("edge")
APP: Final = f"{ENDPOINTS}/switchback-app.example.org"


RESYNC: Final = 10.0
"""Seconds, for the tests that wait so long."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESYNC", RESYNC)
    monkeypatch.setattr(module, "OBSERVED_AFTER", 5.0)


class World:
    """A target, its status, and what it says in the log."""

    def __init__(self, target: ExternalDnsTarget, status: PublishStatus) -> None:
        self.target = target
        self.status = status

    async def publish(self, *rows: str, confirmed: bool = False) -> str:
        return await self.target.publish(publication(*rows), confirmed=confirmed)


@asynccontextmanager
async def world_of(
    api: ObjectApi, *, kind: Kind = Kind.DNS_ENDPOINT, instance: str = "main", publisher: str = "", **options: Any
) -> AsyncIterator[World]:
    style, status = Style(kind, "edge", instance, 60, publisher=publisher), PublishStatus("", "")
    async with client_of(api) as client:
        yield World(ExternalDnsTarget(client, style, status=status, **options), status)


def names(api: ObjectApi, folder: str = ENDPOINTS) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in api.objects if path.startswith(folder))


def targets(api: ObjectApi, path: str = APP) -> list[str]:
    return [one for endpoint in api.objects[path]["spec"]["endpoints"] for one in endpoint["targets"]]


@pytest.mark.parametrize(("kind", "folder"), [(Kind.DNS_ENDPOINT, ENDPOINTS), (Kind.SERVICE, SERVICES)])
async def test_each_name_has_an_object_that_goes_with_it(kind: Kind, folder: str) -> None:
    api = ObjectApi()
    async with world_of(api, kind=kind) as world:
        await world.publish("app.example.org 192.0.2.10 2001:db8::10", "*.example.org 192.0.2.1")
        assert len(names(api, folder)) == 2
        assert (world.status.names, world.status.objects, world.status.writes["done"]) == (2, 2, 2)
        await world.publish("app.example.org 192.0.2.11")
        assert len(names(api, folder)) == 1
        assert await world.target.remove()
        assert api.objects == {}
        assert not await world.target.remove()


async def test_a_zone_narrows() -> None:
    api = ObjectApi()
    async with world_of(api, zones=["example.org"]) as world:
        await world.publish("app.example.org 192.0.2.10", "b.example.net 192.0.2.1")
    assert names(api) == ["switchback-app.example.org"]


async def test_many_objects_are_read_in_chunks_and_written_once() -> None:
    api = ObjectApi(largest_page=7)
    async with world_of(api) as world:
        await world.target.publish(many(50), confirmed=False)
    async with world_of(api) as again:
        api.asked.clear()
        await again.target.publish(many(50), confirmed=False)
    assert len(names(api)) == 50
    assert api.writes() == []
    assert api.asked.count(("GET", ENDPOINTS)) == 8


@pytest.mark.usefixtures("impatient")
async def test_the_same_table_is_not_looked_after_more_often_than_every_few_minutes(
    autojump_clock: trio.abc.Clock,  # noqa: ARG001
) -> None:
    api, table = ObjectApi(), many(3)
    async with world_of(api) as world:
        await world.target.publish(table, confirmed=False)
        api.asked.clear()
        await trio.sleep(RESYNC - 1)
        await world.target.publish(table, confirmed=False)
        assert api.asked == []
        del api.objects[f"{ENDPOINTS}/switchback-h0.example.org"]
        await trio.sleep(2)
        await world.target.publish(table, confirmed=False)
    assert len(names(api)) == 3


async def test_what_is_not_ours_stays_and_keeps_only_its_own_name_from_being_published() -> None:
    api = ObjectApi()
    foreign = {"spec": {"endpoints": [{"dnsName": "theirs.example.org"}]}, "metadata": {"labels": {"app": "x"}}}
    api.put(APP, foreign)
    async with world_of(api) as world:
        with structlog.testing.capture_logs() as logs:
            await world.publish("app.example.org 192.0.2.10", "b.example.org 192.0.2.11")
            await world.publish("app.example.org 192.0.2.10", "b.example.org 192.0.2.12")
        logged = [entry["what"] for entry in logs if entry["log_level"] == "warning"]
        assert len(logged) == 1
        assert logged[0].startswith("app.example.org is not published: an object of that name is not ours")
        assert (world.status.conflicts, world.status.names) == (1, 1)
        await world.target.remove()
    assert names(api) == ["switchback-app.example.org"]
    assert api.objects[APP]["spec"] == foreign["spec"]


async def test_two_instances_do_not_touch_each_others_objects() -> None:
    api = ObjectApi()
    async with world_of(api, instance="one") as one, world_of(api, instance="two") as two:
        await one.publish("app.example.org 192.0.2.10")
        await two.publish("app.example.org 192.0.2.66", "b.example.org 192.0.2.66")
        await one.publish("app.example.org 192.0.2.11")
        assert targets(api) == ["192.0.2.11"]
        await one.target.remove()
    assert names(api) == ["switchback-b.example.org"]


async def test_of_two_writers_at_once_the_slower_one_finds_nothing_left_to_do() -> None:
    api, table = ObjectApi(), many(5)
    async with world_of(api) as one, world_of(api) as other, trio.open_nursery() as nursery:
        for world in (one, other):
            nursery.start_soon(lambda target: target.publish(table, confirmed=False), world.target)
    assert len(names(api)) == 5
    assert sum(one.get("applied") is not None for one in api.objects.values()) == 5


async def test_an_object_that_changes_between_the_look_and_the_write_is_looked_at_again() -> None:
    api = ObjectApi()
    async with world_of(api) as world:
        await world.publish("app.example.org 192.0.2.10")

        def interfere(method: str, path: str) -> None:
            if method == "PATCH":
                api.before = lambda *_: None
                api.put(path, {**api.objects[path], "status": {"observedGeneration": 1}})

        api.before = interfere
        await world.publish("app.example.org 192.0.2.11")
    assert targets(api) == ["192.0.2.11"]


async def test_a_stranger_who_takes_the_name_between_the_look_and_the_write_keeps_it() -> None:
    api = ObjectApi()

    def interfere(method: str, path: str) -> None:
        if method == "PATCH" and path not in api.objects:
            api.put(path, {"spec": {"endpoints": []}, "metadata": {"labels": {"app": "x"}}})

    api.before = interfere
    async with world_of(api) as world:
        await world.publish("app.example.org 192.0.2.10")
        assert world.status.conflicts == 1
    assert api.objects[APP]["metadata"]["labels"] == {"app": "x"}


async def test_who_is_undone_each_time_gives_up_for_now() -> None:
    api = ObjectApi()
    async with world_of(api) as world:
        await world.publish("app.example.org 192.0.2.10")
        api.before = lambda method, path: api.put(path, api.objects[path]) if method == "PATCH" else None
        with pytest.raises(PublishError, match="another writer changes DNSEndpoints in namespace edge each time"):
            await world.publish("app.example.org 192.0.2.11")


async def test_an_empty_table_deletes_nothing_however_often_it_is_seen() -> None:
    api = ObjectApi()
    async with world_of(api) as world:
        await world.target.publish(many(3), confirmed=False)
        for confirmed in (False, True, True):
            held_back = await world.target.publish(many(0), confirmed=confirmed)
            assert held_back == "the table is empty; --allow-empty would delete 3 objects, without it they stay"
    assert len(names(api)) == 3


async def test_an_empty_table_is_believed_at_the_second_look_where_that_is_allowed() -> None:
    api = ObjectApi()
    async with world_of(api, allow_empty=True) as world:
        await world.target.publish(many(3), confirmed=False)
        assert "a second read decides" in await world.target.publish(many(0), confirmed=False)
        assert await world.target.publish(many(0), confirmed=True) == ""
    assert names(api) == []


async def test_a_table_that_lost_nearly_everything_waits_for_a_second_look() -> None:
    api = ObjectApi()
    async with world_of(api) as world:
        await world.target.publish(many(30), confirmed=False)
        held_back = await world.target.publish(many(2), confirmed=False)
        assert held_back == "the table has 2 names and 30 are published; a second read decides"
        assert len(names(api)) == 30
        assert await world.target.publish(many(2), confirmed=True) == ""
    assert len(names(api)) == 2


async def test_nothing_is_published_where_there_is_nothing_and_nothing_should_be() -> None:
    api = ObjectApi()
    async with world_of(api) as world:
        assert await world.target.publish(many(0), confirmed=False) == ""
    assert api.writes() == []


async def test_a_name_that_the_api_server_refuses_keeps_no_other_from_being_published() -> None:
    api = ObjectApi(refusals={("PATCH", "switchback-app.example.org"): (422, "a webhook says no")})
    async with world_of(api) as world:
        await world.publish("app.example.org 192.0.2.10", "b.example.org 192.0.2.11")
        assert world.status.notes == ("switchback-app.example.org is not published: 422: a webhook says no",)
        assert world.status.excluded == {"conflict": 0, "refused": 1}
    assert names(api) == ["switchback-b.example.org"]


@pytest.mark.parametrize(
    ("method", "end", "code", "said"),
    [
        pytest.param("GET", "dnsendpoints", 403, "DNSEndpoints in namespace edge: 403", id="may not list"),
        pytest.param("GET", "dnsendpoints", 404, "is the definition of DNSEndpoint installed", id="no definition"),
        pytest.param("GET", "dnsendpoints", 500, "500: so", id="ill"),
        pytest.param("PATCH", "example.org", 403, "403: so", id="may not write"),
        pytest.param("PATCH", "example.org", 404, "404: so", id="no namespace"),
        pytest.param("PATCH", "example.org", 429, "429: so", id="busy"),
        pytest.param("PATCH", "example.org", 503, "503: so", id="away"),
    ],
)
async def test_what_concerns_all_is_one_trouble(method: str, end: str, code: int, said: str) -> None:
    api = ObjectApi(refusals={(method, end): (code, "so")})
    async with world_of(api) as world:
        with pytest.raises(PublishError, match=said) as caught:
            await world.target.publish(many(30), confirmed=False)
    assert caught.value.status == 3


async def test_objects_of_the_other_output_are_told_of_with_what_to_do() -> None:
    api = ObjectApi()
    async with world_of(api, kind=Kind.SERVICE) as before:
        await before.target.publish(many(3), confirmed=False)
    async with world_of(api) as world:
        with structlog.testing.capture_logs() as logs:
            await world.target.publish(many(3), confirmed=False)
            await world.target.publish(many(4), confirmed=False)
        (logged,) = [entry for entry in logs if entry["log_level"] == "warning"]
        assert (logged["kind"], logged["count"]) == ("Service", 3)
        assert logged["do"].startswith(
            "kubectl -n edge delete services -l app.kubernetes.io/managed-by=switchback-publish,"
        )
        await world.target.remove()
    assert api.objects == {}


@pytest.mark.parametrize("code", [403, 404])
async def test_the_other_output_may_be_out_of_sight(code: int) -> None:
    api = ObjectApi(refusals={("GET", "services"): (code, "no")})
    async with world_of(api) as world:
        await world.target.publish(many(3), confirmed=False)
        assert await world.target.remove()
    assert api.objects == {}


@pytest.mark.usefixtures("impatient")
async def test_objects_that_external_dns_does_not_see_are_told_of_once_they_have_rested(
    autojump_clock: trio.abc.Clock,  # noqa: ARG001
) -> None:
    api, table = ObjectApi(), many(3)
    async with world_of(api) as world:
        with structlog.testing.capture_logs() as logs:
            await world.target.publish(table, confirmed=False)
            assert not world.status.notes
            for _ in range(3):
                await trio.sleep(RESYNC + 1)
                await world.target.publish(table, confirmed=False)
        (note,) = world.status.notes
        assert note.startswith("external-dns has not read 3 objects (switchback-h0.example.org, ")
        assert len([entry for entry in logs if entry["log_level"] == "warning"]) == 1
        for path, item in api.objects.items():
            api.put(path, {**item, "status": {"observedGeneration": item["metadata"]["generation"]}})
        await trio.sleep(RESYNC + 1)
        await world.target.publish(table, confirmed=False)
        assert world.status.notes == ()


@pytest.mark.usefixtures("impatient")
async def test_services_have_no_word_of_external_dns(
    autojump_clock: trio.abc.Clock,  # noqa: ARG001
) -> None:
    api, table = ObjectApi(), many(3)
    async with world_of(api, kind=Kind.SERVICE) as world:
        for _ in range(3):
            await world.target.publish(table, confirmed=False)
            await trio.sleep(RESYNC + 1)
        assert world.status.notes == ()


async def test_a_preview_names_each_change_and_makes_none() -> None:
    api = ObjectApi()
    async with world_of(api) as world:
        await world.target.publish(many(2), confirmed=False)
        api.asked.clear()
        preview = await world.target.preview(publication("app.example.org 192.0.2.1", "h0.example.org 192.0.2.66"))
        assert preview.splitlines() == [
            "create switchback-app.example.org: app.example.org 192.0.2.1",
            "update switchback-h0.example.org: h0.example.org 192.0.2.66",
            "delete switchback-h1.example.org",
        ]
        assert (await world.target.preview(None)).count("delete ") == 2
    assert api.writes() == []


async def test_no_more_requests_are_under_way_than_an_api_server_likes() -> None:
    api, under_way, most = ObjectApi(), 0, 0
    carry_out = objects.Objects._change

    async def change(self: Any, *arguments: Any) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await trio.lowlevel.checkpoint()
        try:
            return await carry_out(self, *arguments)
        finally:
            under_way -= 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects.Objects, "_change", change)
        async with world_of(api) as world:
            await world.target.publish(many(40), confirmed=False)
    assert 1 < most <= 8


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"publisher": "a:8081"}, {"publisher": "b:8081"}, id="two sources"),
        pytest.param(
            {"publisher": "a:8081", "zones": ["example.org"]},
            {"publisher": "a:8081", "zones": ["example.net"]},
            id="two zones of one source",
        ),
    ],
)
async def test_two_publishers_of_one_instance_warn_and_leave_each_other_their_objects(
    kind: Kind, first: dict[str, Any], second: dict[str, Any]
) -> None:
    api, tables = ObjectApi(), ("a.example.org 192.0.2.1", "b.example.net 192.0.2.2")
    for _ in range(2):
        for options, table in zip((first, second), tables, strict=True):
            with structlog.testing.capture_logs() as logs:
                async with world_of(api, kind=kind, **options) as world:
                    assert await world.publish(table) == ""
    assert len(names(api, kind.path("edge"))) == 2
    warnings = [entry for entry in logs if entry["log_level"] == "warning"]
    (warning,) = [entry for entry in warnings if "1 objects stay as they are" in entry["what"]]
    assert "--instance" in warning["what"]
    assert "--take-over" in warning["what"]


async def test_an_object_that_two_publishers_want_stays_with_the_first() -> None:
    api = ObjectApi()
    async with world_of(api, publisher="a:8081") as world:
        await world.publish("app.example.org 192.0.2.1")
    async with world_of(api, publisher="b:8081") as other:
        await other.publish("app.example.org 192.0.2.2")
        assert other.status.is_incomplete()
        assert "leave switchback-app.example.org" in await other.target.preview(
            publication("app.example.org 192.0.2.2")
        )
        assert not await other.target.remove(), "at its exit it removes its own"
    assert targets(api) == ["192.0.2.1"]


async def test_a_publisher_that_takes_over_changes_and_deletes_the_objects_of_the_others() -> None:
    api = ObjectApi()
    async with world_of(api, publisher="a:8081", zones=["example.org"]) as world:
        await world.publish("app.example.org 192.0.2.1", "old.example.org 192.0.2.1")
    async with world_of(api, publisher="b:8081", zones=["app.example.org"], take_over=True) as other:
        await other.publish("app.example.org 192.0.2.2")
    assert names(api) == ["switchback-app.example.org"]
    assert targets(api) == ["192.0.2.2"]


async def test_objects_of_an_earlier_version_have_no_publisher_and_are_taken() -> None:
    api = ObjectApi()
    async with world_of(api) as earlier:
        await earlier.publish("app.example.org 192.0.2.1", "old.example.org 192.0.2.1")
    async with world_of(api, publisher="a:8081") as world:
        await world.publish("app.example.org 192.0.2.1")
    assert names(api) == ["switchback-app.example.org"]
    assert api.objects[APP]["metadata"]["annotations"]["switchback.dev/publisher"] == "a:8081"
