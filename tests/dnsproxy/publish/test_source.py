"""Sources: the admin port of a server, and files."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry

from dnsproxy.admin.publication import Publication, format_document, parse_document, rows_of
from dnsproxy.admin.publication_route import PATH, PublicationRoute
from dnsproxy.answers.table import HostTable
from dnsproxy.publish import parts
from dnsproxy.publish import source as source_module
from dnsproxy.publish.options import parse_server_name
from dnsproxy.publish.parts import split_document
from dnsproxy.publish.source import FileSource, ServerSource, SourceError
from sidecar.admin.answers import Answer
from sidecar.admin.server import Readiness, serve_admin
from sidecar.sockets.listeners import bound_endpoint, listen_tcp
from sidecar.values.endpoints import Endpoint
from sidecar.values.host_port import HostPort
from tests.kit.messages import table_of
from tests.kit.publications import many, publication


class Server:
    """An admin port with the table that a test sets, and how often it was asked for the names."""

    def __init__(self) -> None:
        self.table = HostTable()
        self.waiting_for: tuple[str, ...] = ()
        self.statuses: list[int] = []
        self.name = HostPort("127.0.0.1", 0)

    async def ready(self) -> Readiness:
        return Readiness(ready=True, reason="")


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[ServerSource]:
    listener = listen_tcp(Endpoint("127.0.0.1", 0), flag="--admin")
    published = PublicationRoute(lambda: server.table, ttl=lambda: 5)
    routes = published.routes(waiting_for=lambda: server.waiting_for)
    serve = partial(
        serve_admin, [listener], readiness=server.ready, registry=CollectorRegistry(), page=str, routes=routes
    )
    server.name = HostPort("localhost", bound_endpoint(listener).port)
    async with trio.open_nursery() as nursery:
        await nursery.start(serve)
        yield ServerSource(server.name)
        nursery.cancel_scope.cancel()


async def test_a_server_gives_its_table_and_the_very_same_while_it_stays() -> None:
    server = Server()
    server.table = table_of("app.example.org 192.0.2.10", "*.example.org 192.0.2.11")
    async with serving(server) as source:
        first = await source.read()
        assert first == publication("app.example.org 192.0.2.10", "*.example.org 192.0.2.11")
        assert await source.read() is first


async def test_another_replica_with_the_same_names_costs_no_second_reading() -> None:
    server = Server()
    rows = ["app.example.org 192.0.2.10", "b.example.org 192.0.2.11"]
    server.table = table_of(*rows)
    async with serving(server) as source:
        first = await source.read()
        server.table = table_of(*reversed(rows))
        assert await source.read() is first


async def test_a_new_table_comes_in_a_moment() -> None:
    server = Server()
    server.table = table_of("app.example.org 192.0.2.10")
    async with serving(server) as source:
        first = await source.read()
        server.table = table_of("app.example.org 192.0.2.11")
        while (now := await source.read()) is first:
            pass
        assert now == publication("app.example.org 192.0.2.11")


async def test_a_server_that_is_not_synced_is_not_believed_and_its_last_word_is_remembered() -> None:
    server = Server()
    server.table = table_of("app.example.org 192.0.2.10")
    async with serving(server) as source:
        first = await source.read()
        server.waiting_for = ("ingress", "gateway")
        with pytest.raises(SourceError, match="answers 503: waiting for the first sync of: ingress, gateway"):
            await source.read()
        server.waiting_for = ()
        assert await source.read() is first


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        pytest.param("127.0.0.1:9", "no server answers there", id="no listener"),
        pytest.param("nowhere.invalid:8081", "no address for the name", id="no such name"),
    ],
)
async def test_a_server_that_is_not_there_is_said(server: str, reason: str) -> None:
    with pytest.raises(SourceError, match=f"--from .*{reason}"):
        await ServerSource(parse_server_name(server)).read()


async def test_a_server_that_says_something_else_is_said() -> None:
    listener = listen_tcp(Endpoint("127.0.0.1", 0), flag="--admin")
    serve = partial(
        serve_admin,
        [listener],
        readiness=Server().ready,
        registry=CollectorRegistry(),
        page=str,
        routes={PATH: lambda _: Answer(200, b"hello")},
    )
    name = HostPort("127.0.0.1", bound_endpoint(listener).port)
    async with trio.open_nursery() as nursery:
        await nursery.start(serve)
        with pytest.raises(SourceError, match="the answer is not a publication"):
            await ServerSource(name).read()
        nursery.cancel_scope.cancel()


async def test_a_file_is_read_and_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "names.json.gz"
    file.write_bytes(format_document(many(3)).octets)
    source = FileSource(file)
    first = await source.read()
    assert first == many(3)
    assert await source.read() is first
    file.write_bytes(format_document(many(4)).octets)
    assert await source.read() == many(4)


async def test_a_file_that_changes_while_it_is_read_is_read_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "names.json.gz"
    file.write_bytes(format_document(many(3)).octets)

    def parse_while_it_changes(octets: bytes) -> Publication:
        monkeypatch.undo()
        file.write_bytes(format_document(many(4)).octets)
        return parse_document(octets)

    monkeypatch.setattr(source_module, "parse_document", parse_while_it_changes)
    source = FileSource(file)
    with pytest.raises(SourceError, match="changed while it was read"):
        await source.read()
    assert await source.read() == many(4)


def mount(folder: Path, count: int, version: str) -> None:
    """As the kubelet does: the files in a folder of their own, reached over a link that is swapped."""
    data = folder / f"..{version}"
    data.mkdir()
    for part in split_document(format_document(many(count)).octets):
        (data / part.key).write_bytes(part.octets)
    for link in folder.iterdir():
        if link.is_symlink() and link.name != "..data":
            link.unlink()
    (folder / "..new").symlink_to(data.name)
    os.replace(folder / "..new", folder / "..data")
    for file in data.iterdir():
        (folder / file.name).symlink_to(Path("..data") / file.name)


async def test_a_mounted_config_map_is_followed(tmp_path: Path) -> None:
    mount(tmp_path, 3, "2026_1")
    source = FileSource(tmp_path)
    first = await source.read()
    assert first == many(3)
    assert await source.read() is first
    mount(tmp_path, 4, "2026_2")
    assert await source.read() == many(4)


async def test_parts_of_two_tables_are_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One ConfigMap has come to the node already, the other has not."""
    monkeypatch.setattr(parts, "LARGEST_PART", 60)
    old, new = (split_document(format_document(many(count)).octets) for count in (20, 30))
    for part in (old[0], *new[1:]):
        (tmp_path / part.key).write_bytes(part.octets)
    with pytest.raises(SourceError, match="not all of one"):
        await FileSource(tmp_path).read()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(None, "No such file", id="nothing there"),
        pytest.param(b"", "cut", id="empty"),
        pytest.param(b"hello", "incorrect header", id="something else"),
    ],
)
async def test_a_file_that_cannot_be_used_is_said(tmp_path: Path, content: bytes | None, reason: str) -> None:
    file = tmp_path / "names"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SourceError, match=f"--from-file .*: .*{reason}"):
        await FileSource(file).read()


