"""The choice of upstreams: from the routes of a ConfigMap and the nameservers of a resolv.conf to ForwardSettings.

The law: a route without a fault is followed exactly; names without such a route go to the node's nameservers. No
upstream is an address that this server listens on. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from dnsproxy.corefile.stanza import format_address
from dnsproxy.corefile.upstream_form import NODE, TCP
from dnsproxy.corefile.upstream_routes import (
    Routes,
    UpstreamRoute,
    format_routes,
    usable_routes,
)
from dnsproxy.corefile.zones import ROOT
from dnsproxy.dns.names import to_wire
from dnsproxy.forward.settings import ForwardSettings, TcpEndpoint, ZoneUpstreams, parse_upstream, split_own
from sidecar.values.endpoints import Endpoint

_ATTEMPTS: Final = ForwardSettings(()).attempts


def choose_upstreams(
    routes: Routes, *, node: ForwardSettings, listening: Collection[Endpoint] = ()
) -> ForwardSettings | None:
    """The settings for these routes; `node` are those of the node's resolv.conf, with its nameservers.

    None if all upstreams for the names outside all zones are this server. A node without a nameserver has none.
    """
    usable = usable_routes(routes)
    root = next(route for route in usable if route.zone == ROOT)
    if root.upstreams == (NODE,):
        # Its options count too, such as `rotate`.
        settings = node
    else:
        settings = replace(
            node, upstreams=_endpoints(root, node), rotate=root.rotates, attempts=_ATTEMPTS, use_tcp=False
        )
    others = _without(settings.upstreams, listening)
    if settings.upstreams and not others:
        return None
    zones = (_zone(route, node=node, listening=listening) for route in usable if route is not root)
    return replace(settings, upstreams=others, zones=tuple(zone for zone in zones if zone is not None))


def describe_routes(routes: Routes) -> str:
    """Where a server with these routes forwards, as the answer to a probe says it."""
    return format_routes(usable_routes(routes))


def describe_upstreams(upstreams: Iterable[Endpoint]) -> str:
    """The same for a server with the upstreams of a flag."""
    shown = tuple(format_address(one) if type(one) is Endpoint else str(one) for one in upstreams)
    return format_routes((UpstreamRoute(ROOT, shown),))


def _zone(route: UpstreamRoute, *, node: ForwardSettings, listening: Collection[Endpoint]) -> ZoneUpstreams | None:
    """The upstreams of a zone, none if the node has none; None if all of them are this server."""
    found = _endpoints(route, node)
    others = _without(found, listening)
    if found and not others:
        return None
    return ZoneUpstreams(_wire(route.zone), others, tuple(map(_wire, route.excepted)), rotate=route.rotates)


def _endpoints(route: UpstreamRoute, node: ForwardSettings) -> tuple[Endpoint, ...]:
    found: dict[Endpoint, None] = {}
    for text in route.upstreams:
        if text == NODE:
            found |= dict.fromkeys(node.upstreams)
        elif text == TCP + NODE:
            found |= dict.fromkeys(TcpEndpoint(one.host, one.port) for one in node.upstreams)
        else:
            found[parse_upstream(text)] = None
    return tuple(found)


def _without(upstreams: Iterable[Endpoint], listening: Collection[Endpoint]) -> tuple[Endpoint, ...]:
    others, _ = split_own(upstreams, listening=listening)
    return others


def _wire(zone: str) -> bytes:
    # Not to_wire() for the first label: a zone `*.example.org` is that name alone, as in CoreDNS, and no wildcard.
    star = b"\1*" if zone.startswith("*.") else b""
    return star + to_wire(zone.removesuffix("."))
