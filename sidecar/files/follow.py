"""Follows one file: reports its content, and again whenever the file or its content is replaced.

The law: an unusable file changes nothing and is logged once; the last good content counts until the file is usable.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import structlog
import trio

from sidecar.values.text import message_of

Mark = tuple[int, ...]
"""Identifies one state of a file without reading it; empty if there is no file."""

LOOK_EVERY: Final = 0.5
"""Seconds. A mounted ConfigMap changes by a replaced symbolic link, which inotify on the file does not report."""

LEASE_SECONDS: Final = 1.0
"""The patience with a program that has a lease (fcntl(2)) on a file, as `dnsproxy publish-hosts` while it writes."""
_LEASE_LOOK: Final = 0.005
_INODE: Final = 2
"""The fields of a Mark that say which file it is."""
_REPLACED: Final = 3
"""Looks that found another file, without one between them that found the same."""
_ATTEMPTS: Final = 5
"""Readings of a file that changes meanwhile."""

Value = TypeVar("Value")


class Reloads:
    """Requests to read all followed files again, whatever their marks say."""

    def __init__(self) -> None:
        self.count = 0

    def request(self) -> None:
        """Read the files again within LOOK_EVERY seconds."""
        self.count += 1


log: structlog.stdlib.BoundLogger = structlog.get_logger("dnsproxy.files")


async def follow_file(
    path: Path,
    *,
    read: Callable[[Path], Awaitable[Value]],
    on_change: Callable[[Value], Awaitable[None]],
    seen: Mark | None = None,
    reloads: Reloads | None = None,
) -> None:
    """Report the result of `read` to `on_change` after every change and every request of `reloads`, until cancelled.

    `seen` is the state that the caller has already read; None reports the present content too. `read` raises OSError or
    ValueError for an unusable file; the text of the ValueError goes into the log.
    """
    last = seen
    trouble = ""
    named = True
    replaced = 0
    reloads = reloads or Reloads()
    done = reloads.count
    while True:
        await trio.sleep(LOOK_EVERY)
        mark, before = file_mark(path), last
        last = mark
        # A file that is still being written would be read in part: wait until its mark stays the same. One that another
        # file replaces again and again is whole each time.
        replaced = replaced + (mark[:_INODE] != (before or ())[:_INODE]) if mark != before else 0
        if (mark != before and replaced < _REPLACED) or (mark == seen and not trouble and reloads.count == done):
            continue
        if reloads.count != done:
            done, trouble = reloads.count, ""  # who asked for it wants to see the reason again
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
        if named and not (named := _has_name(path)):
            log.warning(
                "a mounted file was replaced; its old content stays in use until this program is started again",
                path=str(path),
                cause="another file took its name, which the mount does not show: mount its folder instead",
            )
        await on_change(value)


def file_mark(path: Path) -> Mark:
    """The current state of a file."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    # The inode's time too: `cp -p`, `touch -r` and archives set the content's time back; no program can set this one.
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


def _has_name(path: Path) -> bool:
    """Whether the file still has a name in its file system; a mount of the file alone shows it without one too."""
    try:
        return os.stat(path).st_nlink > 0
    except OSError:
        return True


def reason_of(error: OSError | ValueError) -> str:
    """The part of an error that a person needs."""
    return (error.strerror if isinstance(error, OSError) else None) or message_of(error)


def read_settled(path: Path, *, largest: int) -> tuple[bytes, Mark]:
    """The content of a file that may be a pipe, and its state; read again if the file changed meanwhile.

    Of a file that never rests, the last content and an empty state. May block. Raises as read_octets.
    """
    for _ in range(_ATTEMPTS):
        mark = file_mark(path)
        with path.open("rb") as file:
            octets = _read_up_to(file, largest)
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) or file_mark(path) == mark:
                return octets, mark
    return octets, ()


def read_regular_file(path: Path, *, largest: int) -> str:
    """The text of a file, with invalid UTF-8 replaced. Raises as read_octets."""
    return read_octets(path, largest=largest).decode("utf-8", "replace")


def read_octets(path: Path, *, largest: int, patience: float = 0.0) -> bytes:
    """The content of a regular file; `patience` as in open_regular_file.

    Raises OSError, and ValueError for a file that is too large or not regular.
    """
    with open_regular_file(path, patience=patience) as file:
        return _read_up_to(file, largest)


def _read_up_to(file: BinaryIO, largest: int) -> bytes:
    octets = file.read(largest + 1)
    if len(octets) > largest:
        raise ValueError(f"is larger than {_format_size(largest)}")
    return octets


def _format_size(octets: int) -> str:
    return f"{octets} octets" if octets % (1 << 20) else f"{octets >> 20} MiB"


def open_regular_file(path: Path, *, patience: float = 0.0) -> BinaryIO:
    """Open a file that may have become anything, without waiting: opening a pipe would wait for its writer.

    `patience`: seconds to wait for the end of another program's lease. Raises OSError, and ValueError if it is not a
    regular file.
    """
    opener = partial(_open_at_once, patience=patience)
    file: BinaryIO = open(path, "rb", opener=opener)  # noqa: SIM115  # the caller's to close
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise ValueError("is no regular file")


def _open_at_once(path: str, flags: int, *, patience: float) -> int:
    deadline = time.monotonic() + patience
    while True:
        try:
            return os.open(path, flags | os.O_NONBLOCK)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_LEASE_LOOK)
