"""The requests of list and watch; those with many results are tasks that put them into a channel.

The law: bytes in, pages or lines out, and last the ApiError, if one ended the request; this module keeps no state. The
channel between reading and reporting lets the next page arrive while one is processed, and lets changes that arrive
together be reported together, however they were framed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import trio

from sidecar.kubernetes.errors import ApiError, Oversized
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection, Resource, Unreadable
from sidecar.kubernetes.protocol import Decoder, LineSplitter, Page
from sidecar.kubernetes.reads import Reads
from sidecar.kubernetes.watch_policy import Pace, next_page_size

T = TypeVar("T", bound=Resource)

_FEWER: Final = 8
"""A chunk that is too large is requested again with so many times fewer objects."""


async def read_pages(
    client: ApiClient,
    collection: Collection[T],
    decoder: Decoder[T],
    pace: Pace,
    send: trio.MemorySendChannel[Page | ApiError],
) -> None:
    """Put the chunks of one whole list into the channel; the next is requested as soon as one is taken."""
    params: dict[str, str] | None = first_page(collection, pace.page_size)
    async with send:
        try:
            while params is not None:
                page, params = await read_page(client, collection, decoder, pace, params)
                await send.send(page)
        except ApiError as error:
            await send.send(error)


def first_page(collection: Collection[T], limit: int) -> dict[str, str]:
    """The query parameters for the first chunk of a list."""
    return _params(collection, limit=str(limit))


async def read_page(
    client: Reads, collection: Collection[T], decoder: Decoder[T], pace: Pace, params: dict[str, str]
) -> tuple[Page, dict[str, str] | None]:
    """One chunk of a list, and the query parameters for the next; None after the last chunk. Raises ApiError."""
    limit = int(params["limit"])
    while True:
        largest = pace.most_octets if limit > 1 else LineSplitter.LIMIT
        params = params | {"limit": str(limit)}
        try:
            body = await client.get(collection.path, params, seconds=pace.list_timeout, largest=largest)
            break
        except Oversized:
            # Anyone may create objects that are a hundred times as large as the others.
            if limit == 1:
                raise
            limit = max(1, limit // _FEWER)
    # Joining the pieces of the body has taken a moment already.
    await trio.lowlevel.checkpoint()
    page = decoder.split_page(body)
    if not page.token:
        return page, None
    size = next_page_size(octets=len(body), objects=len(page.items), pace=pace)
    return page, params | {"continue": page.token, "limit": str(size)}


async def read_version(client: ApiClient, collection: Collection[T], decoder: Decoder[T], pace: Pace) -> str:
    """The present version of the collection, from a consistent list of one object. Raises ApiError.

    Without `resourceVersion`, because a watch cache would answer a list from version 0, and some servers ignore the
    limit then.
    """
    body = await client.get(collection.path, _params(collection, limit="1"), seconds=pace.list_timeout)
    return decoder.split_page(body).version


async def read_object(
    client: ApiClient, collection: Collection[T], decoder: Decoder[T], pace: Pace, key: str
) -> T | Unreadable | None:
    """The object `NAMESPACE/NAME` of a collection as it is now, or None. RBAC: list. Raises ApiError."""
    namespace, _, name = key.partition("/")
    above, _, plural = collection.path.rpartition("/")
    selectors = (collection.field_selector, f"metadata.name={name}")
    params = _params(collection, limit="1") | {"fieldSelector": ",".join(filter(None, selectors))}
    body = await client.get(f"{above}/namespaces/{namespace}/{plural}", params, seconds=pace.list_timeout)
    entries = decoder.decode_items(decoder.split_page(body).items)
    return next((entry.value for entry in entries if entry.key == key), None)


async def read_watch(
    client: ApiClient,
    collection: Collection[T],
    version: str,
    pace: Pace,
    on_contact: Callable[[], None],
    send: trio.MemorySendChannel[list[bytes] | ApiError],
) -> None:
    """Put the complete lines of one watch into the channel, as many as each chunk has."""
    params = _params(
        collection,
        watch="true",
        allowWatchBookmarks="true",
        resourceVersion=version,
        timeoutSeconds=str(max(1, round(pace.watch_timeout))),
    )
    splitter = LineSplitter()
    async with send:
        try:
            async with client.stream(collection.path, params, seconds=pace.watch_timeout + pace.watch_grace) as chunks:
                on_contact()
                async for chunk in chunks:
                    on_contact()
                    await send.send(splitter.feed(chunk))
        except ApiError as error:
            await send.send(error)


def _params(collection: Collection[T], **params: str) -> dict[str, str]:
    selectors = {"labelSelector": collection.label_selector, "fieldSelector": collection.field_selector}
    return params | {name: selector for name, selector in selectors.items() if selector}
