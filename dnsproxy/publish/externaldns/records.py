"""Records: what DNS is to say of each hostname of a publication.

The law: one record a hostname, with the addresses of both families; an order that depends on the names alone. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from dnsproxy.admin.publication import Name
from dnsproxy.dns.names import Reach


@dataclass(frozen=True, slots=True)
class Record:
    """One hostname."""

    hostname: str
    """In normal form, `*.` in front of a wildcard."""
    ipv4: tuple[str, ...]
    ipv6: tuple[str, ...]


def make_records(names: Iterable[Name]) -> list[Record]:
    """The records of the names, sorted by hostname.

    A wildcard of DNS covers any number of labels (RFC 4592); where a hostname is there with both reaches, the one for
    a single label gives the addresses, for those names are the ones that are asked.
    """
    chosen: dict[str, Name] = {}
    for name in names:
        if name.reach is not Reach.ANY_LABELS or name.hostname not in chosen:
            chosen[name.hostname] = name
    return [_record(chosen[hostname]) for hostname in sorted(chosen)]


def _record(name: Name) -> Record:
    families: dict[int, list[str]] = {4: [], 6: []}
    for address in name.addresses:
        families[ipaddress.ip_address(address).version].append(address)
    return Record(name.hostname, tuple(families[4]), tuple(families[6]))
