"""Files of Corefiles: read whole, and replaced whole or not at all.

The law: what is read and written back unchanged is the same octets, whatever their encoding; a reader of the file sees
the old text or the new one, never half of either.
"""

from __future__ import annotations

import stat
import sys
from functools import partial
from pathlib import Path

from sidecar.atomic_file import copy_owner_and_mode, replace_file

MAXIMUM_OCTETS = 1 << 20
"""What a ConfigMap can hold (Kubernetes' limit for an object); a Corefile is some kilobytes."""

STDIN = "-"


def read_text(name: str) -> str:
    """The text of a file, or of stdin for `-`; octets that are no UTF-8 survive as surrogates.

    Raises OSError, and ValueError for a file that is too large.
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

    Raises OSError, and ValueError for what is no regular file.
    """
    path = Path(name).resolve(strict=True)
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{name} is no regular file")
    replace_file(
        path,
        [text.encode(errors="surrogateescape")],
        prefix=f".{path.name}.",
        prepare=partial(copy_owner_and_mode, status),
    )
