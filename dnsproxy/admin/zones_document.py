"""The zones document: the zones that a server asks to be asked for, as small JSON.

The law: pure. A received document is a ZonesDocument or a ValueError, and each zone in it is a hostname in normal form,
because it becomes a line of a Corefile. Replicas with the same names send the same octets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from dnsproxy.dns.names import is_wildcard, parse_hostname
from dnsproxy.hostnames.claimed_zones import MOST

PATH: Final = "/zones"
LARGEST: Final = 1 << 20
"""Octets of a document."""


class ZonesDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The registrable zones of all hostnames that are claimed and allowed. The field names are keys of the JSON."""

    zones: tuple[str, ...]
    """Sorted, at most MOST."""
    left_out: int = 0
    """Hostnames whose zones are not in it, because there are MOST already."""
    waiting_for: tuple[str, ...] = ()
    """Sources that have not reported all their objects; until then zones may be missing."""

    @property
    def complete(self) -> bool:
        """Whether a zone that is not in it is not wanted."""
        return not self.left_out and not self.waiting_for


_DECODER: Final = msgspec.json.Decoder(ZonesDocument)


def format_zones(zones: Sequence[str], *, left_out: int = 0, waiting_for: Sequence[str] = ()) -> tuple[bytes, str]:
    """The document for sorted zones, and its entity tag without quotes."""
    document = ZonesDocument(zones=tuple(zones), left_out=left_out, waiting_for=tuple(waiting_for))
    octets = msgspec.json.encode(document) + b"\n"
    return octets, hashlib.sha256(octets).hexdigest()[:32]


def parse_zones(octets: bytes) -> ZonesDocument:
    """The document. Raises ValueError for any other one."""
    try:
        document = _DECODER.decode(octets)
    except RecursionError as error:
        raise ValueError(str(error)) from None
    if len(document.zones) > MOST:
        raise ValueError(f"it has more than {MOST:,} zones")
    for zone in document.zones:
        if is_wildcard(zone) or parse_hostname(zone) != zone:
            raise ValueError(f"{zone!a} is not a zone in normal form")
    return document
