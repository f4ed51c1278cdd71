"""One worker process: its start, the stream of its reports, and its end.

The law: a process that is started here has ended when its block ends. Tested in test_supervisor.py.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import structlog
import trio

from proxy.serve.silence import LOOK_SECONDS, Activity, Silence, parse_activity
from proxy.serve.worker_reports import IGNORE, LISTEN, EndedBatch, Report, parse_line
from proxy.serve.worker_settings import WorkerSettings, format_worker_settings
from proxy.tap.tap import Tap

_EXIT_SECONDS: Final = 5.0
"""Seconds for workers to reset their remaining connections after the grace; then they are killed."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


@contextlib.asynccontextmanager
async def worker_process(worker: WorkerSettings) -> AsyncIterator[tuple[trio.Process, trio.SocketStream]]:
    """A worker process and the stream of its reports; the process has ended when the block ends."""
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setblocking(False)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        command = [sys.executable, "-m", "proxy.serve.worker_start", str(theirs.fileno())]
        try:
            # In its own session: only the supervisor gets Ctrl-C, and passes it on.
            process = await trio.lowlevel.open_process(command, pass_fds=(theirs.fileno(),), start_new_session=True)
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
    try:
        async with stream:
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.send_all(format_worker_settings(worker))
            yield process, stream
    finally:
        # To a worker that is draining, a second SIGTERM means: reset the remaining connections.
        process.terminate()
        with trio.move_on_after(_EXIT_SECONDS, shield=True):
            await process.wait()
        if process.returncode is None:
            process.kill()
            with trio.move_on_after(_EXIT_SECONDS, shield=True):
                await process.wait()


async def pass_on_stop(stopping: trio.Event, process: trio.Process) -> None:
    """Send SIGTERM to a worker when `stopping` is set."""
    await stopping.wait()
    process.terminate()


async def pass_on_listening(tap: Tap, stream: trio.SocketStream) -> None:
    """Have a worker send the connections that end while the tap has a listener."""
    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while True:
            changed = tap.changed
            await stream.send_all(LISTEN if tap.listening else IGNORE)
            await changed.wait()


async def read_reports(
    stream: trio.SocketStream,
    take: Callable[[Report], None],
    *,
    take_ended: Callable[[EndedBatch], None] = lambda _: None,
) -> None:
    """Read the reports of a worker, and its ended connections, until its end."""
    received = b""
    with contextlib.suppress(trio.BrokenResourceError):
        while more := await stream.receive_some():
            *lines, received = (received + more).split(b"\n")
            for line in lines:
                parsed = parse_line(line)
                if isinstance(parsed, Report):
                    take(parsed)
                else:
                    take_ended(parsed)


async def kill_when_hung(process: trio.Process, silence: Silence, *, number: int) -> None:
    """Kill a worker that has been silent for too long. SIGTERM would not do: a hung worker handles no signal."""
    while not silence.is_hung:
        before = trio.current_time()
        await trio.sleep(LOOK_SECONDS)
        activity = _read_activity(process.pid) if silence.begins else None
        silence.look(elapsed=trio.current_time() - before, activity=activity)
    log.error("worker silent, killing it", worker=number, pid=process.pid)
    process.kill()


def _read_activity(pid: int) -> Activity | None:
    # The number still belongs to this process: nothing else waits for it.
    try:
        return parse_activity(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError):
        return None
