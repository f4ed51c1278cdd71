"""Follows one file: what it says now, and again whenever it is another file or has other contents.

The law: a file that cannot be used changes nothing and is told of once; what was read last counts until it can.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import structlog
import trio

Mark = tuple[int, ...]
"""What tells one state of a file from another without reading it; empty where there is none."""

LOOK_EVERY: Final = 0.5
"""Seconds. A mounted ConfigMap changes by a swapped link, which inotify on the file never sees."""

Value = TypeVar("Value")

log: structlog.stdlib.BoundLogger = structlog.get_logger("dnsproxy.files")


async def follow_file(
    path: Path,
    *,
    read: Callable[[Path], Awaitable[Value]],
    tell: Callable[[Value], Awaitable[None]],
    seen: Mark | None = None,
) -> None:
    """Tell what `read` makes of the file after every change since the state `seen` until cancelled; None: and now.

    `read` raises OSError or ValueError for a file that cannot be used; the text of the ValueError goes into the log.
    """
    last = seen
    trouble = ""
    while True:
        await trio.sleep(LOOK_EVERY)
        mark, before = file_mark(path), last
        last = mark
        # A file that is still being written would be read in half: wait until it rests.
        if mark != before or (mark == seen and not trouble):
            continue
        try:
            value = await read(path)
        except (OSError, ValueError) as error:
            # Tried again even if it rests, because a permission changes no mark.
            cause = reason_of(error)
            if cause != trouble:
                log.warning("cannot use a file; what it said before stays", path=str(path), cause=cause)
            trouble = cause
            continue
        if file_mark(path) != mark:
            continue  # written while it was read
        seen, trouble = mark, ""
        await tell(value)


def file_mark(path: Path) -> Mark:
    """The present state of a file."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def reason_of(error: OSError | ValueError) -> str:
    """What a person needs to read of it."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def read_regular_file(path: Path, *, largest: int) -> str:
    """The text of a file, octets that are no UTF-8 replaced. Raises OSError; ValueError for one that is too large."""
    with open_regular_file(path) as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise ValueError(f"is larger than {largest} octets")
    return content.decode("utf-8", "replace")


def open_regular_file(path: Path) -> BinaryIO:
    """For files that may have become anything: to open or to read a pipe would wait for its writer.

    Raises OSError; ValueError for what is no regular file.
    """
    file: BinaryIO = open(path, "rb", opener=_open_at_once)  # noqa: SIM115  # the caller's to close
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise ValueError("is no regular file")


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
