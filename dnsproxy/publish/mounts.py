r"""Mounts: what /proc/self/mountinfo says of one path.

The law: pure; blanks in paths come as octal escapes (`\040`, proc_pid_mountinfo(5)).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_ESCAPE: Final = re.compile(rb"\\([0-7]{3})")
_ROOT, _POINT = 3, 4
"""Fields of a line, from 0: what of the file system is mounted, and where."""
_DELETED: Final = b"//deleted"


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount at a path itself, not at a folder above it."""

    deleted: bool
    """Whether what is mounted has lost its name since: the file was replaced by another one."""


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
