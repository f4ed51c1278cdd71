"""Follows a hosts file: reads it at the start, and again after it was replaced or changed.

The law: if the file becomes unreadable, nothing changes; the last content counts until the file is readable again. Only
a content that the file had as a whole is used: all of it is read first, and read again if the file changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

import structlog
import trio

from dnsproxy.sources.hosts_lines import numbered_lines
from dnsproxy.sources.static_names import HostsFile, parse_hosts_file
from sidecar.files.follow import LEASE_SECONDS, Mark, Reloads, follow_file, read_octets, read_settled, reason_of
from sidecar.loop.slices import in_slices
from sidecar.values.errors import StartError

LARGEST: Final = 64 << 20
"""Octets; a larger file is refused."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("dnsproxy.hosts_file")


async def read_hosts_file(path: Path) -> tuple[HostsFile, Mark]:
    """Read the file at the start, when it may be a pipe. Returns its content and state.

    Raises StartError, which names the file.
    """
    read = partial(read_settled, path, largest=LARGEST)
    try:
        octets, mark = await trio.to_thread.run_sync(read, abandon_on_cancel=True)
    except (OSError, ValueError) as error:
        raise StartError(f"--hosts-file {path}: {reason_of(error)}") from error
    return await _parse(path, octets), mark


async def follow_hosts_file(
    path: Path, *, seen: Mark, tell: Callable[[HostsFile], Awaitable[None]], reloads: Reloads | None = None
) -> None:
    """Call `tell` after every change since the state `seen` and every request of `reloads`, until cancelled."""

    async def read(path: Path) -> HostsFile:
        # Our own publisher may write to the same file.
        octets_of = partial(read_octets, path, largest=LARGEST, patience=LEASE_SECONDS)
        octets = await trio.to_thread.run_sync(octets_of, abandon_on_cancel=True)
        return await _parse(path, octets)

    async def use(found: HostsFile) -> None:
        log.info("hosts file read", path=str(path), names=len(found.claims), faults=found.faults)
        await tell(found)

    await follow_file(path, read=read, on_change=use, seen=seen, reloads=reloads)


async def _parse(path: Path, octets: bytes) -> HostsFile:
    return await in_slices(parse_hosts_file(numbered_lines(octets), path=str(path)))
