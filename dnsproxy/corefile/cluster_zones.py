"""The cluster domains of a Corefile: the zones of its plugin `kubernetes`.

The law: pure. Reverse zones are none, and neither is `.`; a word that depends on CoreDNS's environment tells nothing.
Without zones of its own the plugin has those of its server block (CoreDNS, plugin/kubernetes/README.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dnsproxy.corefile.model import Corefile, Directive, ServerBlock
from dnsproxy.corefile.zones import ROOT, is_at_or_below, parse_origin

_REVERSE: Final = ("in-addr.arpa.", "ip6.arpa.")


def cluster_zones(corefile: Corefile) -> tuple[str, ...]:
    """The cluster domains in lower case and without a final dot, each once, in the order of the file."""
    return tuple(dict.fromkeys(zone for block in corefile.blocks for zone in _zones_of(block)))


def _zones_of(block: ServerBlock) -> Iterator[str]:
    for directive in block.named("kubernetes"):
        for text in _texts_of(directive, block):
            zone = _domain(text)
            if zone is not None:
                yield zone


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
