"""Bodies of responses: chunk by chunk, decompressed, and closed properly wherever their reader stops.

The law: no generator is left for the garbage collector to close. A body raises errors of httpx2 or zlib, or
ServerTrouble.
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
    """A body that may be abandoned in the middle.

    If httpx's generator is closed at its `yield`, it leaves its inner generators to the garbage collector, which warns
    and closes them later (PEP 533). Cancelling its next wait closes them all.
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
    """Raises ServerTrouble if the body does not have the encoding of its header (RFC 9110, section 8.4)."""
    if encoding not in ("gzip", "identity"):
        raise ServerTrouble(f"a body is encoded as {shown(encoding.encode())}, which was not requested")
    inflater = zlib.decompressobj(wbits=_GZIP)
    async for chunk in chunks:
        yield inflater.decompress(chunk) if encoding == "gzip" else chunk
    if encoding == "gzip" and not inflater.eof:
        raise ServerTrouble("a compressed body is truncated")
