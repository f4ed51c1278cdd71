"""Checks the zones to install: whether a server block or a stub domain may serve them, and which forward does today.

The law: CoreDNS does not start with two blocks for one zone, and the block with the longest key gets all queries for a
name; so a zone that is served already, and the cluster's own zones, are refused before anything is written. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.routes import Route, Routes, ServedKey, is_strictly_below
from dnsproxy.corefile.model import listed
from dnsproxy.corefile.zones import ROOT, is_at_or_below, normalize_zone
from dnsproxy.hostnames.cluster_domains import USUAL

REVERSE: Final = ("in-addr.arpa.", "ip6.arpa.")

_OTHER: Final = "choose another --zone, or its names would no longer resolve as they do now"
# Plugins that answer or change names of any zone; queries for a block of their own do not pass through them.
_BYPASSED: Final = (
    *("acl", "auto", "clouddns", "azure", "dns64", "etcd", "file", "hosts", "k8s_external", "rewrite"),
    *("route53", "secondary", "template", "view"),
)


def check_named(zones: Sequence[str], why: str) -> None:
    """Raises ChangeRefused if no zone is named, or the root is among them."""
    if not zones or ROOT in map(normalize_zone, zones):
        raise ChangeRefused(f"zones have to be named: {why}", "name them with --zone")


def check_free(zones: Iterable[str], routes: Routes) -> None:
    """Raises ChangeRefused for a zone that a server block serves, itself or as a part of a larger zone."""
    for zone in zones:
        normal = normalize_zone(zone)
        _check_not_clusters(zone, _cluster_zones(routes))
        for served in routes.keys:
            if served.zone == normal:
                reason = f"{zone} is served by a server block already, and CoreDNS refuses a second one"
                raise _served_already(reason, served, zone)
            if not served.is_root_block and is_at_or_below(normal, served.zone):
                reason = f"{zone} is served by the server block of {served.key.text}"
                raise _served_already(reason, served, zone)


def _served_already(reason: str, served: ServedKey, zone: str) -> ChangeRefused:
    remedy = "put the forward into that block, or choose another --zone"
    return ChangeRefused(reason, remedy, place=served.place, zone=zone)


def check_not_clusters(zones: Iterable[str]) -> None:
    """Raises ChangeRefused for the usual zones of a cluster, if there is no Corefile that names the real ones."""
    for zone in zones:
        _check_not_clusters(zone, [*map(normalize_zone, USUAL), *REVERSE])


def route_of(zone: str, routes: Sequence[Route], named: Sequence[str]) -> Route:
    """The forward that ours replaces for a zone. Raises ChangeRefused if there is none, or ours would hide others."""
    normal = normalize_zone(zone)
    others = {normalize_zone(other) for other in named}
    for route in routes:
        if route.forward.serves(normal):
            return route
        inner = route.forward.zone
        if inner is None or (is_strictly_below(inner, normal) and inner not in others):
            reason = f"names below {zone} go to {route}, and would no longer"
            raise ChangeRefused(reason, f"add --zone {route.forward.zone_text}, or name other zones", zone=zone)
    reason = f"no forward serves {zone}, so there are no upstreams to fall back on"
    raise ChangeRefused(reason, "choose another --zone", zone=zone)


def notes_on_keys(zones: Iterable[str], keys: Iterable[ServedKey]) -> Iterator[str]:
    """A note on the names below the zones that never reach dnsproxy."""
    normal = list(map(normalize_zone, zones))
    inner = [
        served
        for served in keys
        if not served.is_root_block and any(is_strictly_below(served.zone, zone) for zone in normal)
    ]
    if inner:
        named = listed([f"{served.key.text} ({served.place})" for served in inner])
        yield f"names of these server blocks never reach dnsproxy: {named}"


def notes_on_plugins(
    routes: Routes, names: str = "names of these zones", plugins: Sequence[str] = _BYPASSED
) -> Iterator[str]:
    """A note on the directives of the block of `.` that the names of a new block, or other names, bypass."""
    directives = routes.named(*plugins)
    if directives:
        named = listed([f"{placed.directive.name} ({placed.place})" for placed in directives])
        yield f"{names} bypass these directives of the block of .: {named}"


def _check_not_clusters(zone: str, clusters: Sequence[str]) -> None:
    normal = normalize_zone(zone)
    for cluster in clusters:
        if is_at_or_below(normal, cluster) or is_at_or_below(cluster, normal):
            raise ChangeRefused(f"{zone} contains the cluster's own names ({cluster})", _OTHER, zone=zone)


def _cluster_zones(routes: Routes) -> list[str]:
    """The zones of the plugin kubernetes in the block of `.`."""
    found: list[str] = []
    for placed in routes.named("kubernetes"):
        for word in placed.directive.arguments:
            try:
                found.append(normalize_zone(word.text))
            except ValueError:
                continue
    return [*(zone for zone in found if zone != ROOT), *REVERSE]
