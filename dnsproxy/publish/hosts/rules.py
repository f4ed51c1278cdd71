"""Which names of a table a hosts file takes: the owner's zones, and what is refused within them.

The law: without a zone there is nothing to take. What the owner names exactly (`named`) is taken although it is
protected; what the owner denies is never taken. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dnsproxy.dns.names import parse_zone
from dnsproxy.publish.hosts.protected_names import is_at_or_below, is_protected

ROOT: Final = "."
"""The zone of all names."""
MOST_NAMES: Final = 10_000
"""The C library reads the whole file for each look-up: 10,000 lines take a millisecond."""
NO_ZONE: Final = (
    "--zone (DNSPROXY_ZONE) is not set, or empty: a hosts file needs at least one zone: the names that this node takes "
    "from the cluster, such as that of its own registry (--zone registry.example.org, or "
    "DNSPROXY_ZONE=registry.example.org; in a cluster, in the ConfigMap node-hosts-settings). Any other name that an "
    "object of the cluster claims is then ignored. `--zone .` takes all of them"
)


@dataclass(frozen=True, slots=True)
class Rules:
    """The owner's choice. All names in normal form."""

    zones: frozenset[str]
    """Names at or below one of them are taken; ROOT for all names."""
    allow: frozenset[str] = frozenset()
    """Protected names that are taken, exactly these."""
    deny: frozenset[str] = frozenset()
    """Names that are never taken, nor the names below them."""
    most: int = MOST_NAMES
    """More names than this are never written."""

    def is_inside(self, hostname: str) -> bool:
        """Whether a name is at or below one of the zones."""
        return ROOT in self.zones or is_at_or_below(hostname, self.zones)

    def is_refused(self, hostname: str) -> bool:
        """Whether a name inside the zones is not taken."""
        if is_at_or_below(hostname, self.deny):
            return True
        return is_protected(hostname) and not self.is_named(hostname)

    def is_named(self, hostname: str) -> bool:
        """Whether the owner has named exactly this name."""
        return hostname in self.zones or hostname in self.allow


def parse_zone_or_root(text: str) -> str:
    """A zone in normal form, or ROOT. Raises BadName."""
    return ROOT if text.strip() == ROOT else parse_zone(text)
