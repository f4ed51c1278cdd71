"""Zones of our own: whether a server block, or a stub domain, may be made for them, and whom they go to today.

The law: CoreDNS refuses to start with two blocks for one zone, and the longest key takes a name away from all others;
so a zone that somebody serves, and the cluster's own, are refused before anything is written. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dnsproxy.corefile.model import listed
from dnsproxy.corefile.zones import ROOT, is_at_or_below, normalize_zone
from dnsproxy.install.change.refusal import Refusal
from dnsproxy.install.change.routes import Route, Routes, ServedKey, is_strictly_below

REVERSE: Final = ("in-addr.arpa.", "ip6.arpa.")
CLUSTER_DOMAIN: Final = "cluster.local."
"""What kube-dns serves, unless it is told another."""

_OTHER: Final = "choose another --zone, or none of its names will resolve as they do now"
# Plugins that answer, or change, names of any zone; a block of its own does not pass through them.
_PASSED_BY: Final = (
    *("acl", "auto", "clouddns", "azure", "dns64", "etcd", "file", "hosts", "k8s_external", "rewrite"),
    *("route53", "secondary", "template", "view"),
)


def check_named(zones: Sequence[str], why: str) -> None:
    """Raises Refusal where no zone is named, or all names are meant."""
    if not zones or ROOT in map(normalize_zone, zones):
        raise Refusal(f"zones have to be named: {why}", "name them with --zone")


def check_free(zones: Iterable[str], routes: Routes) -> None:
    """Raises Refusal for a zone that a server block has, or that lies in one that another block has."""
    for zone in zones:
        normal = normalize_zone(zone)
        _check_not_clusters(zone, _cluster_zones(routes))
        for served in routes.keys:
            if served.zone == normal:
                reason = f"{zone} is served by a server block already, and CoreDNS refuses a second one"
                raise Refusal(reason, "put the forward into that block, or choose another --zone", place=served.place)
            if not served.is_root_block and is_at_or_below(normal, served.zone):
                reason = f"{zone} is served by the server block of {served.key.text}"
                raise Refusal(reason, "put the forward into that block, or choose another --zone", place=served.place)


def check_not_clusters(zones: Iterable[str]) -> None:
    """Raises Refusal for zones of the cluster itself, where no Corefile tells which those are."""
    for zone in zones:
        _check_not_clusters(zone, [CLUSTER_DOMAIN, *REVERSE])


def route_of(zone: str, routes: Sequence[Route], named: Sequence[str]) -> Route:
    """The forward whose place ours takes for a zone. Raises Refusal where there is none, or ours would hide others."""
    normal = normalize_zone(zone)
    others = {normalize_zone(other) for other in named}
    for route in routes:
        if route.forward.serves(normal):
            return route
        inner = route.forward.zone
        if inner is None or (is_strictly_below(inner, normal) and inner not in others):
            reason = f"names below {zone} go to {route}, and would not any more"
            raise Refusal(reason, f"add --zone {route.forward.zone_text}, or name other zones")
    raise Refusal(f"no forward serves {zone}, so there are no upstreams to fall back on", "choose another --zone")


def notes_on_keys(zones: Iterable[str], keys: Iterable[ServedKey]) -> Iterator[str]:
    """Which names below the zones never come to dnsproxy."""
    normal = list(map(normalize_zone, zones))
    inner = [
        served
        for served in keys
        if not served.is_root_block and any(is_strictly_below(served.zone, zone) for zone in normal)
    ]
    if inner:
        named = listed([f"{served.key.text} ({served.place})" for served in inner])
        yield f"names of these server blocks never come to dnsproxy: {named}"


def notes_on_plugins(routes: Routes) -> Iterator[str]:
    """What of the block of `.` does not see the names of a block of our own."""
    steps = routes.named(*_PASSED_BY)
    if steps:
        named = listed([f"{step.directive.name} ({step.place})" for step in steps])
        yield f"names of these zones no longer pass through what stands in the block of .: {named}"


def _check_not_clusters(zone: str, clusters: Sequence[str]) -> None:
    normal = normalize_zone(zone)
    for cluster in clusters:
        if is_at_or_below(normal, cluster) or is_at_or_below(cluster, normal):
            raise Refusal(f"{zone} has the cluster's own names in it ({cluster})", _OTHER)


def _cluster_zones(routes: Routes) -> list[str]:
    """What the plugin kubernetes answers in the block of `.`."""
    found: list[str] = []
    for step in routes.named("kubernetes"):
        for word in step.directive.arguments:
            try:
                found.append(normalize_zone(word.text))
            except ValueError:
                continue
    return [*(zone for zone in found if zone != ROOT), *REVERSE]
