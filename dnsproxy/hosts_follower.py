"""Follows a hosts file: read at the start, and again whenever it is another file or has other contents.

The law: a file that cannot be read any more changes nothing; what was read last counts until it can.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import structlog
import trio

from dnsproxy.static import HostsFile, parse_hosts_file
from sidecar.errors import StartError
from sidecar.slices import in_slices

LARGEST: Final = 64 << 20
"""Octets; a file beyond this is no hosts file."""

_LOOK_EVERY = 0.5  # seconds; mounted ConfigMaps change by a swapped link, which inotify on the file never sees
_NO_TEXT = re.compile("[\udc80-\udcff]")

Mark = tuple[int, ...]
Tell = Callable[[HostsFile], Awaitable[None]]


async def read_hosts_file(path: Path) -> HostsFile:
    """What a file says. Raises StartError that names it."""
    try:
        return await _read(path)
    except (OSError, ValueError) as error:
        raise StartError(f"--hosts-file {path}: {_reason(error)}") from error


async def follow_hosts_file(path: Path, *, seen: Mark, tell: Tell) -> None:
    """Tell of every change since the state `seen` until cancelled."""
    log = structlog.get_logger("dnsproxy.hosts_file")
    broken = False
    last = seen
    while True:
        await trio.sleep(_LOOK_EVERY)
        mark, before = file_mark(path), last
        last = mark
        # A file that is still being written would be read in half: wait until it rests.
        if mark != before or (mark == seen and not broken):
            continue
        try:
            found = await _read(path)
        except (OSError, ValueError) as error:
            if not broken:
                log.warning("cannot read the hosts file; its last contents stay", path=str(path), cause=_reason(error))
            broken = True
            continue
        if file_mark(path) != mark:
            continue  # written while it was read
        seen, broken = mark, False
        log.info("hosts file read", path=str(path), names=len(found.claims), faults=len(found.rejections))
        await tell(found)


def file_mark(path: Path) -> Mark:
    """What tells one state of a file from another without reading it; empty where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


async def _read(path: Path) -> HostsFile:
    return await in_slices(parse_hosts_file(_lines(path), path=str(path)))


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file. Raises OSError, and ValueError for a large one or at the first line that is not UTF-8."""
    # Octets that are no UTF-8 come as surrogates: so it can be said where they are, without reading all at once.
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        if os.fstat(file.fileno()).st_size > LARGEST:
            raise ValueError(f"larger than {LARGEST >> 20} MiB")
        for number, line in enumerate(file, 1):
            if _NO_TEXT.search(line):
                raise ValueError(f"line {number} is not UTF-8")
            yield line


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
