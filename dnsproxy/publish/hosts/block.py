"""Our block of lines in a hosts file: finds, adds, replaces and removes it.

The law: a file has no block or exactly one. Everything outside the block stays octet for octet, line ends included,
also a missing one at the end of the file. Adding the same block again changes nothing, and removing it restores the
octets from before it was added. Markers that do not enclose one block were edited by hand, and are refused. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

BEGIN: Final = b"# BEGIN switchback: managed by dnsproxy publish-hosts, changes in here are lost"
END: Final = b"# END switchback"
JOINED: Final = b" (the line above had no end)"
"""Follows BEGIN if the line end in front of the block is ours too."""

# The words after the name may change from version to version; the part that is matched must not.
# Windows' editors put a byte order mark in front of the first line.
_MARKER: Final = re.compile(
    rb"^(?:\A\xef\xbb\xbf)?(?P<marker>[ \t]*#[ \t]*(?P<kind>BEGIN|END) switchback\b(?!-)(?P<rest>[^\n]*))",
    re.MULTILINE,
)
_REMEDY: Final = "remove the marker lines and the lines of dnsproxy between them"


class HostsFileError(ValueError):
    """A hosts file that is left unchanged; the message names the line, the reason and the remedy."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}; {_REMEDY}")
        self.line = line


@dataclass(frozen=True, slots=True)
class Change:
    """A file's content before and after."""

    old: bytes
    new: bytes

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return self.old != self.new


@dataclass(frozen=True, slots=True)
class Block:
    """The position of our block in a file, in octets, and its lines."""

    start: int
    stop: int
    joined: bool
    """Whether the line end in front of the block is ours."""
    lines: tuple[bytes, ...]
    """Between the markers, without their ends."""


def plan_block(text: bytes, lines: Sequence[str]) -> Change:
    """The file with these lines (ASCII, without line ends) in our block; without lines, the file without the block.

    A new block goes at the end; an existing one keeps its place. Raises HostsFileError.
    """
    block = find_block(text)
    if not lines:
        return Change(text, text if block is None else _without(text, block))
    if block is None:
        joined = bool(text) and not text.endswith(b"\n")
        end_of_line = _end_of_line(text)
        before, after = text + (end_of_line if joined else b""), b""
    else:
        joined, end_of_line = block.joined, _end_of_line(text[block.start : block.stop])
        before, after = text[: block.start], text[block.stop :]
    begin = BEGIN + (JOINED if joined else b"")
    body = b"".join(line + end_of_line for line in (begin, *(line.encode("ascii") for line in lines), END))
    return Change(text, before + body + after)


def find_block(text: bytes) -> Block | None:
    """Our block, or None. Raises HostsFileError for markers that are not one pair in order."""
    found = list(_MARKER.finditer(text))
    if not found:
        return None
    _check([match["kind"] for match in found], [_line_at(text, match.start()) for match in found])
    begin, end = found
    stop = end.end() + 1 if end.end() < len(text) else end.end()
    inside = text[begin.end() + 1 : end.start()].splitlines()
    return Block(begin.start("marker"), stop, JOINED in begin["rest"], tuple(inside))


def has_marker(text: bytes) -> bool:
    """Whether a part of a file that begins with a line has a marker."""
    return _MARKER.search(text) is not None


def foreign_text(text: bytes) -> bytes:
    """The file without our block. Raises HostsFileError."""
    return plan_block(text, ()).new


def first_difference(old: bytes, new: bytes) -> int:
    """The length of the common prefix, in octets."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[low:middle] == new[low:middle] else (low, middle - 1)
    return low


def _without(text: bytes, block: Block) -> bytes:
    before, after = text[: block.start], text[block.stop :]
    if block.joined and not after:
        # If another program wrote below the block meanwhile, the line end separates two of its lines by now.
        end_of_line = _end_of_line(text[block.start : block.stop])
        before = before.removesuffix(end_of_line)
    return before + after


def _end_of_line(text: bytes) -> bytes:
    """The line end of the first line."""
    return b"\r\n" if text[: text.find(b"\n") + 1].endswith(b"\r\n") else b"\n"


def _check(kinds: Sequence[bytes], lines: Sequence[int]) -> None:
    if kinds == [b"BEGIN", b"END"]:
        return
    if len(kinds) == 1:
        missing = "END" if kinds == [b"BEGIN"] else "BEGIN"
        raise HostsFileError(lines[0], f"a marker stands alone: {kinds[0].decode()} without {missing} switchback")
    if kinds == [b"END", b"BEGIN"]:
        raise HostsFileError(lines[0], f"END switchback stands before BEGIN switchback (line {lines[1]})")
    shown = ", ".join(map(str, lines[:5]))
    raise HostsFileError(lines[0], f"there are {len(kinds)} markers (lines {shown}), not one pair")


def _line_at(text: bytes, position: int) -> int:
    return text.count(b"\n", 0, position) + 1
