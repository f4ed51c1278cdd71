"""The lines of a file to which another process writes.

The law: only whole lines. A write across the end of a page of the file is not atomic for who reads meanwhile, so that
the last line may still be a part of one.
"""

from __future__ import annotations

from pathlib import Path


def whole_lines(path: Path) -> list[str]:
    """Those so far, without their ends."""
    return path.read_bytes().rpartition(b"\n")[0].decode().splitlines()
