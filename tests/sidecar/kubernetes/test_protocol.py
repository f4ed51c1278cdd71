"""From bytes to entries: any bytes give a value or an ApiError."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.errors import Forbidden, Garbled, Gone, ServerTrouble
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from sidecar.kubernetes.protocol import Decoder, Entry, LineSplitter, in_parts
from tests.kit.faulty_api import bookmark, event, status_object, thing
from tests.kit.rows import failing


class Thing(msgspec.Struct):
    metadata: ObjectMeta


class Loose(msgspec.Struct):
    metadata: ObjectMeta
    spec: Any = None


DECODER = Decoder(Thing)
KEYS = st.sampled_from(["metadata", "items", "name", "namespace", "resourceVersion", "continue", "code", "details"])
VALUES = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)
)
ALPHABET = list(b'{}[]",:\\ \n0123456789truefalsnmdoijcvR\xff\x00')


def decode(decoder: Decoder[Any], body: bytes) -> list[Entry[Any]]:
    """All objects of a page."""
    return decoder.decode_items(decoder.split_page(body).items)


@given(st.binary() | st.lists(st.sampled_from(ALPHABET)).map(bytes))
def test_garbage_is_a_page_or_garbled(body: bytes) -> None:
    """Nothing else is ever raised, and what is raised is safe in a log."""
    message = ""
    try:
        decode(DECODER, body)
    except Garbled as error:
        message = str(error)
    assert message.isascii()
    assert "\n" not in message


@given(VALUES)
def test_json_of_any_shape_is_a_page_or_garbled(value: object) -> None:
    """Neither do shapes that no one expects, in a page or in an event."""
    for body in (json.dumps(value), json.dumps({"metadata": {}, "items": value})):
        try:
            found = decode(DECODER, body.encode())
        except Garbled:
            continue
        assert all(entry.value is not None for entry in found)
    for kind in ("ADDED", "DELETED", "BOOKMARK", "ERROR"):
        try:
            DECODER.decode_events([json.dumps({"type": kind, "object": value}).encode()])
        except Garbled:
            continue


def test_page_has_keys_versions_and_the_way_on() -> None:
    """Null stands for every absent thing."""
    body = {"metadata": {"resourceVersion": "9", "continue": "x"}, "items": [thing("a", "3")]}
    page = DECODER.split_page(json.dumps(body).encode())
    assert (page.version, page.token) == ("9", "x")
    (entry,) = DECODER.decode_items(page.items)
    assert entry[:2] == ("default/a", "3")
    empty = DECODER.split_page(b'{"metadata": {"resourceVersion": null, "continue": null}, "items": null}')
    assert (empty.version, empty.token, empty.items) == ("", "", [])
    assert DECODER.decode_items([]) == []


def test_cluster_wide_object_has_its_name_as_key() -> None:
    """Namespace absent, null or empty."""
    for namespace in ({}, {"namespace": None}, {"namespace": ""}):
        line = event("ADDED", {"metadata": {"name": "a"} | namespace})
        assert DECODER.decode_events([line]).entries[0].key == "a"


def test_events_give_entries_and_where_to_go_on() -> None:
    """A deletion is an entry without a value; the last version wins, a bookmark's too."""
    lines = [event("ADDED", thing("a", "3")), event("DELETED", thing("b", "4")), bookmark("8")]
    batch = DECODER.decode_events(lines)
    assert [entry.key for entry in batch.entries] == ["default/a", "default/b"]
    assert batch.entries[1] == Entry("default/b", "4", None)
    assert (batch.version, batch.bookmarks, batch.error) == ("8", 1, None)


def test_deleted_object_need_not_be_readable() -> None:
    """Its name is enough."""
    metadata = {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "5"}, "spec": 7}
    assert Decoder(Strict).decode_events([event("DELETED", metadata)]).entries == [Entry("n/a", "5", None)]


class Strict(msgspec.Struct):
    metadata: ObjectMeta
    spec: str = ""


