"""Changes the hosts file of a node while other programs may write to it too.

The law: a mounted file is written in place, from the first octet that differs, because no other file can take its name
(rename(2): EBUSY), and so is a file with hard links. Any other file is replaced atomically and keeps its mode, owner
and attributes. If another program wrote meanwhile, the change is planned again. All functions may block, so they belong
in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dnsproxy.publish.hosts.block import Change
from dnsproxy.publish.hosts.mounts import Mount, find_mount
from dnsproxy.publish.hosts.writing import LARGEST, Rewritten, write
from sidecar.files.follow import LEASE_SECONDS, Mark, file_mark, open_regular_file

ATTEMPTS: Final = 5
"""How often a change is planned while another program keeps writing to the file."""

_MOUNTS: Final = Path("/proc/self/mountinfo")

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
    first: bytes | None = None
    rewritten: Rewritten | None = None
    with _as_file_error(path):
        path = _resolved(path)
        for attempt in range(ATTEMPTS + 1):
            # The state is taken before the content is read: a later write gives another state.
            state, there = state_of(path), _read(path)
            first = there if first is None else first
            planned = plan(rewritten.merge_into(there) if rewritten else there).new
            if state.replaced:
                raise FileReplaced(
                    f"{path}: the node has another file in its place now, and no program reads the one that is "
                    "mounted here; a new container gets the new file"
                )
            if planned == there:
                return Applied(first, planned, state)
            if attempt < ATTEMPTS:
                done = write(path, Change(there, planned), in_place=state.mount is not None or state.links > 1)
                rewritten = done.rewritten if done.written else rewritten
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
        with open_regular_file(path, patience=LEASE_SECONDS) as file:
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
