"""One-shot reads: one object, or one whole list, for a program that does not follow changes.

The law: the result is complete, or an ApiError. A list is read in chunks, each within its own deadline; a continue
token that has expired restarts the list, and nothing else is tried again. A caller for whom a refusal is a fact
catches Forbidden, NotFound and Garbled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from sidecar.kubernetes.errors import Garbled, Gone, ServerTrouble
from sidecar.kubernetes.nesting import decode_nested
from sidecar.kubernetes.objects import Collection, Resource, Unreadable
from sidecar.kubernetes.protocol import FAULTS, Decoder, Entry
from sidecar.kubernetes.reading import first_page, read_page
from sidecar.kubernetes.reads import Reads
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace

T = TypeVar("T")
R = TypeVar("R", bound=Resource)

_ATTEMPTS: Final = 3
"""For one list. A continue token lives for at least 5 minutes, so a second restart is rare."""
_MOST_PAGES: Final = 10_000
"""More than any cluster has; a server that hands out continue tokens without end must not keep a command busy."""


async def get_object(client: Reads, path: str, kind: type[T], *, seconds: float = DEFAULT_PACE.list_timeout) -> T:
    """The object at a path. Raises ApiError: NotFound if it does not exist, Garbled if its fields have other types."""
    body = await client.get(path, seconds=seconds)
    try:
        return decode_nested(msgspec.json.Decoder(kind), body)
    except FAULTS as error:
        raise Garbled(str(error)) from error


async def list_all(
    client: Reads,
    collection: Collection[R],
    *,
    pace: Pace = DEFAULT_PACE,
    most: int = 0,
    on_garbled: Callable[[Garbled], None] | None = None,
    on_page: Callable[[int], None] = lambda _: None,
) -> dict[str, R | Unreadable]:
    """Every object of the collection by its key, or about the first `most` of them. Raises ApiError.

    An item without even a name is a Garbled, which is raised or, with `on_garbled`, reported there and left out.
    `on_page` gets the number of objects that were read so far.
    """
    attempt = 1
    while True:
        try:
            return await _list_once(client, collection, pace, most, on_garbled, on_page)
        except Gone:
            if attempt == _ATTEMPTS:
                raise
        attempt += 1


async def _list_once(
    client: Reads,
    collection: Collection[R],
    pace: Pace,
    most: int,
    on_garbled: Callable[[Garbled], None] | None,
    on_page: Callable[[int], None],
) -> dict[str, R | Unreadable]:
    decoder = Decoder(collection.type, collection.annotation_selector)
    found: dict[str, R | Unreadable] = {}
    params = first_page(collection, most or pace.page_size)
    for _ in range(_MOST_PAGES):
        page, following = await read_page(client, collection, decoder, pace, params)
        entries = _decode(decoder, page.items, on_garbled)
        found |= {key: value for key, _, value in entries if value is not None}
        on_page(len(found))
        if following is None or (most and len(found) >= most):
            return found
        params = following
    raise ServerTrouble(f"a list of more than {_MOST_PAGES} chunks")


def _decode(
    decoder: Decoder[R], items: Sequence[msgspec.Raw], on_garbled: Callable[[Garbled], None] | None
) -> list[Entry[R]]:
    try:
        return decoder.decode_items(items)
    except Garbled:
        if on_garbled is None:
            raise
    entries: list[Entry[R]] = []
    for item in items:
        try:
            entries += decoder.decode_items([item])
        except Garbled as error:
            on_garbled(error)
    return entries
