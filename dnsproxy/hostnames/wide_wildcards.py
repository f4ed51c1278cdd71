"""Wide wildcards: those that cover a whole registrable domain, such as `*.example.org`, with their objects.

The law: pure. Other hosts of the domain, such as that of its mail server, are below the wildcard although the object
never meant them. Names of the operator's own are no objects', and not among these.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from dnsproxy.hostnames.outcomes import MOST_WIDE
from dnsproxy.hostnames.registry import Registry
from sidecar.values.text import cut

LONGEST_ORIGIN: Final = 1_000
"""Characters."""


class WideWildcard(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A wildcard with its object. The field names are keys of the JSON of `/subjects`."""

    hostname: str
    """The wildcard."""
    origin: str
    """The object that has it, such as `Ingress shop/web`."""
    verified: bool = False
    """Whether the names below it that lead elsewhere are passed on (`--ownership verify` or `enforce`)."""

    @property
    def sentence(self) -> str:
        """What an operator reads, without a full stop."""
        covers = f"the wildcard {self.hostname} of {self.origin} covers the whole domain {self.hostname[2:]}"
        if self.verified:
            return f"{covers}; with --ownership verify only names that lead here or have no record are answered"
        return f"{covers}; every name below it is answered, also one whose record leads elsewhere"


def find_wide(registry: Registry) -> tuple[WideWildcard, ...]:
    """The first answered wildcards that cover whole domains, at most MOST_WIDE, in the order of the alphabet."""
    return tuple(
        WideWildcard(
            hostname=claim.hostname,
            origin=cut(str(claim.origin), LONGEST_ORIGIN - 3),
            verified=registry.claimed(claim).is_conditional,
        )
        for claim in registry.outcomes.wide()
    )


def merge_wide(documents: Iterable[Iterable[WideWildcard]]) -> tuple[WideWildcard, ...]:
    """The wildcards of several servers, each once."""
    found = {one.hostname: one for document in documents for one in document}
    return tuple(found[hostname] for hostname in sorted(found)[:MOST_WIDE])
