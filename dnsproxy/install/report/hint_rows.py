"""The hints in the status: rows of the table and values of the JSON document.

The law: both show the same. A hint is neither good nor bad, because a router looks like a CDN, and a wildcard may be
meant; so the verdict does not depend on it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from dnsproxy.hostnames.public_addresses import UnknownAddress
from dnsproxy.hostnames.wide_wildcards import WideWildcard
from dnsproxy.install.report.comparison import Row


@dataclass(frozen=True, slots=True)
class Hints:
    """What dnsproxy's pods say that an operator should know about their names."""

    unknown_addresses: tuple[UnknownAddress, ...] = ()
    wide: tuple[WideWildcard, ...] = ()
    unknown: str = ""
    """Why none of the pods has said it; empty if one has, and if there is no pod."""


def rows_of_hints(hints: Hints) -> Iterator[Row]:
    """Nothing without hints."""
    for address in hints.unknown_addresses:
        yield Row("address", "?", address.shown)
    for wildcard in hints.wide:
        yield Row("wildcard", "", wildcard.sentence)
    if hints.unknown:
        yield Row("hints", "?", f"where the asked names lead, and which wildcards are wide: {hints.unknown}")


def format_hints(hints: Hints) -> dict[str, Any]:
    """The hints as JSON values."""
    return {
        "unknown_addresses": msgspec.to_builtins(hints.unknown_addresses),
        "wide": msgspec.to_builtins(hints.wide),
        "unknown": hints.unknown,
    }
