"""The route `/subjects` of the admin port: which ingress classes and Gateways have hostnames at this server.

The law: that of counted_route.py, for the document of subjects_document.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dnsproxy.admin.counted_route import CountedRoute
from dnsproxy.admin.subjects_document import PATH, format_subjects
from dnsproxy.hostnames.claimed_subjects import ClaimedSubjects
from dnsproxy.hostnames.public_addresses import UnknownAddress
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.wide_wildcards import WideWildcard, find_wide


def subjects_route(registry: Registry, *, waiting_for: Callable[[], Sequence[str]]) -> CountedRoute:
    """Serves the subjects of a registry; `waiting_for`: the sources that have not reported everything yet."""
    claimed = ClaimedSubjects(registry)

    def beside() -> tuple[tuple[UnknownAddress, ...], tuple[WideWildcard, ...]]:
        return registry.outcomes.unknown_addresses, find_wide(registry)

    def write(waiting_for: Sequence[str]) -> tuple[bytes, str]:
        unknown_addresses, wide = beside()
        return format_subjects(
            claimed.subjects(),
            left_out=claimed.left_out,
            waiting_for=waiting_for,
            unknown_addresses=unknown_addresses,
            wide=wide,
        )

    return CountedRoute(PATH, registry, claimed, write=write, waiting_for=waiting_for, beside=beside)
