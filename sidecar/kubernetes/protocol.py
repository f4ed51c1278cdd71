"""The format of list and watch: pages and watch lines in, entries out.

The law: for any bytes the result is a value or a Garbled. An object with fields of a wrong type becomes Unreadable and
affects no other object. Format: https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from sidecar.kubernetes.annotation_filter import AnnotationFilter
from sidecar.kubernetes.errors import ApiError, Garbled, Status, error_from_status, shown
from sidecar.kubernetes.nesting import cut_deep, decode_nested
from sidecar.kubernetes.objects import ObjectMeta, Resource, Unreadable, key_of
from sidecar.kubernetes.selector import Selector

T = TypeVar("T", bound=Resource)
B = TypeVar("B", bound=Sized)

FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions of decoding foreign text."""


class Entry(NamedTuple, Generic[T]):
    """One object of a page, or one change of a watch."""

    key: str
    version: str
    """Opaque: only compared for equality."""
    value: T | Unreadable | None
    """None: deleted, or left out by the selector."""


@dataclass(frozen=True, slots=True)
class Page:
    """One chunk of a list."""

    items: list[msgspec.Raw]
    """Not decoded yet: a chunk may be large, so it is decoded in parts, with other tasks in between."""
    version: str
    """The resource version of the whole list; a watch starts there."""
    token: str
    """The continue token of the next chunk; empty after the last."""


@dataclass(slots=True)
class Batch(Generic[T]):
    """Watch lines that came together."""

    entries: list[Entry[T]] = field(default_factory=list)
    version: str = ""
    """The resource version for a new watch; empty if these lines have none."""
    bookmarks: int = 0
    unknown: int = 0
    """Events of an unknown type, from a newer API server."""
    error: ApiError | None = None
    """From the ERROR event that ended the lines."""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str | None = None
    token: str | None = msgspec.field(default=None, name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Bare(msgspec.Struct):
    metadata: ObjectMeta


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class Decoder(Generic[T]):
    """Decodes one kind. Its only state are msgspec's decoders, which are expensive to make."""

    def __init__(self, kind: type[T], selector: Selector | None = None) -> None:
        """`selector`: over annotations, Collection.annotation_selector."""
        self._filter = AnnotationFilter(selector) if selector is not None else None
        self._list = msgspec.json.Decoder(_List)
        self._items: msgspec.json.Decoder[list[T]] = _decoder_of_many(kind)
        self._item = msgspec.json.Decoder(kind)
        self._bare = msgspec.json.Decoder(_Bare)
        self._event = msgspec.json.Decoder(_Event)
        self._status = msgspec.json.Decoder(Status)

    def split_page(self, body: bytes) -> Page:
        """One response to a list request; takes a millisecond for 2 MB. Raises Garbled if it is not a list."""
        try:
            page = decode_nested(self._list, body)
        except FAULTS as error:
            raise Garbled(f"not a list ({error}): {shown(body)}") from error
        return Page(page.items or [], page.metadata.resource_version or "", page.metadata.token or "")

    def decode_items(self, items: Sequence[msgspec.Raw]) -> list[Entry[T]]:
        """Some objects of a page. Raises Garbled if one is not an object."""
        body = b"[%b]" % b",".join(items)
        try:
            return self._decode_items(body, items)
        except FAULTS as error:
            raise Garbled(f"not a list ({error}): {shown(body)}") from error

    def decode_events(self, lines: Iterable[bytes]) -> Batch[T]:
        """Complete lines of a watch, up to its ERROR event if there is one. Raises Garbled for garbage."""
        batch: Batch[T] = Batch()
        for line in lines:
            try:
                self._decode_event(line, batch)
            except FAULTS as error:
                raise Garbled(f"not a watch event ({error}): {shown(line)}") from error
            if batch.error is not None:
                break
        return batch

    def _decode_items(self, body: bytes, items: Iterable[msgspec.Raw]) -> list[Entry[T]]:
        if self._filter is not None:
            return [self._entry(raw) for raw in items]
        try:
            values = self._items.decode(body)
        except FAULTS:
            # Rare, so the fast path does not pay for it: decode one by one, to find the object with the error.
            return [self._entry(raw) for raw in items]
        return [Entry(key_of(value.metadata), value.metadata.resource_version, value) for value in values]

    def _entry(self, raw: msgspec.Raw) -> Entry[T]:
        try:
            return self._read(raw)
        except RecursionError:
            return self._read(msgspec.Raw(cut_deep(bytes(raw))))

    def _read(self, raw: msgspec.Raw) -> Entry[T]:
        try:
            if self._filter is not None and (left_out := self._filter.left_out(raw)) is not None:
                return Entry(key_of(left_out), left_out.resource_version, None)
            value: T | Unreadable = self._item.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            value = Unreadable(self._bare.decode(raw).metadata, shown(str(error).encode()))
        return Entry(key_of(value.metadata), value.metadata.resource_version, value)

    def _decode_event(self, line: bytes, batch: Batch[T]) -> None:
        event = decode_nested(self._event, line)
        match event.type:
            case "ADDED" | "MODIFIED":
                batch.entries.append(self._entry(event.object))
                batch.version = batch.entries[-1].version
            case "DELETED":
                # This is the resource version of the deletion, so a watch may continue from it.
                metadata = decode_nested(self._bare, event.object).metadata
                batch.entries.append(Entry(key_of(metadata), metadata.resource_version, None))
                batch.version = metadata.resource_version
            case "BOOKMARK":
                batch.version = _bookmarked(event.object)
                batch.bookmarks += 1
            case "ERROR":
                batch.error = error_from_status(self._status.decode(event.object))
            case _:
                batch.unknown += 1


def in_parts(pieces: Sequence[B], *, most: int, octets: int) -> Iterator[Sequence[B]]:
    """The pieces in their order, in parts of at most so many, and of at most so many octets unless it is one piece."""
    start = size = 0
    for number, piece in enumerate(pieces):
        size += len(piece)
        if number > start and (size > octets or number - start >= most):
            yield pieces[start:number]
            start, size = number, len(piece)
    if start < len(pieces):
        yield pieces[start:]


class LineSplitter:
    """Splits a stream of octets into lines; the unfinished line of a broken stream is never returned."""

    LIMIT: Final = 32 << 20
    """Octets in one line. etcd accepts objects of 1.5 MiB; as JSON they are larger, but never this large."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes. Raises Garbled for a line longer than LIMIT."""
        if b"\n" not in chunk:
            self._rest += chunk
            if len(self._rest) > self.LIMIT:
                raise Garbled(f"a watch event of more than {self.LIMIT} octets")
            return []
        *lines, rest = (bytes(self._rest) + chunk).split(b"\n")
        self._rest = bytearray(rest)
        return [line for line in lines if line.strip()]


class _BookmarkMeta(msgspec.Struct, rename="camel"):
    resource_version: str


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta


def _bookmarked(raw: msgspec.Raw) -> str:
    """A bookmark is an object with only a resource version: it has no name."""
    return msgspec.json.decode(raw, type=_Bookmark).metadata.resource_version


def _decoder_of_many(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(types.GenericAlias(list, (kind,)))
