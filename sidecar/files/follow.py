"""Follows one file: reports its content, and again whenever the file or its content is replaced.

The law: an unusable file changes nothing and is logged once; the last good content counts until the file is usable.
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
"""Identifies one state of a file without reading it; empty if there is no file."""

LOOK_EVERY: Final = 0.5
"""Seconds. A mounted ConfigMap changes by a replaced symbolic link, which inotify on the file does not report."""

Value = TypeVar("Value")

log: structlog.stdlib.BoundLogger = structlog.get_logger("dnsproxy.files")


async def follow_file(
    path: Path,
    *,
    read: Callable[[Path], Awaitable[Value]],
    on_change: Callable[[Value], Awaitable[None]],
    seen: Mark | None = None,
) -> None:
    """Report the result of `read` to `on_change` after every change, until cancelled.

    `seen` is the state that the caller has already read; None reports the present content too. `read` raises OSError or
    ValueError for an unusable file; the text of the ValueError goes into the log.
    """
    last = seen
    trouble = ""
    while True:
        await trio.sleep(LOOK_EVERY)
        mark, before = file_mark(path), last
        last = mark
        # A file that is still being written would be read in part: wait until its mark stays the same.
        if mark != before or (mark == seen and not trouble):
            continue
        try:
            value = await read(path)
        except (OSError, ValueError) as error:
            # Tried again even if the mark stays the same, because a new permission does not change it.
            cause = reason_of(error)
            if cause != trouble:
                log.warning("cannot use a file; its last good content stays in use", path=str(path), cause=cause)
            trouble = cause
            continue
        if file_mark(path) != mark:
            continue  # written while it was read
        seen, trouble = mark, ""
        await on_change(value)


def file_mark(path: Path) -> Mark:
    """The current state of a file."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def reason_of(error: OSError | ValueError) -> str:
    """The part of an error that a person needs."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def read_regular_file(path: Path, *, largest: int) -> str:
    """The text of a file, with invalid UTF-8 replaced. Raises OSError, and ValueError for a file that is too large."""
    with open_regular_file(path) as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise ValueError(f"is larger than {largest} octets")
    return content.decode("utf-8", "replace")


def open_regular_file(path: Path) -> BinaryIO:
    """Open a file that may have become anything, without waiting: opening a pipe would wait for its writer.

    Raises OSError, and ValueError if it is not a regular file.
    """
    file: BinaryIO = open(path, "rb", opener=_open_at_once)  # noqa: SIM115  # the caller's to close
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise ValueError("is no regular file")


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
