"""Corefiles on disk: read whole, and replaced whole or not at all.

The law: a text that is read and written back unchanged has the same octets, whatever their encoding; another reader of
the file sees the old text or the new text, never a mixture.
"""

from __future__ import annotations

import stat
import sys
from functools import partial
from pathlib import Path

from sidecar.files.replace import copy_owner_and_mode, replace_file

MAXIMUM_OCTETS = 1 << 20
"""The largest ConfigMap (Kubernetes' limit for an object); a Corefile has a few kilobytes."""

STDIN = "-"


def read_text(name: str) -> str:
    """The text of a file, or of stdin for `-`; octets that are not UTF-8 become surrogates.

    Raises OSError, or ValueError if the file is too large.
    """
    if name == STDIN:
        octets = sys.stdin.buffer.read(MAXIMUM_OCTETS + 1)
    else:
        with Path(name).open("rb") as file:
            octets = file.read(MAXIMUM_OCTETS + 1)
    if len(octets) > MAXIMUM_OCTETS:
        raise ValueError(f"{name} is larger than {MAXIMUM_OCTETS} octets, so no ConfigMap can hold it")
    return octets.decode(errors="surrogateescape")


def write_text(name: str, text: str) -> None:
    """Put a text in the place of a regular file that exists; its mode, its owner and a link to it stay.

    Raises OSError, or ValueError if it is not a regular file.
    """
    path = Path(name).resolve(strict=True)
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{name} is not a regular file")
    replace_file(
        path,
        [text.encode(errors="surrogateescape")],
        prefix=f".{path.name}.",
        prepare=partial(copy_owner_and_mode, status),
    )
