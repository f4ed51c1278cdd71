"""Follows a hosts file: reads it at the start, and again after it was replaced or changed.

The law: if the file becomes unreadable, nothing changes; the last content counts until the file is readable again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Final, TextIO

import structlog

from dnsproxy.sources.static_names import HostsFile, parse_hosts_file
from sidecar.files.follow import Mark, follow_file, open_regular_file, reason_of
from sidecar.loop.slices import in_slices
from sidecar.values.errors import StartError

LARGEST: Final = 64 << 20
"""Octets; a larger file is refused."""

_NO_TEXT: Final = re.compile("[\udc80-\udcff]")
# Octets that are not UTF-8 become surrogates, so that the line is known without reading the whole file at once.
_ERRORS: Final = "surrogateescape"

log: structlog.stdlib.BoundLogger = structlog.get_logger("dnsproxy.hosts_file")


async def read_hosts_file(path: Path) -> HostsFile:
    """Read the file at the start; it may be a pipe then. Raises StartError, which names it."""
    try:
        return await _parse(path, path.open(encoding="utf-8", errors=_ERRORS))
    except (OSError, ValueError) as error:
        raise StartError(f"--hosts-file {path}: {reason_of(error)}") from error


async def follow_hosts_file(path: Path, *, seen: Mark, tell: Callable[[HostsFile], Awaitable[None]]) -> None:
    """Call `tell` after every change since the state `seen`, until cancelled."""

    async def read(path: Path) -> HostsFile:
        return await _parse(path, TextIOWrapper(open_regular_file(path), encoding="utf-8", errors=_ERRORS))

    async def use(found: HostsFile) -> None:
        log.info("hosts file read", path=str(path), names=len(found.claims), faults=len(found.rejections))
        await tell(found)

    await follow_file(path, read=read, on_change=use, seen=seen)


async def _parse(path: Path, file: TextIO) -> HostsFile:
    with file:
        return await in_slices(parse_hosts_file(_lines(file), path=str(path)))


def _lines(file: TextIO) -> Iterator[str]:
    """The lines of a file. Raises OSError, and ValueError for a large one or at the first line that is not UTF-8."""
    if os.fstat(file.fileno()).st_size > LARGEST:
        raise ValueError(f"larger than {LARGEST >> 20} MiB")
    for number, line in enumerate(file, 1):
        if _NO_TEXT.search(line):
            raise ValueError(f"line {number} is not UTF-8")
        yield line
