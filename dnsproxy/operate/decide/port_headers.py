"""Port headers: which header each port of a controller's Service takes, from the probes of its endpoints.

The law: what a probe showed counts for the endpoint that was probed. A port demands the header if one endpoint does.
What was not probed yet, or whose probe was unclear, gets what it has had so far: no header, or that of its route.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from dnsproxy.doctor.judge.header_mode import CLEAR, HeaderMode
from dnsproxy.doctor.judge.web_ports import is_tls
from dnsproxy.operate.decide.facts import Facts, Probed, Route, ServiceFacts
from dnsproxy.operate.decide.neighbors import neighbor_ports
from sidecar.kubernetes.route_services import (
    EndpointHeaders,
    PortHeaders,
    format_headers,
    parse_endpoint_headers,
    parse_headers,
    parse_port_backends,
)
from sidecar.values.endpoints import Endpoint

NO_HEADER: Final = "none"
_FIRST: Final = "v1"
_PLAIN: Final = frozenset([HeaderMode.ACCEPTS, HeaderMode.REJECTS])
_UNCLEAR: Final = frozenset([HeaderMode.UNKNOWN, HeaderMode.SILENT])


class Demand(Enum):
    """What a port wants of a pod that connects to it."""

    HEADER = "demands the PROXY header"
    PLAIN = "takes plain connections"
    CLOSED = "accepts no connection"
    UNKNOWN = "does not show yet whether it demands the PROXY header"


@dataclass(frozen=True, slots=True)
class PortState:
    """One TCP port of a controller's Service."""

    port: int
    tls: bool | None
    """Whether it begins with TLS; None for a port that is no web port, and is never probed."""
    demand: Demand
    header: str
    """What the relay sends, if it relays this port."""
    exceptions: Mapping[str, str] = field(default_factory=dict)
    """By address of an endpoint: what the relay sends there instead."""
    evidence: str = ""
    mute: bool = False
    """Whether every endpoint was reached by a probe, and none has shown what it takes."""
    backend: str = ""
    """The Service `NAMESPACE/NAME` that has this port, if it is not the controller's."""


def port_states(service: ServiceFacts, facts: Facts, *, last: Route | None) -> tuple[PortState, ...]:
    """All TCP ports of a Service, and those of its neighbors; `last` is the route that we wrote for it."""
    before = _headers_before(service, last)
    exceptions = _exceptions_before(last) if before else {}
    own = [
        _judge(service, port.port, is_tls(port), facts, before=before.get(port.port), exceptions=exceptions)
        for port in sorted(service.service.ports, key=lambda one: one.port)
    ]
    return *own, *(_of_neighbor(port, key) for port, key in neighbor_ports(service, facts).items())


def lent_ports(route: Route) -> dict[int, PortState]:
    """The ports that a route has from neighbors."""
    try:
        backends = parse_port_backends(route.port_backends)
    except ValueError:
        return {}
    return {port: _of_neighbor(port, "/".join(backend)) for port, backend in backends.items()}


def own_headers(states: Iterable[PortState]) -> str:
    """The headers of the controller's own ports as text: what a handshake shows does not depend on a neighbor."""
    return format_headers(headers_of(one for one in states if not one.backend))


def own_headers_of(route: Route) -> str:
    """The same of a route Service; all that is written there if it cannot be read."""
    try:
        headers = parse_headers(route.headers)
    except ValueError:
        return route.headers
    lent = lent_ports(route)
    return format_headers(
        replace(headers, by_port={port: one for port, one in headers.by_port.items() if port not in lent})
    )


def port_backends(states: Iterable[PortState]) -> dict[int, str]:
    """The backends of the ports that are not the controller's, for the annotation."""
    return {one.port: one.backend for one in states if one.backend}


def endpoint_headers(states: Iterable[PortState]) -> EndpointHeaders:
    """The exceptions of all ports, for the annotation."""
    return {(one.port, address): header for one in states for address, header in one.exceptions.items()}


def headers_of(states: Iterable[PortState]) -> PortHeaders:
    """The headers of all ports, for the annotation: v1, and what differs from it."""
    return PortHeaders(_FIRST, {one.port: one.header for one in states if one.header != _FIRST})


def _of_neighbor(port: int, key: str) -> PortState:
    evidence = f"port {port} is that of {key} at the same address: relayed as it is"
    return PortState(port, None, Demand.PLAIN, NO_HEADER, evidence=evidence, backend=key)


def _headers_before(service: ServiceFacts, last: Route | None) -> dict[int, str]:
    if last is None or last.relay_to != service.key:
        return {}
    try:
        headers = parse_headers(last.headers)
    except ValueError:
        return {}
    return {one.port: headers.of(one.port) for one in last.ports}


