"""The cluster domains of a Corefile: the zones of its plugin `kubernetes`.

The law: pure. Reverse zones are none, and neither is `.`. Without zones of its own the plugin has those of its server
block (CoreDNS, plugin/kubernetes/README.md). A word that depends on CoreDNS's environment, and an imported file, may
hide others: then the zones are not all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dnsproxy.corefile.model import Corefile, Directive, ServerBlock
from dnsproxy.corefile.zones import ROOT, has_environment, is_at_or_below, parse_origin

_REVERSE: Final = ("in-addr.arpa.", "ip6.arpa.")


@dataclass(frozen=True, slots=True)
class ClusterZones:
    """The cluster domains that a Corefile names."""

    zones: tuple[str, ...]
    """In lower case and without a final dot, each once, in the order of the file."""
    complete: bool = True
    """False if there may be others that the file does not show."""


def cluster_zones(corefile: Corefile) -> ClusterZones:
    """The cluster domains of all server blocks."""
    texts = [text for block in corefile.blocks for text in _zone_texts(block)]
    zones = (_domain(text) for text in texts)
    hidden = any(map(has_environment, texts)) or (not texts and _imports_files(corefile))
    return ClusterZones(tuple(dict.fromkeys(zone for zone in zones if zone is not None)), complete=not hidden)


def block_zones(block: ServerBlock) -> tuple[str, ...]:
    """The cluster domains that one server block answers."""
    zones = (_domain(text) for text in _zone_texts(block))
    return tuple(dict.fromkeys(zone for zone in zones if zone is not None))


def _zone_texts(block: ServerBlock) -> Iterator[str]:
    for directive in block.named("kubernetes"):
        yield from _texts_of(directive, block)


def _imports_files(corefile: Corefile) -> bool:
    return bool(corefile.imports) or any(block.imports for block in corefile.blocks)


def _texts_of(directive: Directive, block: ServerBlock) -> list[str]:
    own = [word.text for word in directive.arguments]
    return own or [key.token.text for key in block.keys]


def _domain(text: str) -> str | None:
    try:
        zone = parse_origin(text).zone
    except ValueError:
        return None
    # A network in CIDR notation stands for its reverse zones.
    if zone is None or zone == ROOT or "/" in zone or any(is_at_or_below(zone, one) for one in _REVERSE):
        return None
    return zone.removesuffix(".")
