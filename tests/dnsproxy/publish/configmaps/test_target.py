"""ConfigMaps as a target: parts, two writers, and ConfigMaps of others; the manifests and guarded_writes too."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dnsproxy.admin.publication import Publication
from dnsproxy.publish import parts
from dnsproxy.publish.configmaps.manifests import MANAGED_BY, MANAGER, MapName
from dnsproxy.publish.configmaps.target import ConfigMapTarget
from dnsproxy.publish.following import PublishError
from dnsproxy.publish.publisher_status import PublishStatus
from dnsproxy.publish.source import FileSource
from tests.kit.object_api import ObjectApi, client_of
from tests.kit.publications import many, publication

FOLDER = "/api/v1/namespaces/edge/configmaps"
NAME = MapName("edge", "names")
OURS = {"metadata": {"labels": {MANAGED_BY: MANAGER}}}


class Killed(BaseException):
    """No fault that anybody handles."""


@asynccontextmanager
async def target_of(api: ObjectApi, *, zones: Sequence[str] = ()) -> AsyncIterator[ConfigMapTarget]:
    async with client_of(api) as client:
        yield ConfigMapTarget(client, NAME, zones=zones, status=PublishStatus("", ""))


async def mounted(api: ObjectApi, folder: Path) -> Publication:
    """What a reader finds where the ConfigMaps are mounted."""
    for path, item in api.objects.items():
        for key, value in item.get("binaryData", {}).items():
            (folder / path.rpartition("/")[2]).mkdir(exist_ok=True)
            (folder / path.rpartition("/")[2] / key).write_bytes(base64.b64decode(value))
    return await FileSource(folder).read()


async def test_what_is_published_is_what_a_reader_finds(tmp_path: Path) -> None:
    api, table = ObjectApi(), publication("app.example.org 192.0.2.10 2001:db8::10", "*.example.org 192.0.2.1")
    async with target_of(api) as target:
        assert await target.publish(table, confirmed=False) == ""
    assert await mounted(api, tmp_path) == table
    assert api.objects[f"{FOLDER}/names"]["metadata"]["labels"] == {MANAGED_BY: MANAGER}


async def test_a_zone_narrows(tmp_path: Path) -> None:
    api = ObjectApi()
    async with target_of(api, zones=["example.org"]) as target:
        await target.publish(publication("app.example.org 192.0.2.10", "b.example.net 192.0.2.1"), confirmed=False)
    assert [name.hostname for name in (await mounted(api, tmp_path)).names] == ["app.example.org"]


async def test_the_same_table_costs_one_reading_and_no_write() -> None:
    api, table = ObjectApi(), many(5)
    async with target_of(api) as target:
        await target.publish(table, confirmed=False)
        api.asked.clear()
        await target.publish(table, confirmed=False)
    assert api.asked == [("GET", f"{FOLDER}/names")]


async def test_a_second_writer_finds_nothing_to_do() -> None:
    api, table = ObjectApi(), many(5)
    async with target_of(api) as one, target_of(api) as other:
        await one.publish(table, confirmed=False)
        api.asked.clear()
        await other.publish(table, confirmed=False)
    assert api.writes() == []


async def test_of_two_writers_at_once_the_slower_one_looks_again(tmp_path: Path) -> None:
    api, table = ObjectApi(), many(5)
    async with target_of(api) as one, target_of(api) as other:
        await one.publish(many(3), confirmed=False)
        stored = dict(api.objects[f"{FOLDER}/names"])

        def interfere(method: str, path: str) -> None:
            if method == "PATCH":
                api.before = lambda *_: None
                api.put(path, stored)

        api.before = interfere
        await other.publish(table, confirmed=False)
    assert [method for method, _ in api.writes()] == ["PATCH", "PATCH", "PATCH"]
    assert await mounted(api, tmp_path) == table


async def test_who_is_undone_each_time_gives_up_for_now() -> None:
    api = ObjectApi()
    async with target_of(api) as target:
        await target.publish(many(3), confirmed=False)
        api.before = lambda method, path: api.put(path, api.objects[path]) if method == "PATCH" else None
        with pytest.raises(PublishError, match="changed 5 times by another writer"):
            await target.publish(many(4), confirmed=False)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LARGEST_PART", 100)


@pytest.mark.usefixtures("small_parts")
async def test_a_large_table_takes_several_and_a_small_one_gives_them_back(tmp_path: Path) -> None:
    api = ObjectApi()
    async with target_of(api) as target:
        await target.publish(many(50), confirmed=False)
        names = sorted(path.rpartition("/")[2] for path in api.objects)
        assert names[:3] == ["names", "names-2", "names-3"]
        (tmp_path / "large").mkdir()
        assert await mounted(api, tmp_path / "large") == many(50)
        await target.publish(many(6), confirmed=False)
        assert len(api.objects) < len(names)
        (tmp_path / "small").mkdir()
        assert await mounted(api, tmp_path / "small") == many(6)
        assert await target.remove()
    assert api.objects == {}


@pytest.mark.usefixtures("small_parts")
async def test_one_who_was_killed_between_two_parts_is_finished_by_the_next(tmp_path: Path) -> None:
    api = ObjectApi()
    async with target_of(api) as target:
        await target.publish(many(6), confirmed=False)
        writes = iter(range(2))

        def kill(method: str, _: str) -> None:
            if method == "PATCH" and next(writes, None) is None:
                raise Killed

        api.before = kill
        with pytest.raises(Killed):
            await target.publish(many(50), confirmed=False)
        api.before = lambda *_: None
    async with target_of(api) as next_one:
        await next_one.publish(many(50), confirmed=False)
    assert await mounted(api, tmp_path) == many(50)


@pytest.mark.usefixtures("small_parts")
async def test_a_table_that_fits_nowhere_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_PARTS", 2)
    api = ObjectApi()
    async with target_of(api) as target:
        with pytest.raises(PublishError, match=r"does not fit, it has .* more than 2 ConfigMaps can hold"):
            await target.publish(many(50), confirmed=False)
    assert api.writes() == []


async def test_a_table_that_lost_everything_waits_for_a_second_look(tmp_path: Path) -> None:
    api = ObjectApi()
    async with target_of(api) as target:
        await target.publish(many(5), confirmed=False)
        assert "0 names and 5 are" in await target.publish(many(0), confirmed=False)
        assert await mounted(api, tmp_path) == many(5)
        assert await target.publish(many(0), confirmed=True) == ""


async def test_a_config_map_of_others_is_left_alone() -> None:
    api = ObjectApi()
    api.put(f"{FOLDER}/names", {"data": {"theirs": "x"}})
    async with target_of(api) as target:
        for use in (target.publish(many(1), confirmed=False), target.remove()):
            with pytest.raises(PublishError, match="edge/names is not ours"):
                await use
    assert api.writes() == []


async def test_an_empty_one_with_our_label_is_taken(tmp_path: Path) -> None:
    api = ObjectApi()
    api.put(f"{FOLDER}/names", OURS)
    async with target_of(api) as target:
        await target.publish(many(1), confirmed=False)
    assert await mounted(api, tmp_path) == many(1)


async def test_what_somebody_broke_is_mended(tmp_path: Path) -> None:
    api = ObjectApi()
    async with target_of(api) as target:
        await target.publish(many(2), confirmed=False)
        path = f"{FOLDER}/names"
        stored = api.objects[path]
        api.put(path, {**stored, "binaryData": dict.fromkeys(stored["binaryData"], "eA==")})
        await target.publish(many(2), confirmed=False)
    assert await mounted(api, tmp_path) == many(2)


async def test_to_remove_what_is_not_there_is_no_fault() -> None:
    async with target_of(ObjectApi()) as target:
        assert not await target.remove()


@pytest.mark.parametrize(
    ("code", "said"), [(403, "403: not allowed"), (500, "500: not allowed"), (422, "422: not allowed")]
)
@pytest.mark.parametrize("method", ["GET", "PATCH"])
async def test_what_the_api_server_does_not_do_is_said(method: str, code: int, said: str) -> None:
    api = ObjectApi(refusals={(method, "/names"): (code, "not allowed")})
    async with target_of(api) as target:
        with pytest.raises(PublishError, match=f"ConfigMap edge/names: {said}"):
            await target.publish(many(1), confirmed=False)
