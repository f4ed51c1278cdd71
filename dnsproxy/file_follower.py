"""Follows one file: what it says now, and again whenever it is another file or has other contents.

The law: a file that cannot be used changes nothing and is told of once; what was read last counts until it can.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import structlog
import trio

from dnsproxy.hosts_follower import Mark, file_mark

LOOK_EVERY: Final = 0.5
"""Seconds. A mounted ConfigMap changes by a swapped link, which inotify on the file never sees."""

Value = TypeVar("Value")

log: structlog.stdlib.BoundLogger = structlog.get_logger("dnsproxy.files")


async def follow_file(path: Path, *, read: Callable[[Path], Value], tell: Callable[[Value], None]) -> None:
    """Tell what `read` makes of the file, now and after every change, until cancelled.

    `read` raises OSError or ValueError for a file that cannot be used; the text of the ValueError goes into the log.
    """
    seen: Mark | None = None
    last: Mark | None = None
    trouble = ""
    while True:
        await trio.sleep(LOOK_EVERY)
        mark, before = file_mark(path), last
        last = mark
        # A file that is still being written would be read in half: wait until it rests.
        if mark != before or (mark == seen and not trouble):
            continue
        try:
            value = read(path)
        except (OSError, ValueError) as error:
            # Tried again even if it rests, because a permission changes no mark.
            cause = (error.strerror if isinstance(error, OSError) else None) or str(error)
            if cause != trouble:
                log.warning("cannot use a file; what it said before stays", path=str(path), cause=cause)
            trouble = cause
            continue
        if file_mark(path) != mark:
            continue  # written while it was read
        seen, trouble = mark, ""
        tell(value)


def read_regular_file(path: Path, *, largest: int) -> str:
    """The text of a file, octets that are no UTF-8 replaced. Raises OSError; ValueError for a pipe, or one too large.

    It is for files that may have become anything: to open or to read a pipe would wait for its writer.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("is no regular file")
        content = file.read(largest + 1)
    if len(content) > largest:
        raise ValueError(f"is larger than {largest} octets")
    return content.decode("utf-8", "replace")


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
