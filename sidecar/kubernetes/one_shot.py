"""One whole list, for whoever wants to know what there is and does not stay to hear of changes.

The law: all of it or the error that ended it; nothing is tried again.
"""

from __future__ import annotations

from typing import TypeVar

import trio

from sidecar.kubernetes.errors import ApiError
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection, Resource, Unreadable
from sidecar.kubernetes.protocol import Decoder, Entry, Page
from sidecar.kubernetes.reading import read_pages
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace

T = TypeVar("T", bound=Resource)


async def list_all(
    client: ApiClient, collection: Collection[T], *, pace: Pace = DEFAULT_PACE
) -> dict[str, T | Unreadable]:
    """Every object of the collection by its key. Raises ApiError."""
    decoder = Decoder(collection.type)
    found: dict[str, T | Unreadable] = {}
    failure: ApiError | None = None
    send, receive = trio.open_memory_channel[Page | ApiError](0)
    async with receive, trio.open_nursery() as nursery:
        nursery.start_soon(read_pages, client, collection, decoder, pace, send)
        async for page in receive:
            try:
                entries = _entries(decoder, page)
            except ApiError as error:
                failure = error
                nursery.cancel_scope.cancel()
                break
            found |= {key: value for key, _, value in entries if value is not None}
    if failure is not None:
        raise failure
    return found


def _entries(decoder: Decoder[T], page: Page | ApiError) -> list[Entry[T]]:
    if isinstance(page, ApiError):
        raise page
    return decoder.decode_items(page.items)