def _exceptions_before(last: Route | None) -> EndpointHeaders:
    try:
        return parse_endpoint_headers(last.endpoint_headers) if last is not None else {}
    except ValueError:
        return {}


def _judge(
    service: ServiceFacts,
    port: int,
    tls: bool | None,
    facts: Facts,
    *,
    before: str | None,
    exceptions: EndpointHeaders,
) -> PortState:
    if tls is None:
        return PortState(port, None, Demand.PLAIN, NO_HEADER, evidence=f"port {port} is no web port: relayed as it is")
    endpoints = (service.endpoints or {}).get(port, ())
    seen = _seen(service, port, endpoints, facts)
    # A relay uses a leaving endpoint while it holds back its successor.
    leaving = _seen(service, port, service.leaving.get(port, ()), facts)
    complete = len(seen) == len(endpoints)
    demand = _demand([one.mode for one in seen.values()], complete=complete)
    # A relay holds back a new pod while the others get a header: it is probed meanwhile.
    header = _header(seen, before) if complete or before is None else before
    every = {**leaving, **seen}
    own = {place: found for place, one in every.items() if (found := _own_header(one, header)) is not None}
    # An endpoint that was not probed, or whose probe was unclear, keeps its exception, or gets what the others get.
    unknown = (place for place in (*endpoints, *service.leaving.get(port, ())) if place not in own)
    own |= {place: exceptions[port, place.host] for place in unknown if (port, place.host) in exceptions}
    evidence = f"port {port} {_told(demand, endpoints, seen)}"
    mute = bool(seen) and complete and all(one.reached and one.mode not in CLEAR for one in seen.values())
    return PortState(port, tls, demand, header, _exceptions(own, header), evidence, mute)


def _exceptions(own: Mapping[Endpoint, str], header: str) -> dict[str, str]:
    """By address: what differs from the port's header. Pods at one address that disagree have none."""
    found: dict[str, set[str]] = {}
    for place, one in own.items():
        found.setdefault(place.host, set()).add(one)
    return {host: next(iter(ones)) for host, ones in sorted(found.items()) if len(ones) == 1 and ones != {header}}


def _seen(service: ServiceFacts, port: int, endpoints: Iterable[Endpoint], facts: Facts) -> Mapping[Endpoint, Probed]:
    """The last probe of each endpoint that was probed."""
    places = {one: (service.key, port, one) for one in endpoints}
    return {one: facts.probes[place] for one, place in places.items() if place in facts.probes}


def _demand(modes: list[HeaderMode], *, complete: bool) -> Demand:
    if HeaderMode.REQUIRES in modes:
        return Demand.HEADER
    if not complete or not modes or _UNCLEAR.intersection(modes):
        return Demand.UNKNOWN
    return Demand.PLAIN if _PLAIN.intersection(modes) else Demand.CLOSED


def _header(seen: Mapping[Endpoint, Probed], before: str | None) -> str:
    """The header of a port: what most of those endpoints need that demand one, else what is best for the others."""
    wanted = [found for one in seen.values() if (found := _needed(one)) is not None]
    if wanted:
        return max(sorted(set(wanted)), key=wanted.count)
    modes = {one.mode for one in seen.values()}
    if modes and modes <= {HeaderMode.ACCEPTS}:
        # With the header, the controller still sees the pod's address.
        return _FIRST
    if HeaderMode.REJECTS in modes and not modes & _UNCLEAR:
        return NO_HEADER
    return before or NO_HEADER


def _needed(one: Probed) -> str | None:
    return (one.versions or (_FIRST,))[0] if one.mode is HeaderMode.REQUIRES else None


def _own_header(one: Probed, header: str) -> str | None:
    """What an endpoint gets, given the header of its port; None if that is unknown."""
    if one.mode is HeaderMode.ACCEPTS:
        return header if header in (*one.versions, NO_HEADER) else NO_HEADER
    if one.mode is HeaderMode.REQUIRES:
        return header if header in one.versions else _needed(one)
    return NO_HEADER if one.mode is HeaderMode.REJECTS else None


def _told(demand: Demand, endpoints: tuple[Endpoint, ...], seen: Mapping[Endpoint, Probed]) -> str:
    if not endpoints:
        return "has no ready endpoint"
    if not seen:
        return "was not probed yet"
    modes = [one.mode for one in seen.values()]
    if demand is Demand.HEADER and (count := modes.count(HeaderMode.REQUIRES)) < len(endpoints):
        return f"{demand.value} at {count} of {len(endpoints)} endpoints"
    detail = next(iter(seen.values())).detail
    return f"{demand.value}{f' ({detail})' if detail else ''}"
