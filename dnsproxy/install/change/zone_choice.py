"""The choice of zones: from the wanted zones and those of the stanza to those that an install writes.

The law: a zone leaves the stanza only on the word of a source that is complete; what is in the stanza keeps its place
when there are too many. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dnsproxy.corefile.zones import ROOT
from dnsproxy.hostnames.registrable import outermost, registrable_zones

MOST_ZONES: Final = 500
"""Zones in a stanza: each is a part of CoreDNS's configuration, which it reads again with each change."""


@dataclass(frozen=True, slots=True)
class ChosenZones:
    """The zones to write."""

    zones: tuple[str, ...]
    """Sorted, without a final dot."""
    kept: tuple[str, ...] = ()
    """Those that the source does not name, and the stanza has."""
    left_out: tuple[str, ...] = ()
    """Those beyond MOST_ZONES."""


def choose_zones(wanted: Iterable[str], standing: Iterable[str], *, complete: bool) -> ChosenZones:
    """The zones for those that a source wants and those of the stanza (`standing`, with a final dot).

    `complete`: whether a zone that the source does not name is not wanted.
    """
    asked = registrable_zones(wanted)
    there = {zone.removesuffix(".") for zone in standing if zone != ROOT}
    zones = asked if complete else outermost([*asked, *there])
    kept = tuple(zone for zone in zones if zone not in asked)
    ranked = sorted(zones, key=lambda zone: (zone not in there, zone))
    return ChosenZones(tuple(sorted(ranked[:MOST_ZONES])), kept, tuple(ranked[MOST_ZONES:]))
