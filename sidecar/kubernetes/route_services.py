"""Route Services: Services in our own namespace whose annotations say what is relayed, and for whom.

The law: pure; each annotation has one parser, and one formatter where a program writes it. A route Service is the only
state that `dnsproxy serve`, the relay and their operator share.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from sidecar.values.text import quoted

FOR: Final = "switchback.dev/for"
"""Whose names are answered with the Service's addresses: subjects, separated by commas."""
RELAY_TO: Final = "switchback.dev/relay-to"
"""The backend, `NAMESPACE/NAME`; its ports are dialled at the port numbers of the route Service."""
PORT_BACKENDS: Final = "switchback.dev/port-backends"
"""Ports with another backend than RELAY_TO has: `22=git/ssh`, separated by commas."""
PROXY_PROTOCOL: Final = "switchback.dev/proxy-protocol"
"""The header that the relay adds: `v1`, or by port: `v1,22=none`."""
ENDPOINT_HEADERS: Final = "switchback.dev/endpoint-headers"
"""Single endpoints of the backend that take another header: `443@10.244.1.7=none`, separated by commas."""
BALANCERS: Final = "switchback.dev/balancers"
"""The addresses of the load balancer in front of the backend, separated by commas: not every controller writes them
into the statuses of its objects."""
RELEASED: Final = "switchback.dev/released"
"""Since when nobody needs the Service any more: RFC 3339 in UTC. Clients may know its addresses for a while."""

HEADERS: Final = ("v1", "v2", "none", "pass")
"""As the relay's flag --proxy-protocol has them."""
DEFAULT_HEADER: Final = "v1"

_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = rf"{_LABEL}(?:\.{_LABEL})*"
_SUBJECT: Final = re.compile(rf"ingressclass/(?P<ingress>{_NAME})|gateway/{_LABEL}/(?P<gateway>{_NAME})")
_BACKEND: Final = re.compile(rf"(?P<namespace>{_LABEL})/(?P<name>{_LABEL})")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_LONGEST: Final = 253
_HIGHEST_PORT: Final = 65_535


def ingress_class_subject(name: str) -> str:
    """The subject of an IngressClass."""
    return f"ingressclass/{name}"


def gateway_subject(namespace: str, name: str) -> str:
    """The subject of a Gateway."""
    return f"gateway/{namespace}/{name}"


def parse_subjects(text: str) -> tuple[str, ...]:
    """The value of FOR: `ingressclass/NAME` or `gateway/NAMESPACE/NAME`, separated by commas. Raises ValueError."""
    subjects = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for one in subjects:
        if not is_subject(one):
            raise ValueError(f"{quoted(one)} is not ingressclass/NAME or gateway/NAMESPACE/NAME")
    return subjects


def is_subject(text: str) -> bool:
    """Whether a text is `ingressclass/NAME` or `gateway/NAMESPACE/NAME`."""
    match = _SUBJECT.fullmatch(text)
    return match is not None and len(match["ingress"] or match["gateway"]) <= _LONGEST


def parse_relay_to(text: str) -> tuple[str, str]:
    """The value of RELAY_TO: namespace and name of the backend. Raises ValueError."""
    match = _BACKEND.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{quoted(text)} is not NAMESPACE/NAME")
    return match["namespace"], match["name"]


PortBackends = Mapping[int, tuple[str, str]]
"""Namespace and name of a backend by port of the route Service."""


def parse_port_backends(text: str) -> PortBackends:
    """The value of PORT_BACKENDS: `PORT=NAMESPACE/NAME`, separated by commas; may be empty. Raises ValueError."""
    found: dict[int, tuple[str, str]] = {}
    for part in _parts(text) if text.strip() else ():
        port, equals, backend = part.partition("=")
        if not equals:
            raise ValueError(f"{quoted(part)} is not PORT=NAMESPACE/NAME")
        number = _parse_port(port)
        if number in found:
            raise ValueError(f"{quoted(port)} is there twice")
        found[number] = parse_relay_to(backend)
    return found


def format_port_backends(backends: Mapping[int, str]) -> str:
    """The value of PORT_BACKENDS, from `NAMESPACE/NAME` by port."""
    return ",".join(f"{port}={backend}" for port, backend in sorted(backends.items()))


@dataclass(frozen=True, slots=True)
class PortHeaders:
    """The header of each port of a route Service."""

    default: str = DEFAULT_HEADER
    by_port: Mapping[int, str] = field(default_factory=dict)

    def of(self, port: int) -> str:
        """The header of a port."""
        return self.by_port.get(port, self.default)


def parse_headers(text: str) -> PortHeaders:
    """The value of PROXY_PROTOCOL: one header for all ports, and `PORT=HEADER`, with commas. Raises ValueError."""
    default, by_port = "", {}
    for part in _parts(text):
        port, equals, header = part.rpartition("=")
        if not equals and not default:
            default = _parse_header(header)
        elif equals and (number := _parse_port(port)) not in by_port:
            by_port[number] = _parse_header(header)
        else:
            raise ValueError(f"{quoted(part)} is there beside another header for the same ports")
    return PortHeaders(default or DEFAULT_HEADER, by_port)


def format_headers(headers: PortHeaders) -> str:
    """The value of PROXY_PROTOCOL."""
    return ",".join([headers.default, *(f"{port}={header}" for port, header in sorted(headers.by_port.items()))])


EndpointHeaders = Mapping[tuple[int, str], str]
"""The header by port of the route Service and address of an endpoint, in canonical form."""


def parse_endpoint_headers(text: str) -> EndpointHeaders:
    """The value of ENDPOINT_HEADERS: `PORT@ADDRESS=HEADER`, separated by commas; may be empty. Raises ValueError."""
    found: dict[tuple[int, str], str] = {}
    for part in _parts(text) if text.strip() else ():
        place, equals, header = part.rpartition("=")
        port, at, address = place.partition("@")
        if not equals or not at:
            raise ValueError(f"{quoted(part)} is not PORT@ADDRESS=HEADER")
        key = _parse_port(port), _parse_address(address)
        if key in found:
            raise ValueError(f"{quoted(place)} is there twice")
        found[key] = _parse_header(header)
    return found


def format_endpoint_headers(headers: EndpointHeaders) -> str:
    """The value of ENDPOINT_HEADERS."""
    return ",".join(f"{port}@{address}={header}" for (port, address), header in sorted(headers.items()))


MOST_BALANCERS: Final = 16
"""Addresses of one load balancer."""


def parse_balancers(text: str) -> tuple[str, ...]:
    """The value of BALANCERS: addresses in canonical form. Raises ValueError."""
    addresses = tuple(dict.fromkeys(map(_parse_address, _parts(text))))
    if len(addresses) > MOST_BALANCERS:
        raise ValueError(f"it has more than {MOST_BALANCERS} addresses")
    return addresses


def format_balancers(addresses: Iterable[str]) -> str:
    """The value of BALANCERS, as far as it has room."""
    return ",".join(sorted(addresses)[:MOST_BALANCERS])


def _parts(text: str) -> Iterator[str]:
    return (part.strip() for part in text.split(","))


def _parse_header(text: str) -> str:
    if text not in HEADERS:
        raise ValueError(f"{quoted(text)} is not a header; use {', '.join(HEADERS[:-1])} or {HEADERS[-1]}")
    return text


def _parse_port(text: str) -> int:
    if not _PORT.fullmatch(text) or int(text) > _HIGHEST_PORT:
        raise ValueError(f"{quoted(text)} is not a port")
    return int(text)


def _parse_address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f"{quoted(text)} is not an address") from None
