r"""Finds the mount at one path in /proc/self/mountinfo.

The law: blanks in paths are octal escapes there (`\040`, proc_pid_mountinfo(5)). Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_ESCAPE: Final = re.compile(rb"\\([0-7]{3})")
_ROOT, _POINT = 3, 4
"""Fields of a line, from 0: the mounted path inside its file system, and the mount point."""
_DELETED: Final = b"//deleted"


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount at a path itself, not at a folder above it."""

    deleted: bool
    """Whether the mounted file has lost its name since: another file replaced it."""


def find_mount(mountinfo: bytes, path: bytes) -> Mount | None:
    """The topmost mount at an absolute path, or None."""
    found = None
    for line in mountinfo.splitlines():
        fields = line.split(b" ")
        if len(fields) > _POINT and _unescaped(fields[_POINT]) == path:
            found = Mount(deleted=_unescaped(fields[_ROOT]).endswith(_DELETED))
    return found


def _unescaped(field: bytes) -> bytes:
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), field)
