"""The answering claim: by which claim the table answers a hostname, be it through a wildcard.

The law: pure; the same choice as that of a look-up in the table (answers/table.py), without its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from dnsproxy.dns.names import Reach, is_within
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.wildcard_bar import covering


def answering_claim(registry: Registry, hostname: str) -> Claim | None:
    """The claim that has the row of a hostname, which is no wildcard; also while no endpoint of its target is ready."""
    if hostname in registry.denied:
        return None
    own = registry.verdict(hostname, Reach.NAME).owner
    if own is not None or registry.is_barred(hostname):
        return own
    wildcards = covering(hostname, lambda name, reach: registry.verdict(name, reach).owner)
    first = next(wildcards, None)
    return None if first is None or _is_kept_out(hostname, first.hostname, registry.closed) else first


def _is_kept_out(hostname: str, wildcard: str, closed: Sequence[str]) -> bool:
    """Whether a search domain is between a wildcard and the hostname."""
    parent = wildcard.removeprefix("*.")
    return any(is_within(hostname, domain) and not is_within(parent, domain) for domain in closed)
