"""Replaces a file atomically: a reader sees the old content or the new, and a failure leaves the old file.

The law: this is the only place that renames over a file, and over nothing but a regular one: root could replace
/dev/null. The content is on the disk before the rename. The new file is readable for its owner alone, unless `prepare`
gives it another owner and mode. These functions may block, so they belong in a thread once an event loop runs.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path


def replace_file(
    path: Path,
    pieces: Iterable[bytes],
    *,
    prefix: str,
    prepare: Callable[[int], None] = lambda _descriptor: None,
    still_wanted: Callable[[], bool] = lambda: True,
) -> bool:
    """Replace the file at a path, which must not be a symbolic link, with the pieces; returns whether it was replaced.

    The temporary file is in the same folder, and its name begins with `prefix`. `prepare` gets its descriptor once the
    content is written; `still_wanted` is asked last, directly before the rename. Raises OSError, also for what is there
    and is no regular file, and what the two functions raise.
    """
    _check_regular(path)
    descriptor, temporary = tempfile.mkstemp(prefix=prefix, dir=path.parent)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            for piece in pieces:
                _write_all(file.fileno(), piece)
            prepare(file.fileno())
            os.fsync(file.fileno())
        if not still_wanted():
            os.unlink(temporary)
            return False
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(path.parent)
    return True


def copy_owner_and_mode(status: os.stat_result, descriptor: int) -> None:
    """Give an open file the owner, group and mode of another one. Raises OSError."""
    os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _check_regular(path: Path) -> None:
    with suppress(FileNotFoundError):
        mode = os.lstat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise OSError(errno.EINVAL, "is no regular file")


def _write_all(descriptor: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync_folder(folder: Path) -> None:
    # The new name is on the disk only when the folder is. A file system that cannot promise it still has the file.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
