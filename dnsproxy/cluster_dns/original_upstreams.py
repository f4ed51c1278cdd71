"""Original upstreams: where a cluster's DNS forwards without the stanza, compared with where dnsproxy forwards.

The law: equal upstreams are no difference, and what could not be read or asked is unknown, never equal. A dnsproxy
reports where it forwards in its answer to a probe; one without that report is unknown too. No content of a cluster
raises an exception.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dnsproxy.cluster_dns.found import Found, FoundCorefile, Server, StubDomains
from dnsproxy.cluster_dns.probe_results import ProbeResult
from dnsproxy.cluster_dns.traces import ANNOTATION
from dnsproxy.corefile.forward_directive import Forward
from dnsproxy.corefile.markers import is_marked, without_region
from dnsproxy.corefile.model import Corefile, CorefileError, Import, Scope
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import find_root_block
from dnsproxy.corefile.stanza import format_address
from dnsproxy.corefile.upstream_form import NODE
from dnsproxy.corefile.upstream_routes import (
    Routes,
    UpstreamRoute,
    differences,
    forwards_of,
    in_pods,
    route_for,
    routes_of,
    routes_of_stub_domains,
    seen_from,
    with_root,
)
from dnsproxy.corefile.zones import ROOT
from sidecar.values.endpoints import Endpoint

ACCEPT: Final = "--accept-upstreams"
_PLACEHOLDER: Final = "__PILLAR__UPSTREAM__SERVERS__"
"""In the template of node-cache: it stands for upstreamNameservers, else for the node's nameservers."""


@dataclass(frozen=True, slots=True)
class OriginalUpstreams:
    """Where a cluster's DNS forwards without the stanza."""

    source: str
    """The ConfigMap, `NAMESPACE/NAME`; empty if none was found."""
    routes: Routes
    """Empty if they are unknown."""
    fault: str = ""
    """Why they are unknown."""
    own_resolv_conf: str = ""
    """The server whose pods have another resolv.conf than the node, if a route depends on that; else empty."""

    def faults(self, zones: Iterable[str]) -> list[str]:
        """Why dnsproxy cannot forward the names of these zones to their upstreams; empty if it can."""
        routes = {route: None for zone in zones if (route := route_for(zone, self.routes)) and route.fault}
        return [f"{self.source}, line {route.line}: {route.fault}" for route in routes]

    @property
    def remedy(self) -> str:
        """What makes dnsproxy forward there."""
        if self.own_resolv_conf:
            return f"the resolv.conf of {self.own_resolv_conf} is not the node's: name its servers with --upstream"
        return f"start dnsproxy serve with --upstream-configmap {self.source}, or name them with --upstream"


@dataclass(frozen=True, slots=True)
class UpstreamCheck:
    """The comparison with what dnsproxy does."""

    original: OriginalUpstreams
    differences: tuple[str, ...] = ()
    unknown: str = ""
    """Why there is no comparison; empty if there is one."""
    asked: bool = False
    """Whether a dnsproxy answered."""


def find_original(found: Found, dnsproxy: Sequence[Endpoint] = ()) -> OriginalUpstreams:
    """Where the server that decides about public names forwards, without the stanza.

    `dnsproxy`: where it is asked. If that is on loopback alone, both have one network, and its loopback addresses.
    """
    server = found.asked_by_pods
    if server is None:
        return OriginalUpstreams("", (), "the server of the cluster's DNS is unknown")
    if server.corefile is None and server.stub_domains is None:
        return OriginalUpstreams("", (), f"the configuration of {server} is unknown")
    # node-cache puts addresses into its Corefile itself: what it takes them from can be followed.
    source = str((server.stub_domains or server.corefile).source)  # type: ignore[union-attr]
    try:
        routes = routes_without_stanza(server)
    except CorefileError as error:
        return OriginalUpstreams(source, (), f"ConfigMap {source}, line {error.line}: {error.reason}")
    known = any(route.zone == ROOT for route in routes)
    fault = "" if known else f"the server block of . in {source} has no `forward .`"
    placed = seen_from(dnsproxy, (_without_ours(_in_pods(route, server), dnsproxy) for route in routes))
    reads = any(upstream.endswith(NODE) for route in routes for upstream in route.upstreams)
    differs = reads and server.nameservers != (NODE,)
    return OriginalUpstreams(source, placed, fault, str(server) if differs else "")


