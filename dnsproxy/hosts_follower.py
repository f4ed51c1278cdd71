"""Follows a hosts file: read at the start, and again whenever it is another file or has other contents.

The law: a file that cannot be read any more changes nothing; what was read last counts until it can.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import structlog
import trio

from dnsproxy.claims import Claim, Rejection
from dnsproxy.static import parse_hosts_file
from sidecar.errors import StartError

LARGEST: Final = 64 << 20
"""Octets; a file beyond this is no hosts file."""

_LOOK_EVERY = 0.5  # seconds; mounted ConfigMaps change by a swapped link, which inotify on the file never sees

Mark = tuple[int, ...]
Told = Callable[[Sequence[Claim], Sequence[Rejection]], None]


def read_hosts_file(path: Path) -> tuple[list[Claim], list[Rejection]]:
    """The claims of a file. Raises StartError that names it."""
    try:
        return _read(path)
    except (OSError, ValueError) as error:
        raise StartError(f"--hosts-file {path}: {_reason(error)}") from error


async def follow_hosts_file(path: Path, *, seen: Mark, tell: Told) -> None:
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
            claims, rejections = _read(path)
        except (OSError, ValueError) as error:
            if not broken:
                log.warning("cannot read the hosts file; its last contents stay", path=str(path), cause=_reason(error))
            broken = True
            continue
        seen, broken = mark, False
        log.info("hosts file read", path=str(path), names=len(claims), faults=len(rejections))
        tell(claims, rejections)


def file_mark(path: Path) -> Mark:
    """What tells one state of a file from another without reading it; empty where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _read(path: Path) -> tuple[list[Claim], list[Rejection]]:
    if path.stat().st_size > LARGEST:
        raise ValueError(f"larger than {LARGEST >> 20} MiB")
    return parse_hosts_file(path.read_text(encoding="utf-8"), path=str(path))


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"octet {error.start} is not UTF-8"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
