"""The saved table: exactly what was written, or a reason, and a replica that starts in any case."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Final

import pytest
import structlog.testing
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.replica import replica as replica_module
from dnsproxy.replica import saved_table
from dnsproxy.replica.saved_table import SavedTableRefused, format_saved, parse_saved, read_saved, write_saved
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.secondary.test_zone_follower import first, newer, second
from tests.kit.dns_server import wait_until
from tests.kit.faulty_upstream import faulty_upstream
from tests.kit.strategies import mutate
from tests.kit.zone_replicas import following

ZONE: Final = "_switchback.rpz.example.org."
TEXTS: Final = (b'{"format":1,"ttl":5}', b'["app.example.org",[]]', b'["new.example.org",[]]')
DEAD: Final = Endpoint("127.0.0.1", 9)
NOT_USED: Final = "snapshot not used"


def written(zone: str = ZONE, texts: tuple[bytes, ...] = TEXTS, serial: int = 7) -> bytes:
    steps = format_saved(zone, serial, texts)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return b"".join(done.value)


OCTETS: Final = written()


@pytest.mark.parametrize("count", [0, 1, 3, 199, 200, 201, 1_000])
def test_a_table_is_read_as_it_was_written(count: int) -> None:
    texts = tuple(b'["n%d.example.org",[]]' % number for number in range(count))
    found = parse_saved(written(texts=texts), zone=ZONE)
    assert (found.serial, found.texts) == (7, texts)


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        pytest.param(b"", "no saved table", id="an empty file"),
        pytest.param(b"\n", "no saved table", id="a line end"),
        pytest.param(b"{}\n", "no saved table", id="an empty object"),
        pytest.param(b"[" * 5_000, "no saved table", id="lists without end"),
        pytest.param(b"\xff\xfe" * 100, "no saved table", id="no text"),
        pytest.param(b"x" * 10_000 + b"\n", "no saved table", id="no line end at the beginning"),
        pytest.param(OCTETS[:-1], "cut short or damaged", id="without the last octet"),
        pytest.param(OCTETS[: len(OCTETS) // 2], "cut short or damaged", id="half of it"),
        pytest.param(OCTETS + b"\n", "cut short or damaged", id="an octet more"),
        pytest.param(OCTETS.replace(b"app", b"abb"), "cut short or damaged", id="another name"),
        pytest.param(OCTETS.replace(b'"serial":7', b'"serial":8'), "cut short or damaged", id="another serial"),
        pytest.param(OCTETS * 2, "cut short or damaged", id="twice"),
        pytest.param(OCTETS.replace(b'"version":1', b'"version":2'), "of another format", id="a later version"),
        pytest.param(OCTETS.replace(b"switchback-zone", b"switchback-none"), "of another format", id="another file"),
        pytest.param(written("other.example.org"), "of zone other.example.org", id="another zone"),
    ],
)
def test_any_other_file_is_refused_with_the_reason(octets: bytes, reason: str) -> None:
    with pytest.raises(SavedTableRefused, match=reason):
        parse_saved(octets, zone=ZONE)


@given(st.integers(0, 2**32))
def test_a_mutated_file_is_refused_or_the_same(seed: int) -> None:
    mutated = mutate(OCTETS, random.Random(seed), others=(written("other.example.org"),))  # noqa: S311
    try:
        found = parse_saved(mutated, zone=ZONE)
    except SavedTableRefused:
        return
    assert (mutated, found.texts) == (OCTETS, TEXTS)


def test_writing_replaces_the_file_that_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_saved(tmp_path / "link", [OCTETS])
    write_saved(tmp_path / "link", [OCTETS])
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "link"]
    assert read_saved(tmp_path / "link", zone=ZONE).texts == TEXTS


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_module, "_SAVE_PAUSE", 0.01)


@pytest.mark.usefixtures("quick")
async def test_without_a_primary_a_restart_answers_with_the_saved_table_at_once(tmp_path: Path) -> None:
    path = tmp_path / "table"
    async with faulty_upstream(newer, first) as primary:
        async with following(primary.endpoint, snapshot=path) as replica:
            await wait_until(path.exists)
        primary.streams = second
        async with following(DEAD, snapshot=path) as replica:
            assert replica.addresses("app.example.org") == ("192.0.2.1",)
            assert (replica.replica.status.serial, replica.replica.restored is not None) == (1, True)
            assert await replica.fail_again()
            assert replica.addresses("app.example.org") == ("192.0.2.1",)
        async with following(primary.endpoint, snapshot=path) as replica:
            await replica.wait_for(2)
            assert replica.addresses("app.example.org") is None
            await wait_until(lambda: read_saved(path, zone=ZONE).serial == 2)
        assert [b"\xfb" in asked.message for asked in primary.asked_streams] == [False, True], "the second is IXFR"


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.write_bytes(OCTETS[:-9]), id="cut"),
        pytest.param(lambda path: path.write_bytes(written("other.example.org")), id="another zone"),
        pytest.param(lambda path: path.write_bytes(written(texts=TEXTS[1:])), id="no control record"),
        pytest.param(lambda path: path.write_bytes(written(texts=())), id="no rows at all"),
        pytest.param(lambda path: path.write_bytes(written(texts=(TEXTS[0], b"{}"))), id="a row that is none"),
        pytest.param(lambda path: path.write_bytes(written(texts=(b'{"format":9,"ttl":5}',))), id="a later format"),
        pytest.param(make_fifo, id="a FIFO"),
        pytest.param(lambda path: path.mkdir(), id="a folder"),
        pytest.param(lambda path: path.symlink_to(path), id="a link to itself"),
    ],
)
async def test_with_an_unusable_file_it_starts_and_follows_its_primary(make: object, tmp_path: Path) -> None:
    path = tmp_path / "table"
    assert callable(make)
    make(path)
    with structlog.testing.capture_logs() as logged:
        async with faulty_upstream(newer, first) as primary, following(primary.endpoint, snapshot=path) as replica:
            assert replica.addresses("app.example.org") is None
            await replica.wait_for(1)
            assert replica.addresses("app.example.org") == ("192.0.2.1",)
    assert [one["event"] for one in logged].count(NOT_USED) == 1


def test_a_file_of_more_than_its_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_table, "LARGEST", 1 << 20)
    path = tmp_path / "table"
    with path.open("wb") as file:
        file.truncate((1 << 20) + 1)
    with pytest.raises(SavedTableRefused, match="larger than 1 MiB"):
        read_saved(path, zone=ZONE)


@pytest.mark.usefixtures("quick")
async def test_a_file_that_cannot_be_written_is_told_once_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "table"
    with structlog.testing.capture_logs() as logged:
        async with faulty_upstream(newer, first) as primary, following(primary.endpoint, snapshot=path) as replica:
            await replica.wait_for(1)
            await wait_until(lambda: any("cannot write" in one["event"] for one in logged))
            primary.streams = second
            replica.notify(2)
            await replica.wait_for(2)
            path.parent.mkdir()
            await wait_until(path.exists)
    assert [one["event"] for one in logged].count("cannot write the snapshot") == 1
