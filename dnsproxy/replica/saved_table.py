"""The saved table of a replica: the texts of its rows, for a start without a primary.

The law: octets are a table only if they are exactly as written, for the same zone. The file is complete at every
moment; no fault of it keeps the replica from starting or answering.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from sidecar.files.follow import read_octets
from sidecar.files.replace import replace_file

LARGEST: Final = 1 << 30
_FORMAT: Final = "switchback-zone"
_VERSION: Final = 1
_TRAILER: Final = len(b"sha256 \n") + 64
_LONGEST_HEAD: Final = 4096
_LINES: Final = 200


class SavedTableRefused(ValueError):
    """A file that is no saved table; the message is the reason, as part of a sentence."""


class _Head(msgspec.Struct, frozen=True):
    format: str
    version: int
    zone: str
    serial: int
    taken: float


@dataclass(frozen=True, slots=True)
class SavedTable:
    """A table that was read and checked."""

    serial: int
    taken: float
    """Seconds since the epoch."""
    texts: tuple[bytes, ...]
    """The control record first, then the rows."""


def format_saved(zone: str, serial: int, texts: Iterable[bytes]) -> Generator[None, None, list[bytes]]:
    """The octets in pieces, in steps; `texts`: the control record first."""
    head = msgspec.json.encode(_Head(_FORMAT, _VERSION, zone, serial, time.time())) + b"\n"
    digest, pieces, lines = hashlib.sha256(head), [head], list[bytes]()
    for text in texts:
        lines.append(text)
        if len(lines) >= _LINES:
            pieces.append(_join(lines, digest))
            lines = []
            yield
    pieces.append(_join(lines, digest))
    pieces.append(b"sha256 %b\n" % digest.hexdigest().encode())
    return pieces


def parse_saved(octets: bytes, *, zone: str) -> SavedTable:
    """Raises SavedTableRefused."""
    end = octets.find(b"\n", 0, _LONGEST_HEAD) + 1
    try:
        head = msgspec.json.decode(octets[:end], type=_Head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise SavedTableRefused("it is no saved table") from None
    if head.format != _FORMAT or head.version != _VERSION:
        raise SavedTableRefused("it is of another format")
    body = octets[:-_TRAILER]
    if octets[-_TRAILER:] != b"sha256 %b\n" % hashlib.sha256(body).hexdigest().encode():
        raise SavedTableRefused("it is cut short or damaged")
    if head.zone != zone:
        raise SavedTableRefused(f"it is of zone {head.zone}")
    return SavedTable(head.serial, head.taken, tuple(_lines(body[end:])))


def read_saved(path: Path, *, zone: str) -> SavedTable:
    """Raises OSError and SavedTableRefused."""
    try:
        octets = read_octets(path, largest=LARGEST)
    except ValueError as error:
        raise SavedTableRefused(f"it {error}") from None
    return parse_saved(octets, zone=zone)


def write_saved(path: Path, pieces: list[bytes]) -> None:
    """Replace the file. Raises OSError; the old file then stays."""
    # Not Path.resolve(), which raises RuntimeError for a link to itself.
    path = Path(os.path.realpath(path))
    replace_file(path, pieces, prefix=f".{path.name}.new-")


def _join(lines: list[bytes], digest: hashlib._Hash) -> bytes:
    piece = b"".join(line + b"\n" for line in lines)
    digest.update(piece)
    return piece


def _lines(octets: bytes) -> Iterator[bytes]:
    return (line for line in octets.split(b"\n") if line)
