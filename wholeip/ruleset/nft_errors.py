"""What can go wrong with nft, by name.

The law: what a person can mend has a name of its own, and whatever nft says is kept word for word. nft does not
translate its messages (it never calls setlocale), so its words can be matched.
"""

from __future__ import annotations

import re
from typing import Final

_PLACE: Final = re.compile(r"^(?:\S+?:(\d+):[\d:-]+: )?Error: (.*)$", re.MULTILINE)
_TRANSIENT: Final = ("Device or resource busy", "Interrupted system call", "No buffer space available")
NOT_THERE: Final = "No such file or directory"
"""Also what nft says of a table that is not there."""
_OF_ELEMENTS: Final = ("add element", "delete element")
_NOT_SUPPORTED: Final = ("Operation not supported", "Protocol not supported", "Address family not supported")


class NftFailed(Exception):
    """Our table is as it was before: nft, or the kernel through it, did not do what was asked."""

    transient = False
    """Whether the same may well be done when asked again a little later."""


class NoNft(NftFailed):
    """There is no such program."""


class NotPermitted(NftFailed):
    """The kernel takes rules from CAP_NET_ADMIN alone."""


class NoNfTables(NftFailed):
    """The kernel has no nf_tables, or none of the family inet with NAT (CONFIG_NF_TABLES_INET, CONFIG_NFT_NAT)."""


class NoAnswer(NftFailed):
    """nft did not end in time and was ended."""

    transient = True


class Busy(NftFailed):
    """The kernel was busy (EBUSY, EINTR, ENOBUFS)."""

    transient = True


class Refused(NftFailed):
    """Nothing of a transaction was applied. `line` is what was refused first, shortened, or empty."""

    def __init__(self, message: str, line: str = "") -> None:
        super().__init__(f"{message}: {line}" if line else message)
        self.message = message
        self.line = line


class UnknownListing(NftFailed):
    """nft lists something that is no JSON, as one does that was built without it."""


_LINE_LENGTH: Final = 200


def judge_failure(stderr: str, script: str) -> NftFailed:
    """What nft's words mean for the script that it was given; lines count from 1."""
    place = _PLACE.search(stderr)
    message = place[2] if place else (stderr.split("\n", 1)[0].strip() or "nft failed without a word")
    if "Operation not permitted" in stderr:
        return NotPermitted(message)
    if any(words in stderr for words in _TRANSIENT):
        return Busy(message)
    line = _line(script, int(place[1])) if place and place[1] else ""
    # A new table has all that its chains and rules name; what is missing is then the kernel's.
    if message.endswith(NOT_THERE) and line and not line.startswith(_OF_ELEMENTS):
        return NoNfTables(f"{message}: {line}")
    if any(words in stderr for words in _NOT_SUPPORTED):
        return NoNfTables(f"{message}: {line}" if line else message)
    return Refused(message, line)


def _line(script: str, number: int) -> str:
    lines = script.splitlines()
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return line if len(line) <= _LINE_LENGTH else f"{line[:_LINE_LENGTH]}..."
