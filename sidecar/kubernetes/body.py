"""Bodies of responses: in the chunks they come in, inflated, and ended in order wherever their reader stops.

The law: nothing of a body is left to the garbage collector. What a body raises is httpx2's, zlib's or ServerTrouble.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Final

import httpx2
import trio

from sidecar.kubernetes.errors import ServerTrouble, shown

_GZIP: Final = 16 + zlib.MAX_WBITS


@asynccontextmanager
async def body_of(response: httpx2.Response) -> AsyncIterator[AsyncIterator[bytes]]:
    """The body of a streamed response, for the time of a block."""
    encoding = response.headers.get("content-encoding", "identity").lower()
    async with _ending(response.aiter_raw()) as raw, aclosing(_inflated(raw, encoding)) as chunks:
        yield chunks


@asynccontextmanager
async def _ending(chunks: AsyncGenerator[bytes]) -> AsyncIterator[AsyncGenerator[bytes]]:
    """A body that may be left in the middle.

    Closed at its `yield`, httpx's generator would leave those within it to the garbage collector, which warns and ends
    them at some later time (PEP 533). A cancellation of its next wait ends them all.
    """
    async with aclosing(chunks), AsyncExitStack() as stack:
        stack.push_async_callback(_cut, chunks)
        yield chunks


async def _cut(chunks: AsyncGenerator[bytes]) -> None:
    with trio.CancelScope() as scope, suppress(httpx2.HTTPError):
        scope.cancel()
        while await anext(chunks, None) is not None:
            pass


async def _inflated(chunks: AsyncIterator[bytes], encoding: str) -> AsyncGenerator[bytes]:
    """Raises ServerTrouble for what was not compressed as it says (RFC 9110, section 8.4)."""
    if encoding not in ("gzip", "identity"):
        raise ServerTrouble(f"a body comes as {shown(encoding.encode())}, which nobody asked for")
    inflater = zlib.decompressobj(wbits=_GZIP)
    async for chunk in chunks:
        yield inflater.decompress(chunk) if encoding == "gzip" else chunk
    if encoding == "gzip" and not inflater.eof:
        raise ServerTrouble("a compressed body is cut")
