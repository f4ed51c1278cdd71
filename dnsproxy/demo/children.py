"""The programs of the story that run as processes of their own.

The law: a child ends with the block that started it, whatever happens; one that ends earlier is an error that shows
what it said last.
"""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio

from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import ExitStatus, StartError

PATIENCE: Final = 15
_LOOK_EVERY: Final = 0.02
_GRACE: Final = 3
_LAST_WORDS: Final = 600


@asynccontextmanager
async def run_child(command: Sequence[str]) -> AsyncIterator[trio.Process]:
    """A process that runs as long as the block."""
    async with trio.open_nursery() as nursery:
        child: trio.Process = await nursery.start(_run, command)
        try:
            yield child
        finally:
            nursery.cancel_scope.cancel()


async def _run(command: Sequence[str], *, task_status: trio.TaskStatus[trio.Process]) -> None:
    async with trio.open_nursery() as nursery:
        child = await trio.lowlevel.open_process(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = bytearray()
        nursery.start_soon(_listen, child, said)
        try:
            task_status.started(child)
            await child.wait()
            words = bytes(said[-_LAST_WORDS:]).decode("utf-8", "replace").strip()
            raise StartError(
                f"{command[0]} ended by itself with status {child.returncode}: {words}", status=ExitStatus.UNKNOWN
            )
        finally:
            with trio.CancelScope(shield=True):
                await _end(child)


async def _listen(child: trio.Process, said: bytearray) -> None:
    """Keep the pipe empty, or the child would block on it, and its last words for an error."""
    if child.stderr is not None:
        async for chunk in child.stderr:
            said += chunk
            del said[:-_LAST_WORDS]


async def _end(child: trio.Process) -> None:
    if child.returncode is None:
        child.terminate()
    with trio.move_on_after(_GRACE):
        await child.wait()
    if child.returncode is None:
        child.kill()
        await child.wait()


async def wait_for_listener(endpoint: Endpoint) -> None:
    """Wait until something accepts connections there. Raises StartError when nothing does."""
    with trio.move_on_after(PATIENCE):
        while True:
            try:
                stream = await trio.open_tcp_stream(endpoint.host, endpoint.port)
            except OSError:
                await trio.sleep(_LOOK_EVERY)
            else:
                await stream.aclose()
                return
    raise StartError(f"nothing listens on {endpoint} after {PATIENCE} s", status=ExitStatus.UNKNOWN)
