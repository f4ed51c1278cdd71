"""The real dig: its report about a reply, as a value.

The law: replies that dig prints alike are equal here, whatever their server and time; a missing or unreadable reply is
an error, never an empty value.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import Final

from tests.kit.programs import program

_SECONDS: Final = 15
"""Longer than any reply of ours may take."""
_HEADER: Final = re.compile(r";; ->>HEADER<<- opcode: (\w+), status: (\w+), id: \d+")
_FLAGS: Final = re.compile(
    r";; flags:([a-z ]*);(?: MBZ: 0x([0-9a-f]+);)? "
    r"(?:QUERY|ZONE): (\d+), (?:ANSWER|PREREQ): (\d+), (?:AUTHORITY|UPDATE): (\d+), ADDITIONAL: (\d+)"
)
_EDNS: Final = re.compile(r"; EDNS: version: (\d+), flags:([a-z ]*);(?: MBZ: 0x([0-9a-f]+),?)? udp: (\d+)")
_SIZE: Final = re.compile(r";; MSG SIZE  rcvd: (\d+)")
_SECTION: Final = re.compile(r";; ([A-Z]+) SECTION:")


class NotRead(AssertionError):
    """dig got no reply, or its output has an unknown form; the message is that output."""


@dataclass(frozen=True)
class DigEdns:
    """The OPT record of a reply."""

    version: int
    flags: frozenset[str]
    mbz: int
    """The flags that must be zero."""
    udp: int
    options: tuple[str, ...]
    """One line each, as dig prints them."""


@dataclass(frozen=True)
class DigReply:
    """A reply without its ID."""

    opcode: str
    status: str
    flags: frozenset[str]
    mbz: int
    """The Z bit of the header, as dig prints it."""
    counts: tuple[int, int, int, int]
    """Questions, answers, authorities, additional records, as the header has them."""
    edns: DigEdns | None
    sections: tuple[tuple[str, tuple[str, ...]], ...]
    """Each section's name and lines."""
    size: int | None
    """Octets; None after a transfer, whose size dig does not print."""

    def section(self, name: str) -> tuple[str, ...]:
        """The lines of a section; empty if the section is missing."""
        return dict(self.sections).get(name, ())


def dig(port: int, *arguments: str) -> DigReply:
    """Ask a server on a loopback port, once. Raises NotRead."""
    return parse_dig(run_dig(port, *arguments))


def run_dig(port: int, *arguments: str) -> str:
    """The output of dig, with every option for more output."""
    # More options than +all sets, for a transfer: otherwise dig would omit the header.
    shown = ["+all", "+comments", "+question"]
    how = ["-r", "@127.0.0.1", "-p", str(port), "+tries=1", f"+time={_SECONDS}", *shown]
    ran = subprocess.run([program("dig"), *how, *arguments], capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


def parse_dig(text: str) -> DigReply:
    """The only reply in dig's output. Raises NotRead."""
    header, flags = _HEADER.findall(text), _FLAGS.findall(text)
    if len(header) != 1 or len(flags) != 1:
        raise NotRead(text)
    ((opcode, status),), ((names, mbz, *counts),) = header, flags
    questions, answers, authorities, additional = map(int, counts)
    size = _SIZE.search(text)
    return DigReply(
        opcode=opcode,
        status=status,
        flags=frozenset(names.split()),
        mbz=int(mbz or "0", 16),
        counts=(questions, answers, authorities, additional),
        edns=_parse_edns(text),
        sections=tuple(_parse_sections(text)),
        size=int(size[1]) if size else None,
    )


def _parse_edns(text: str) -> DigEdns | None:
    lines = text.splitlines()
    if ";; OPT PSEUDOSECTION:" not in lines:
        return None
    first, *others = _until_blank(lines[lines.index(";; OPT PSEUDOSECTION:") + 1 :])
    found = _EDNS.match(first)
    if found is None:
        raise NotRead(text)
    version, flags, mbz, udp = found.groups()
    # The question follows the options without a blank line.
    options = tuple(line for line in others if line.startswith("; "))
    return DigEdns(int(version), frozenset(flags.split()), int(mbz or "0", 16), int(udp), options)


def _parse_sections(text: str) -> list[tuple[str, tuple[str, ...]]]:
    lines = text.splitlines()
    starts = [(match[1], index) for index, line in enumerate(lines) if (match := _SECTION.match(line))]
    return [(name, tuple(_until_blank(lines[index + 1 :]))) for name, index in starts]


def _until_blank(lines: list[str]) -> list[str]:
    return lines[: lines.index("")] if "" in lines else lines