def test_unreadable_object_keeps_its_name_and_reason() -> None:
    """And the others of its page keep their place."""
    items = [thing("a") | {"spec": "x"}, thing("b") | {"spec": 7}, thing("c") | {"spec": "y"}]
    entries = decode(Decoder(Strict), json.dumps({"metadata": {}, "items": items}).encode())
    values = [entry.value for entry in entries]
    assert [type(value) for value in values] == [Strict, Unreadable, Strict]
    assert isinstance(values[1], Unreadable)
    assert values[1].metadata.name == "b"
    assert "$.spec" in values[1].reason


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (status_object(410, "Gone"), Gone),
        (status_object(410, "Expired"), Gone),
        (status_object(500, "InternalError", "etcdserver: Too large resource version"), Gone),
        (status_object(403, "Forbidden"), Forbidden),
        (status_object(500, "InternalError"), ServerTrouble),
        ({}, ServerTrouble),
    ],
    ids=["gone", "expired", "from-the-future", "forbidden", "internal", "empty"],
)
def test_error_event_ends_the_batch(status: dict[str, object], kind: type[Exception]) -> None:
    """What came before it counts, what comes after does not."""
    lines = [event("ADDED", thing("a", "3")), event("ERROR", status), event("ADDED", thing("b", "4"))]
    batch = DECODER.decode_events(lines)
    assert isinstance(batch.error, kind)
    assert [entry.key for entry in batch.entries] == ["default/a"]


@given(st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=9), st.data())
def test_lines_do_not_depend_on_the_chunks(lines: list[bytes], data: st.DataObject) -> None:
    """However the stream is cut, the same lines come out; the unfinished one never does."""
    stream = b"".join(line + b"\n" for line in lines) + b"unfinished"
    splitter, found = LineSplitter(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += splitter.feed(stream[:size])
        stream = stream[size:]
    assert found == [line for line in lines if line.strip()]


def test_line_without_end_is_refused() -> None:
    """Something that is no API server must not fill the memory."""
    splitter = LineSplitter()
    splitter.feed(b"x" * splitter.LIMIT)
    with pytest.raises(Garbled, match="more than"):
        splitter.feed(b"x")


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([9], [[9]]),
        ([100], [[100]]),
        ([4, 6], [[4, 6]]),
        ([4, 7], [[4], [7]]),
        ([1, 100, 1], [[1], [100], [1]]),
        ([1, 1, 1, 1], [[1, 1, 1], [1]]),
        ([5, 5, 5, 5, 1], [[5, 5], [5, 5], [1]]),
    ],
    ids=["nothing", "small", "too-large-alone", "just-fit", "too-large-together", "large-between", "many", "refilled"],
)
def test_parts_are_small(sizes: list[int], expected: list[list[int]]) -> None:
    """At most 3 pieces or 10 octets, but at least one piece."""
    parts = in_parts([b"x" * size for size in sizes], most=3, octets=10)
    assert [[len(piece) for piece in part] for part in parts] == expected


def test_an_object_of_any_depth_harms_no_other() -> None:
    """At each limit of the decoder: that of a line, of an object in it, and of its metadata."""

    def check(depth: int) -> None:
        deep = b'{"metadata":{"name":"deep"},"spec":%b1%b}' % (b'{"a":' * depth, b"}" * depth)
        plain = b'{"metadata":{"name":"plain"}}'
        page = b'{"metadata":{},"items":[%b,%b]}' % (deep, plain)
        lines = [b'{"type":"%b","object":%b}' % (kind, deep) for kind in (b"ADDED", b"MODIFIED", b"DELETED")]
        for decoder in (DECODER, Decoder(Loose)):
            assert [entry.key for entry in decode(decoder, page)] == ["deep", "plain"]
            batch = decoder.decode_events([*lines, b'{"type":"ADDED","object":%b}' % plain])
            assert [entry.key for entry in batch.entries] == ["deep", "deep", "deep", "plain"]
            assert batch.error is None

    assert failing(check, [200, *range(950, 1_000), 5_000, 10_000]) == []
