"""Changes the hosts file of a node while other programs may write to it too.

The law: a mounted file is written in place, from the first octet that differs, because no other file can take its name
(rename(2): EBUSY). Any other file is replaced atomically and keeps its mode, owner and attributes. If another program
wrote meanwhile, the change is planned again. All functions may block, so they belong in a thread.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from dnsproxy.publish.hosts.block import Change, first_difference
from dnsproxy.publish.hosts.mounts import Mount, find_mount
from sidecar.files.follow import Mark, file_mark, open_regular_file
from sidecar.files.replace import copy_owner_and_mode, replace_file

LARGEST: Final = 64 << 20
"""Octets; a larger file is not a hosts file."""
ATTEMPTS: Final = 5
"""How often a change is planned while another program keeps writing to the file."""

_MOUNTS: Final = Path("/proc/self/mountinfo")
# A mount that mountinfo did not show, a folder where no file can be created, attributes that only the kernel can set.
_IN_PLACE_AFTER: Final = frozenset({errno.EBUSY, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTSUP})
_NO_ATTRIBUTES: Final = frozenset({errno.ENOTSUP, errno.ENODATA, errno.ENOSYS})

Plan = Callable[[bytes], Change]


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a file, to detect a change without reading it."""

    mark: Mark = ()
    mount: Mount | None = None
    """The mount at the path itself."""
    links: int = 0
    """The number of hard links."""

    @property
    def replaced(self) -> bool:
        """Whether the node has another file under the name that was mounted."""
        return self.mount is not None and (self.mount.deleted or self.links == 0)


class FileError(Exception):
    """A file that cannot be used; the message says why, on one line."""


class FileReplaced(FileError):
    """The mounted file is no longer the node's: the node has another file of the same name."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The content before and after."""

    old: bytes
    new: bytes
    state: FileState
    """The state of the file afterwards."""


def apply(path: Path, plan: Plan) -> Applied:
    """Write the planned content, and repeat until the file has it. Raises FileError, and what `plan` raises."""
    with _as_file_error(path):
        path = _resolved(path)
        first = there = base = _read(path)
        for _ in range(ATTEMPTS):
            state, planned = state_of(path), plan(base).new
            if state.replaced:
                raise FileReplaced(
                    f"{path}: the node has another file in its place now, and no program reads the one that is "
                    "mounted here; a new container gets the new file"
                )
            if (again := _read(path)) != there:
                there = base = again
            elif planned == there:
                return Applied(first, planned, state)
            else:
                lost = _write(path, Change(there, planned), in_place=state.mount is not None)
                # The state is taken before the content is read: a later write gives another state.
                state, there = state_of(path), _read(path)
                base = there if lost is None else lost
                if base == planned:
                    return Applied(first, planned, state)
    raise FileError(f"{path} was changed by another program {ATTEMPTS} times while it was being written")


def state_of(path: Path) -> FileState:
    """The present state; an empty one if there is no file."""
    try:
        path = _resolved(path)
        return FileState(file_mark(path), _mount_at(path), path.stat().st_nlink)
    except OSError:
        return FileState()


def read(path: Path) -> bytes:
    """The content. Raises FileError."""
    with _as_file_error(path):
        return _read(path)


@contextmanager
def _as_file_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error


def _resolved(path: Path) -> Path:
    # Path.resolve raises RuntimeError for a link to itself.
    return Path(os.path.realpath(path, strict=True))


def _read(path: Path) -> bytes:
    try:
        with open_regular_file(path) as file:
            content = file.read(LARGEST + 1)
    except ValueError as error:
        raise FileError(f"{path} {error}") from None
    if len(content) > LARGEST:
        raise FileError(f"{path} is larger than {LARGEST >> 20} MiB")
    return content


def _mount_at(path: Path) -> Mount | None:
    try:
        return find_mount(_MOUNTS.read_bytes(), os.fsencode(path))
    except OSError:
        # Without /proc, the rename fails with EBUSY for a mounted file.
        return None


def _write(path: Path, change: Change, *, in_place: bool) -> bytes | None:
    """Write; returns the content of the old file if another program wrote to it until the rename, else None."""
    if not in_place:
        try:
            return _replace(path, change)
        except OSError as error:
            if error.errno not in _IN_PLACE_AFTER:
                raise
    _overwrite(path, change)
    return None


def _overwrite(path: Path, change: Change) -> None:
    old, new = change.old, change.new
    start = first_difference(old, new)
    # Padded to the old length: a process that is killed before the truncation leaves blank lines, not half old lines.
    rest = memoryview(new[start:] + b"\n" * (len(old) - len(new)))
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        while rest:
            written = os.pwrite(descriptor, rest, start)
            start, rest = start + written, rest[written:]
        os.ftruncate(descriptor, len(new))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replace(path: Path, change: Change) -> bytes | None:
    """Replace the file if it has not changed since it was read; returns as _write."""
    with open_regular_file(path) as before:
        replaced = replace_file(
            path,
            [change.new],
            prefix=f".{path.name}.switchback-",
            prepare=partial(_take_over, before.fileno()),
            still_wanted=lambda: os.path.samestat(os.stat(path), os.fstat(before.fileno())),
        )
        if not replaced:
            return None
        # A program that opened the old file before the rename may have written to it until now.
        last = before.read(LARGEST + 1)
    return None if last == change.old else last


def _take_over(old: int, new: int) -> None:
    """Copy owner, mode and extended attributes (an SELinux label, an ACL). Raises OSError if one cannot be set."""
    copy_owner_and_mode(os.fstat(old), new)
    try:
        names = os.listxattr(old)
    except OSError as error:
        if error.errno not in _NO_ATTRIBUTES:
            raise
        return
    for name in names:
        value = os.getxattr(old, name)
        if name not in os.listxattr(new) or os.getxattr(new, name) != value:
            os.setxattr(new, name, value)