async def test_a_folder_without_parts_is_said(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("hello")
    with pytest.raises(SourceError, match="there is no part of a publication"):
        await FileSource(tmp_path).read()


async def test_a_folder_with_more_parts_than_make_sense_is_not_read(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"names-{number:016x}-1-of-1.json.gz").touch()
    with pytest.raises(SourceError, match="there are 40 parts"):
        await FileSource(tmp_path).read()


async def test_one_document_is_made_for_all_who_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table, made = table_of("app.example.org 192.0.2.10"), []

    def names(table: HostTable) -> object:
        made.append(table)
        return rows_of(table)

    monkeypatch.setattr("dnsproxy.admin.publication_route.rows_of", names)
    published = PublicationRoute(lambda: table, ttl=lambda: 5)
    tags = set()

    async def ask() -> None:
        tags.add((await published.document()).tag)

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(ask)
    assert (len(made), len(tags)) == (1, 1)


async def test_a_table_that_keeps_changing_is_made_into_a_document_now_and_then(
    autojump_clock: trio.abc.Clock,  # noqa: ARG001
) -> None:
    tables = iter(table_of(f"h{number}.example.org 192.0.2.1") for number in range(1000))
    published = PublicationRoute(lambda: next(tables), ttl=lambda: 5)
    tags = set()
    for _ in range(100):
        tags.add((await published.document()).tag)
        await trio.sleep(0.1)
    assert 2 <= len(tags) <= 12


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(["x" * 200_000, ["192.0.2.1"]], id="a hostname"),
        pytest.param([" " * 200_000 + "app.example.org", ["192.0.2.1"]], id="a hostname with blanks"),
        pytest.param(["app.example.org", ["x" * 200_000]], id="an address"),
        pytest.param(["app.example.org", ["192.0.2.1"], "x" * 200_000], id="a reach"),
    ],
)
async def test_a_long_text_of_a_document_is_not_repeated_whole(name: list[object], tmp_path: Path) -> None:
    path = tmp_path / "names.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"ttl": 5, "names": [name]}).encode()))
    with pytest.raises(SourceError) as error:
        await FileSource(path).read()
    assert len(str(error.value)) < 500 + len(str(path))
