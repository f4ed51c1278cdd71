"""Public addresses that no status names, where many claimed names lead: perhaps that of the owner's router.

The law: pure, and nothing is guessed: a CDN looks the same, so that a hint asks the operator. A name counts once,
whatever its types, and once for each of its addresses.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable
from heapq import nsmallest
from ipaddress import ip_address
from typing import Final

import msgspec

from dnsproxy.dns.addresses import parse_address
from dnsproxy.hostnames.verdict import LedElsewhere
from sidecar.values.text import cut_list

MOST: Final = 5
"""Addresses that are named."""
MOST_EXAMPLES: Final = 3
ENOUGH: Final = 3
"""Names that lead to an address that is named; if fewer than twice as many were asked, half of those are enough."""


class UnknownAddress(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An address that no status names. The field names are keys of the JSON of `/subjects` and `/steering`."""

    address: str
    hostnames: int
    """How many of the asked names lead to it."""
    asked: int
    """How many claimed names were asked lately."""
    examples: tuple[str, ...]
    """The first of the names that lead to it, in the order of the alphabet."""
    subject: str = ""
    """The class or Gateway that most of them belong to, if the target `auto` decides about them."""

    @property
    def sentence(self) -> str:
        """What an operator reads, without a full stop."""
        leads = "lead" if self.hostnames > 1 else "leads"
        counted = f"{self.hostnames} of {self.asked} asked hosts {leads} to {self.address}, which no status names"
        return f"{counted}; if it is your router, name it, if it is a CDN, leave it"

    @property
    def shown(self) -> str:
        """The sentence, with how to name the address, and the examples."""
        named = f"`--trust {self.address}` or the chart's dns.publicAddresses names it"
        return f"{self.sentence} ({named}; such as {cut_list(self.examples)})"


class AddressTally:
    """Counts the names that lead elsewhere, by address."""

    def __init__(self) -> None:
        self.names = 0
        self._counts: Counter[str] = Counter()
        self._enough: set[str] = set()
        """The addresses with at least ENOUGH names."""
        self._examples: dict[str, list[str]] = {}
        self._subjects: dict[str, Counter[str]] = {}

    def add(self, one: LedElsewhere, subject: str) -> None:
        """Count a name, which was not counted before, and the subject of its claim; empty if it has none."""
        self.names += 1
        # 127.0.0.1 and the like are no router's, and no reader of the document takes them.
        for address in filter(_is_nameable, dict.fromkeys(one.leads)):
            self._counts[address] += 1
            if self._counts[address] >= ENOUGH:
                self._enough.add(address)
            examples = self._examples.setdefault(address, [])
            insort(examples, one.hostname)
            del examples[MOST_EXAMPLES:]
            self._subjects.setdefault(address, Counter())[subject] += 1

    def find_unknown(self, asked: int) -> tuple[UnknownAddress, ...]:
        """The addresses worth a hint, those with the most names first; `asked` claimed names were asked lately."""
        asked = max(asked, self.names)
        enough = min(ENOUGH, (asked + 1) // 2)
        able = self._enough if enough == ENOUGH else [one for one in self._counts if self._counts[one] >= enough]
        first = nsmallest(MOST, able, key=lambda address: (-self._counts[address], address))
        return tuple(self._shown(address, asked) for address in first)

    def _shown(self, address: str, asked: int) -> UnknownAddress:
        subjects = self._subjects[address]
        return UnknownAddress(
            address=address,
            hostnames=self._counts[address],
            asked=asked,
            examples=tuple(self._examples[address]),
            subject=min(subjects, key=lambda subject: (-subjects[subject], subject)),
        )


def _is_nameable(address: str) -> bool:
    try:
        return parse_address(address) == address and not ip_address(address).is_loopback
    except ValueError:
        return False


def merge_unknown(documents: Iterable[Iterable[UnknownAddress]]) -> tuple[UnknownAddress, ...]:
    """The addresses of several servers; of one that several name, what the server with the most of its names says."""
    found: dict[str, UnknownAddress] = {}
    for document in documents:
        for one in document:
            other = found.get(one.address, one)
            found[one.address] = max(one, other, key=lambda each: (each.hostnames, each.asked, each.examples))
    return tuple(nsmallest(MOST, found.values(), key=lambda one: (-one.hostnames, one.address)))
