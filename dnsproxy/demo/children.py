"""Runs the story's programs that are separate processes.

The law: a child always ends with the block that started it. A child that exits earlier raises an error with its last
output.
"""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio

from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

PATIENCE: Final = 15
_LOOK_EVERY: Final = 0.02
_GRACE: Final = 3
_LAST_OUTPUT: Final = 600


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
        output = bytearray()
        nursery.start_soon(_read_output, child, output)
        try:
            task_status.started(child)
            await child.wait()
            last = bytes(output[-_LAST_OUTPUT:]).decode("utf-8", "replace").strip()
            raise StartError(
                f"{command[0]} exited early with status {child.returncode}: {last}", status=ExitStatus.UNKNOWN
            )
        finally:
            with trio.CancelScope(shield=True):
                await _end(child)


async def _read_output(child: trio.Process, output: bytearray) -> None:
    """Empty the pipe, on which the child would block, and keep its last output for an error."""
    if child.stderr is not None:
        async for chunk in child.stderr:
            output += chunk
            del output[:-_LAST_OUTPUT]


async def _end(child: trio.Process) -> None:
    if child.returncode is None:
        child.terminate()
    with trio.move_on_after(_GRACE):
        await child.wait()
    if child.returncode is None:
        child.kill()
        await child.wait()


async def wait_for_listener(endpoint: Endpoint) -> None:
    """Wait until a program accepts connections there. Raises StartError after PATIENCE seconds."""
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
