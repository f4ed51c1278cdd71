"""Reads earlier mappings from a table that was read from the kernel.

The law: elements that are not understood are ignored, because the table is repaired anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from wholeip.mappings.plan import NOTHING_IN_USE, InUse
from wholeip.ruleset.ruleset import Ruleset

_VERSIONS = ("v4", "v6")


def in_use_of(ruleset: Ruleset | None) -> InUse:
    """The pods and their addresses; the table does not have the Services."""
    if ruleset is None:
        return NOTHING_IN_USE
    return frozenset((None, ip_address(address), ip_address(pod)) for address, pod in _pairs(ruleset))


def address_count(ruleset: Ruleset | None) -> int:
    """The number of addresses in the table, which is about the number of Services."""
    return 0 if ruleset is None else sum(len(ruleset.elements.get(f"addresses_{version}", ())) for version in _VERSIONS)


def _pairs(ruleset: Ruleset) -> Iterator[tuple[str, str]]:
    for version in _VERSIONS:
        yield from ruleset.elements.get(f"whole_{version}", {}).items()
        yield from ruleset.elements.get(f"icmp_{version}", {}).items()
        for key, pod in ruleset.elements.get(f"ports_{version}", {}).items():
            yield key.partition(" ")[0], pod
        for pod, address in ruleset.elements.get(f"egress_{version}", {}).items():
            yield address, pod
