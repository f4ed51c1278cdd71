"""A hosts file as a target: when it is written, what it never loses, and what is logged."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
import structlog.testing

from dnsproxy.publish.following import PublishError
from dnsproxy.publish.hosts import file as hosts_file
from dnsproxy.publish.hosts.block import find_block
from dnsproxy.publish.hosts.mounts import Mount
from dnsproxy.publish.hosts.rules import MOST_NAMES, ROOT, Rules
from dnsproxy.publish.hosts.target import HostsTarget, check_name
from dnsproxy.publish.publisher_status import PublishStatus
from sidecar.values.errors import StartError
from tests.kit.publications import many, publication

FOREIGN = b"127.0.0.1 localhost"


def rules(*zones: str, allow: Collection[str] = (), deny: Collection[str] = (), most: int = MOST_NAMES) -> Rules:
    return Rules(frozenset(zones), allow=frozenset(allow), deny=frozenset(deny), most=most)


class World:
    """A hosts file and who keeps it."""

    def __init__(self, folder: Path, *zones: str, most: int = MOST_NAMES) -> None:
        self.file = folder / "hosts"
        self.file.write_bytes(FOREIGN)
        self.status = PublishStatus("the source", str(self.file))
        self.target = HostsTarget(self.file, rules=rules(*zones or (ROOT,), most=most), status=self.status)

    async def publish(self, *rows: str, confirmed: bool = False) -> str:
        return await self.target.publish(publication(*rows), confirmed=confirmed)

    @property
    def lines(self) -> list[str]:
        block = find_block(self.file.read_bytes())
        return [line.decode() for line in block.lines] if block else []


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_the_names_are_in_the_file_and_go_without_a_trace(world: World) -> None:
    await world.publish("app.example.org 192.0.2.10 2001:db8::10", "b.example.org 192.0.2.11")
    assert world.lines == ["192.0.2.10 app.example.org", "2001:db8::10 app.example.org", "192.0.2.11 b.example.org"]
    assert (world.status.names, world.status.writes["done"]) == (2, 1)
    assert await world.target.remove()
    assert world.file.read_bytes() == FOREIGN
    assert not await world.target.remove()


async def test_a_zone_narrows(tmp_path: Path) -> None:
    world = World(tmp_path, "example.org")
    await world.publish("app.example.org 192.0.2.10", "b.example.net 192.0.2.11")
    assert world.lines == ["192.0.2.10 app.example.org"]


async def test_the_same_table_and_file_cost_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    table = many(3)
    await world.target.publish(table, confirmed=False)
    monkeypatch.setattr(hosts_file, "apply", None)
    assert await world.target.publish(table, confirmed=False) == ""


async def test_a_block_that_somebody_took_out_comes_back(world: World) -> None:
    table = many(3)
    await world.target.publish(table, confirmed=False)
    world.file.write_bytes(b"192.0.2.1 other\n")
    await world.target.publish(table, confirmed=False)
    assert len(world.lines) == 3
    assert world.file.read_bytes().startswith(b"192.0.2.1 other\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [pytest.param(1, 0, id="one of one"), pytest.param(100, 0, id="all"), pytest.param(100, 9, id="nearly all")],
)
async def test_a_table_that_lost_nearly_everything_is_written_at_the_second_look(
    world: World, before: int, after: int
) -> None:
    await world.target.publish(many(before), confirmed=False)
    held_back = await world.target.publish(many(after), confirmed=False)
    assert held_back == f"the table has {after} names and {before} are published; a second read decides"
    assert len(world.lines) == before
    assert await world.target.publish(many(after), confirmed=True) == ""
    assert len(world.lines) == after


async def test_a_restart_does_not_forget_what_is_in_the_file(world: World) -> None:
    await world.target.publish(many(5), confirmed=False)
    again = HostsTarget(world.file, rules=rules(ROOT), status=PublishStatus("", ""))
    assert await again.publish(many(0), confirmed=False) != ""
    assert len(world.lines) == 5


async def test_a_zone_without_names_is_no_reason_to_doubt_a_file_without_a_block(world: World) -> None:
    assert await world.publish() == ""
    assert world.file.read_bytes() == FOREIGN


async def test_wildcards_are_left_out_counted_and_told_once_each_change(world: World) -> None:
    tables = [
        ("app.example.org 192.0.2.10", "*.example.org 192.0.2.1"),
        ("b.example.org 192.0.2.10", "*.example.org 192.0.2.1"),
        ("b.example.org 192.0.2.10", "*.example.org 192.0.2.1", "**.example.net 192.0.2.1"),
        ("b.example.org 192.0.2.10",),
    ]
    logged = []
    for rows in tables:
        with structlog.testing.capture_logs() as logs:
            await world.publish(*rows)
        logged.append([entry["names"] for entry in logs if entry["log_level"] == "warning"])
    assert logged == [["*.example.org"], [], ["*.example.net, *.example.org"], []]
    assert set(world.status.excluded.values()) == {0}
    assert world.lines == ["192.0.2.10 b.example.org"]


async def test_names_that_the_node_has_itself_are_left_to_it_and_told_once(world: World) -> None:
    """Its API server's, say: any tenant could claim that."""
    world.file.write_bytes(b"192.0.2.99 api.example.org\n")
    rows = ("api.example.org 192.0.2.10", "b.example.org 192.0.2.10")
    with structlog.testing.capture_logs() as logs:
        await world.publish(*rows)
        await world.publish(*rows, "c.example.org 192.0.2.10")
    assert [entry["names"] for entry in logs if entry["log_level"] == "warning"] == ["api.example.org"]
    assert world.lines == ["192.0.2.10 b.example.org", "192.0.2.10 c.example.org"]
    assert (world.status.names, world.status.excluded["taken"]) == (2, 1)
    world.file.write_bytes(b"")
    await world.publish(*rows)
    assert world.lines == ["192.0.2.10 api.example.org", "192.0.2.10 b.example.org"]