def check_upstreams(original: OriginalUpstreams, zones: Iterable[str], answers: Sequence[ProbeResult]) -> UpstreamCheck:
    """Compare the upstreams of some zones with the reports in dnsproxy's answers."""
    reports = {one.forwards for answer in answers for one in answer.outcomes if one.ours}
    if not reports:
        where = ", ".join(dict.fromkeys(format_address(answer.endpoint) for answer in answers)) or "no known address"
        return UpstreamCheck(original, unknown=f"no dnsproxy answers from here at {where}")
    if original.fault:
        return UpstreamCheck(original, unknown=original.fault, asked=True)
    found: dict[str, None] = {}
    zones = tuple(zones)
    for report in sorted(one for one in reports if one is not None):
        try:
            found |= dict.fromkeys(differences(zones, original.routes, report))
        except ValueError:
            return UpstreamCheck(original, unknown="dnsproxy reports it in an unknown form", asked=True)
    unknown = "a dnsproxy does not report where it forwards: it is older" if None in reports and not found else ""
    return UpstreamCheck(original, tuple(found), unknown, asked=True)


def _without_ours(route: UpstreamRoute, dnsproxy: Sequence[Endpoint]) -> UpstreamRoute:
    """A route with a fault if dnsproxy is among its upstreams: it would ask itself, by another pod at the least."""
    ours = [one for one in map(format_address, dnsproxy) if one in route.upstreams]
    if not ours:
        return route
    return replace(route, upstreams=(), fault=f"{ours[0]} is dnsproxy itself, as in a stanza that was changed by hand")


def _in_pods(route: UpstreamRoute, server: Server) -> UpstreamRoute:
    if server.nameservers:
        return in_pods(route, server.nameservers)
    if any(upstream.endswith(NODE) for upstream in route.upstreams):
        return replace(route, upstreams=(), fault=f"{NODE} of {server} is in a ConfigMap")
    return route


def routes_without_stanza(server: Server) -> Routes:
    """Where a server forwards without the stanza, imported files included. Raises CorefileError."""
    stub = server.stub_domains
    if server.corefile is None:
        return _stub_routes(stub) if stub is not None else ()
    if stub is None:
        routes = routes_of(_forwards(server.corefile, server.corefile.text))
        try:
            return with_root(routes, parse_corefile(server.corefile.text))
        except CorefileError:
            return routes
    text = server.corefile.text.replace(_PLACEHOLDER, " ".join(stub.upstreams or (NODE,)))
    return (*_stub_routes(stub)[:-1], *routes_of(_forwards(server.corefile, text)))


def _stub_routes(stub: StubDomains) -> tuple[UpstreamRoute, ...]:
    annotations = (stub.source.object.metadata.annotations if stub.source.object else None) or {}
    return routes_of_stub_domains(stub.zones, stub.upstreams, ours=annotations.get(ANNOTATION, "").split())


def _forwards(corefile: FoundCorefile, text: str) -> Iterator[Forward]:
    """The forwards of the block of `.`, with those of imported files at the place of the import."""
    block = find_root_block(without_region(parse_corefile(text)))
    return forwards_of(block, lambda entry: _imported(corefile, entry))


def _imported(corefile: FoundCorefile, entry: Import) -> Iterator[Corefile]:
    pattern = posixpath.normpath(posixpath.join(posixpath.dirname(corefile.path), entry.pattern))
    for file in sorted(corefile.files, key=lambda one: one.path):
        matches = file.scope is Scope.ROOT_PLUGINS and fnmatch.fnmatchcase(file.path, pattern)
        if matches and file.value is not None and not is_marked(file.text):
            yield file.value
