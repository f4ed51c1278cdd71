"""Writes a changed hosts file: as a new file under its name, or in place.

The law: nothing is written unless the file still has the content that the change was planned on. Lines that another
program appends to the replaced file are appended to the new one, until no program has the replaced file open. A file
with a second name (a hard link) is written in place, because a new file would take one of its names only. Publishers
write one after the other, or their two blocks would be refused from then on.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from dnsproxy.publish.hosts.block import Change, first_difference, has_marker
from dnsproxy.publish.hosts.writers import keep_others_out, open_alone, wait_for_writers
from sidecar.files.follow import LEASE_SECONDS, open_regular_file
from sidecar.files.replace import copy_owner_and_mode, replace_file

LARGEST: Final = 64 << 20
"""Octets; a larger file is not a hosts file."""
_WRITERS_SECONDS: Final = 1.0
"""For programs that have the file open. Resolvers and editors open it for milliseconds."""

# A mount that mountinfo did not show, a folder where no file can be created, attributes that only the kernel can set.
_IN_PLACE_AFTER: Final = frozenset({errno.EBUSY, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTSUP})
_NO_ATTRIBUTES: Final = frozenset({errno.ENOTSUP, errno.ENODATA, errno.ENOSYS})


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file that another program rewrote until the rename replaced it."""

    old: bytes
    """The content on which both programs planned."""
    theirs: bytes
    ours: bytes

    def merge_into(self, there: bytes) -> bytes:
        """The text to plan on: theirs, or the file that is there by now with the lines that they added."""
        if there == self.ours:
            return self.theirs
        known = {*self.old.splitlines(), *there.splitlines()}
        added = [line + b"\n" for line in self.theirs.splitlines() if line not in known]
        return b"".join((_with_line_end(there), *added)) if added else there


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome of a write."""

    written: bool
    """False: the file had changed, and the change must be planned again."""
    rewritten: Rewritten | None = None


def write(path: Path, change: Change, *, in_place: bool) -> Done:
    """Write, unless another program has changed the file otherwise than at its end. Raises OSError."""
    done = None
    if not in_place:
        try:
            done = _replace(path, change)
        except OSError as error:
            if error.errno not in _IN_PLACE_AFTER:
                raise
    return done or _overwrite(path, change)


def _overwrite(path: Path, change: Change) -> Done:
    with open_alone(path, _open_to_write, seconds=_WRITERS_SECONDS) as file:
        with keep_others_out(file.fileno(), seconds=_WRITERS_SECONDS):
            there = _content(file)
            if not _is_extended(there, change):
                return Done(written=False)
            appended = there[len(change.old) :]
            _overwrite_from_first_difference(file.fileno(), there, change.new + appended)
        os.fsync(file.fileno())
    return Done(written=True)


def _open_to_read(path: Path) -> BinaryIO:
    return open_regular_file(path, patience=LEASE_SECONDS)


def _open_to_write(path: Path) -> BinaryIO:
    return open(os.open(path, os.O_RDWR | os.O_CLOEXEC), "r+b", buffering=0)


def _is_extended(there: bytes, change: Change) -> bool:
    """Whether a text is the old one, or the old one with whole lines of others below it."""
    if there == change.old:
        return True
    if not there.startswith(change.old) or has_marker(there[len(change.old) :]):
        return False
    return _with_line_end(change.new) == change.new


def _overwrite_from_first_difference(descriptor: int, old: bytes, new: bytes) -> None:
    start = first_difference(old, new)
    try:
        # Padded to the old length: a process that is killed before the truncation leaves blank lines, not half old
        # lines.
        _write_at(descriptor, start, new[start:] + b"\n" * (len(old) - len(new)))
    except OSError:
        # Half a block would have taken the place of others' lines below. A full disk still has room for the old octets.
        _write_at(descriptor, start, old[start:])
        if os.fstat(descriptor).st_size <= len(new):
            os.ftruncate(descriptor, len(old))
        raise
    # With a larger file, another program has appended to it meanwhile; the padding goes with the next write.
    if os.fstat(descriptor).st_size <= len(old):
        os.ftruncate(descriptor, len(new))


def _write_at(descriptor: int, start: int, octets: bytes) -> None:
    rest = memoryview(octets)
    while rest:
        written = os.pwrite(descriptor, rest, start)
        start, rest = start + written, rest[written:]


def _replace(path: Path, change: Change) -> Done | None:
    """None if the file must be written in place."""
    with open_alone(path, _open_to_read, seconds=_WRITERS_SECONDS) as before:
        if not wait_for_writers(before.fileno(), seconds=_WRITERS_SECONDS):
            # A program that keeps it open, such as a log, would write to a file without a name for ever.
            return None
        replaced = replace_file(
            path,
            [change.new],
            prefix=f".{path.name}.switchback-",
            prepare=partial(_take_over, before.fileno()),
            still_wanted=partial(_is_unchanged, path, before, change),
        )
        return _carry_over(before, path, change) if replaced else Done(written=False)


def _is_unchanged(path: Path, before: BinaryIO, change: Change) -> bool:
    opened = os.fstat(before.fileno())
    same = os.path.samestat(os.stat(path), opened) and opened.st_nlink == 1
    return same and _is_extended(_content(before), change)


def _carry_over(before: BinaryIO, path: Path, change: Change) -> Done:
    """Append to the new file what other programs append to the replaced one."""
    taken = len(change.old)
    while True:
        # A program that opened the file before the rename may write to it until it closes it.
        is_closed = wait_for_writers(before.fileno(), seconds=_WRITERS_SECONDS)
        last = _content(before)
        if not last.startswith(change.old) or len(last) < taken:
            return Done(written=True, rewritten=Rewritten(change.old, theirs=last, ours=change.new))
        if len(last) > taken:
            first = taken == len(change.old)
            _append(path, (_line_end_after(change.new) if first else b"") + last[taken:])
        if len(last) == taken or not is_closed:
            return Done(written=True)
        taken = len(last)


def _append(path: Path, octets: bytes) -> None:
    # With O_APPEND, no line that another program appends at the same time is overwritten (open(2)).
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(descriptor, octets)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _with_line_end(text: bytes) -> bytes:
    return text + _line_end_after(text)


def _line_end_after(text: bytes) -> bytes:
    return b"" if text.endswith(b"\n") or not text else b"\n"


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read(LARGEST + 1)


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