async def test_each_reason_to_exclude_names_is_logged_once_and_counted(tmp_path: Path) -> None:
    world = World(tmp_path, ROOT, most=1)
    rows = ("quay.io 192.0.2.66", "a.example.org 192.0.2.1", "b.example.org 192.0.2.1", "c.example.org 127.0.0.1")
    with structlog.testing.capture_logs() as logs:
        await world.publish(*rows)
        await world.publish(*rows, "*.example.org 192.0.2.1")
    logged = [(entry["names"], entry["count"]) for entry in logs if entry["log_level"] == "warning"]
    assert logged == [("quay.io", 1), ("c.example.org", 1), ("b.example.org", 1), ("*.example.org", 1)]
    assert world.lines == ["192.0.2.1 a.example.org"]
    assert world.status.excluded == {"wildcard": 1, "protected": 1, "address": 1, "taken": 0, "limit": 1}


async def test_names_in_the_file_keep_their_place_when_more_come_than_are_accepted(tmp_path: Path) -> None:
    world = World(tmp_path, "example.org", most=2)
    await world.publish("x.example.org 192.0.2.1", "y.example.org 192.0.2.1")
    await world.publish("x.example.org 192.0.2.1", "y.example.org 192.0.2.1", "a.example.org 192.0.2.66")
    assert world.lines == ["192.0.2.1 x.example.org", "192.0.2.1 y.example.org"]
    await world.publish("y.example.org 192.0.2.1", "a.example.org 192.0.2.66")
    assert world.lines == ["192.0.2.66 a.example.org", "192.0.2.1 y.example.org"]


async def test_markers_out_of_order_are_told_with_their_line_and_the_file_is_left_alone(world: World) -> None:
    world.file.write_bytes(b"a\n# END switchback\n")
    for use in (world.publish("app.example.org 192.0.2.10"), world.target.remove(), world.target.preview(many(1))):
        with pytest.raises(PublishError, match=r"hosts: line 2: a marker stands alone"):
            await use
    assert world.file.read_bytes() == b"a\n# END switchback\n"


async def test_a_file_that_is_gone_is_trouble_and_is_not_made(world: World) -> None:
    world.file.unlink()
    with pytest.raises(PublishError, match="No such file"):
        await world.publish("app.example.org 192.0.2.10")
    assert not world.file.exists()


async def test_a_file_that_the_node_has_replaced_ends_the_program(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the kubelet makes a new container, which gets the new file."""
    table = many(3)
    await world.target.publish(table, confirmed=False)
    monkeypatch.setattr(hosts_file, "find_mount", lambda *_: Mount(deleted=True))
    with pytest.raises(StartError, match="the node has another file in its place") as caught:
        await world.target.publish(table, confirmed=False)
    assert caught.value.status == 1


async def test_a_file_that_is_replaced_while_it_is_written_is_noticed_at_the_next_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state after the write is that of a file that no program reads, and it never changes again."""
    table, mounts = many(3), iter([Mount(deleted=False)] * 3)
    monkeypatch.setattr(hosts_file, "find_mount", lambda *_: next(mounts, Mount(deleted=True)))
    await world.target.publish(table, confirmed=False)
    assert len(world.lines) == 3
    with pytest.raises(StartError, match="the node has another file in its place"):
        await world.target.publish(table, confirmed=False)


async def test_a_preview_is_a_diff_and_changes_nothing(world: World) -> None:
    diff = await world.target.preview(publication("app.example.org 192.0.2.10"))
    assert diff.endswith("\n+192.0.2.10 app.example.org\n+# END switchback\n")
    assert await world.target.preview(None) == ""
    assert world.file.read_bytes() == FOREIGN


@pytest.mark.parametrize(
    ("name", "link", "fault"),
    [
        pytest.param("hosts", None, "", id="hosts"),
        pytest.param("shadow", None, "shadow is not called `hosts`", id="another file"),
        pytest.param("hosts", "shadow", "shadow is not called `hosts`", id="a link to another file"),
        pytest.param("hosts", "static/hosts", "", id="a link to hosts elsewhere"),
        pytest.param("hosts", "hosts", "", id="a link to itself"),
        pytest.param("hosts.bak", None, "hosts.bak is not called", id="a longer name"),
    ],
)
def test_only_a_file_called_hosts_is_taken(tmp_path: Path, name: str, link: str | None, fault: str) -> None:
    if link is not None:
        (tmp_path / name).symlink_to(tmp_path / link)
    assert fault in check_name(tmp_path / name)
    assert bool(check_name(tmp_path / name)) == bool(fault)
