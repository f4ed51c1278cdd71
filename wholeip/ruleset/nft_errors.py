"""The errors of nft as exceptions.

The law: each failure that an operator can fix has a class of its own, and nft's message is kept verbatim. nft does not
translate its messages (it never calls setlocale), so they can be matched.
"""

from __future__ import annotations

import re
from typing import Final

_PLACE: Final = re.compile(r"^(?:\S+?:(\d+):[\d:-]+: )?Error: (.*)$", re.MULTILINE)
_TRANSIENT: Final = ("Device or resource busy", "Interrupted system call", "No buffer space available")
NOT_THERE: Final = "No such file or directory"
"""Also nft's message for a missing table."""
_OF_ELEMENTS: Final = ("add element", "delete element")
_NOT_SUPPORTED: Final = ("Operation not supported", "Protocol not supported", "Address family not supported")


class NftFailed(Exception):
    """nft or the kernel refused; our table is unchanged."""

    transient = False
    """Whether a retry may succeed."""


class NoNft(NftFailed):
    """The program nft is missing."""


class NotPermitted(NftFailed):
    """The kernel requires CAP_NET_ADMIN."""


class NoNfTables(NftFailed):
    """The kernel has no nf_tables, or no family inet with NAT (CONFIG_NF_TABLES_INET, CONFIG_NFT_NAT)."""


class NoAnswer(NftFailed):
    """nft did not exit in time and was killed."""

    transient = True


class Busy(NftFailed):
    """The kernel was busy (EBUSY, EINTR, ENOBUFS)."""

    transient = True


class Refused(NftFailed):
    """No part of a transaction was applied. `line` is the first refused line, shortened, or empty."""

    def __init__(self, message: str, line: str = "") -> None:
        super().__init__(f"{message}: {line}" if line else message)
        self.message = message
        self.line = line


class UnknownListing(NftFailed):
    """The output of nft is not JSON, for example because nft was built without it."""


_LINE_LENGTH: Final = 200


def judge_failure(stderr: str, script: str) -> NftFailed:
    """The exception for nft's message about a script; lines count from 1."""
    place = _PLACE.search(stderr)
    message = place[2] if place else (stderr.split("\n", 1)[0].strip() or "nft failed without a word")
    if "Operation not permitted" in stderr:
        return NotPermitted(message)
    if any(words in stderr for words in _TRANSIENT):
        return Busy(message)
    line = _line(script, int(place[1])) if place and place[1] else ""
    # A new table defines all that its chains and rules refer to, so a missing thing is a feature of the kernel.
    if message.endswith(NOT_THERE) and line and not line.startswith(_OF_ELEMENTS):
        return NoNfTables(f"{message}: {line}")
    if any(words in stderr for words in _NOT_SUPPORTED):
        return NoNfTables(f"{message}: {line}" if line else message)
    return Refused(message, line)


def _line(script: str, number: int) -> str:
    lines = script.splitlines()
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return line if len(line) <= _LINE_LENGTH else f"{line[:_LINE_LENGTH]}..."
