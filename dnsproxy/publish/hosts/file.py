"""The hosts file of a node: read, changed by a plan, and read again, whoever else writes to it.

The law: a file that is mounted is written in place, from the first octet that differs on, because no other file can
take its name (rename(2): EBUSY); any other is replaced whole, with its mode, owner and attributes. What somebody else
wrote meanwhile is planned on anew. Everything here may block, so it belongs in a thread.
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
from dnsproxy.publish.mounts import Mount, find_mount
from sidecar.atomic_file import copy_owner_and_mode, replace_file
from sidecar.file_follower import Mark, file_mark, open_regular_file

LARGEST: Final = 64 << 20
"""Octets; a file beyond this is no hosts file."""
TRIES: Final = 5
"""Plans; whoever writes to the file in between each time is not fought."""

_MOUNTS: Final = Path("/proc/self/mountinfo")
# A mount that mountinfo did not show, a folder where nothing can be made, attributes that only the kernel can set.
_IN_PLACE_AFTER: Final = frozenset({errno.EBUSY, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTSUP})
_NO_ATTRIBUTES: Final = frozenset({errno.ENOTSUP, errno.ENODATA, errno.ENOSYS})

Plan = Callable[[bytes], Change]


@dataclass(frozen=True, slots=True)
class State:
    """What tells one state of a file from another without reading it."""

    mark: Mark = ()
    mount: Mount | None = None
    """What is mounted at its path itself."""
    links: int = 0
    """How many names it has."""

    @property
    def replaced(self) -> bool:
        """Whether another file has its name where it was mounted from."""
        return self.mount is not None and (self.mount.deleted or self.links == 0)


class FileTrouble(Exception):
    """A file that cannot be used; the message says why, on one line."""


class Replaced(FileTrouble):
    """The file that is mounted here is no longer the node's: that has another one of the same name now."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What was found and made of it."""

    old: bytes
    new: bytes
    state: State
    """Of the file afterwards."""


def apply(path: Path, plan: Plan) -> Applied:
    """Change the file by the plan until it is as planned. Raises FileTrouble, and what `plan` raises."""
    with _translated(path):
        path = _resolved(path)
        first = there = base = _read(path)
        for _ in range(TRIES):
            state, planned = state_of(path), plan(base).new
            if state.replaced:
                raise Replaced(
                    f"{path}: the node has another file in its place now, and the one that is mounted here is read by "
                    "nobody; a new container gets the new one"
                )
            if (again := _read(path)) != there:
                there = base = again
            elif planned == there:
                return Applied(first, planned, state)
            else:
                lost = _write(path, Change(there, planned), in_place=state.mount is not None)
                # Before the look, so that what comes after that is another state.
                state, there = state_of(path), _read(path)
                base = there if lost is None else lost
                if base == planned:
                    return Applied(first, planned, state)
    raise FileTrouble(f"{path} was changed by somebody else {TRIES} times while it was being written")


def state_of(path: Path) -> State:
    """The present state; that of a file that is not there is none."""
    try:
        path = _resolved(path)
        return State(file_mark(path), _mount_at(path), path.stat().st_nlink)
    except OSError:
        return State()


def read(path: Path) -> bytes:
    """The contents. Raises FileTrouble."""
    with _translated(path):
        return _read(path)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileTrouble(f"{path}: {error.strerror or error}") from error


def _resolved(path: Path) -> Path:
    # Path.resolve has an exception of its own for a link that leads to itself.
    return Path(os.path.realpath(path, strict=True))


def _read(path: Path) -> bytes:
    try:
        with open_regular_file(path) as file:
            content = file.read(LARGEST + 1)
    except ValueError as error:
        raise FileTrouble(f"{path} {error}") from None
    if len(content) > LARGEST:
        raise FileTrouble(f"{path} is larger than {LARGEST >> 20} MiB")
    return content


def _mount_at(path: Path) -> Mount | None:
    try:
        return find_mount(_MOUNTS.read_bytes(), os.fsencode(path))
    except OSError:
        # Without /proc the rename tells.
        return None


def _write(path: Path, change: Change, *, in_place: bool) -> bytes | None:
    """Write; gives the contents of a file that has lost its name to ours with something new in it, else None."""
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
    # Padded to the old length: who is killed before the cut leaves blank lines behind, and not half of old ones.
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
    """Put a new file in its place, if it is still the one that was read."""
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
        # Who opened the old file before the rename may have written to it until now.
        last = before.read(LARGEST + 1)
    return None if last == change.old else last


def _take_over(old: int, new: int) -> None:
    """Owner, mode and attributes (an SELinux label, an ACL). Raises OSError where one of them cannot be had."""
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
