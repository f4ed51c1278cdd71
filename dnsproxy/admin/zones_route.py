"""The route `/zones` of the admin port: the zones that the cluster's DNS has to ask this server for.

The law: that of counted_route.py, for the document of zones_document.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dnsproxy.admin.counted_route import CountedRoute
from dnsproxy.admin.zones_document import PATH, format_zones
from dnsproxy.hostnames.claimed_zones import ClaimedZones
from dnsproxy.hostnames.registry import Registry


def zones_route(registry: Registry, *, waiting_for: Callable[[], Sequence[str]]) -> CountedRoute:
    """Serves the zones of a registry; `waiting_for`: the sources that have not reported everything yet."""
    claimed = ClaimedZones(registry)

    def write(waiting_for: Sequence[str]) -> tuple[bytes, str]:
        return format_zones(claimed.zones(), left_out=claimed.left_out, waiting_for=waiting_for)

    return CountedRoute(PATH, registry, claimed, write=write, waiting_for=waiting_for)
