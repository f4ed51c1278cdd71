"""Learns whether another program has a file open for writing, and keeps other programs and publishers out for a moment.

The law: a lease (fcntl(2), F_SETLEASE) answers without a race, because the kernel knows every open file. Where it gives
none (another user's file, NFS), the answer is unknown, and the caller continues as without writers. The signal of a
broken lease is one that processes ignore: SIGIO, the default, would end this process. Publishers keep one another out
by a lock of the file (flock(2)), which counts in all containers. Any user who may read the file can take it, so no
publisher waits long for it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

_LOOK_EVERY: Final = 0.005
"""Seconds. A program that appends a line has the file open for less than a millisecond."""


@contextmanager
def open_alone(path: Path, open_file: Callable[[Path], BinaryIO], *, seconds: float) -> Iterator[BinaryIO]:
    """The file at a path, opened and locked; not locked if others have the lock for all of these seconds.

    Raises what `open_file` raises.
    """
    deadline = time.monotonic() + seconds
    while True:
        with open_file(path) as file:
            is_last = time.monotonic() >= deadline
            # The owner of the lock may have put another file in its place.
            if (_is_locked(file.fileno()) and os.path.samestat(os.stat(path), os.fstat(file.fileno()))) or is_last:
                yield file
                return
        # Not while the file is open here: it would keep the owner of the lock from its lease.
        time.sleep(_LOOK_EVERY)


def _is_locked(descriptor: int) -> bool:
    """Whether the file is locked now, or cannot be (NFS: a file that is open for reading)."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno != errno.EAGAIN
    return True


def wait_for_writers(descriptor: int, *, seconds: float) -> bool:
    """Wait until no program has the file open for writing; False if one still has after these seconds.

    The descriptor is open for reading alone.
    """
    if (leased := _wait_for_lease(descriptor, fcntl.F_RDLCK, seconds)) is None:
        return True
    if leased:
        _release(descriptor)
    return leased


@contextmanager
def keep_others_out(descriptor: int, *, seconds: float) -> Iterator[None]:
    """While it is entered, open(2) of the file waits in other programs, also to read; keep it short.

    If other programs have it open for all of these seconds, it is entered without that.
    """
    leased = _wait_for_lease(descriptor, fcntl.F_WRLCK, seconds)
    try:
        yield
    finally:
        if leased:
            _release(descriptor)


def _wait_for_lease(descriptor: int, kind: int, seconds: float) -> bool | None:
    """Whether the lease was given in time; None if the kernel gives no leases on this file."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, kind)
        except OSError as error:
            if error.errno != errno.EAGAIN:
                return None
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_EVERY)
        else:
            return True


def _release(descriptor: int) -> None:
    with suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
