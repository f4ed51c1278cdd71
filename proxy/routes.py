"""Routes: which port is relayed to which backend, with which header; and the flags that define them.

The law: pure. A backend here is text: a name, an address or a Service. proxy.backends finds its current addresses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from proxy.header.protocol import ProxyProtocol
from sidecar.values.endpoints import Endpoint, parse_endpoint, parse_port
from sidecar.values.host_port import HostPort, parse_host_port
from sidecar.values.text import quoted

ROUTE_FLAG = "--route"

ANY_HOST = "::"
"""The listening address of a route without one: all addresses, IPv4 included."""

SERVICE = "service:"
"""The prefix of a backend that is a Kubernetes Service."""

_MAXIMUM_NAME = 253
# A final dot makes a name absolute: the search list of resolv.conf is not used.
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?\Z")
# The names of namespaces, Services (RFC 1123, earlier RFC 1035) and their ports (RFC 6335) that the API server accepts.
# The API server itself enforces the limit of 15 bytes for the name of a port.
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_PROTOCOL_OPTION = "proxy-protocol"


@dataclass(frozen=True, slots=True)
class ServicePort:
    """A backend that consists of the current endpoints of a Service port."""

    namespace: str
    name: str
    port: int | str
    """The number or the name of the port."""

    def __str__(self) -> str:
        return f"{SERVICE}{self.namespace}/{self.name}:{self.port}"


@dataclass(frozen=True, slots=True)
class Route:
    """Connections to `listen` go to `backend`."""

    listen: Endpoint
    backend: HostPort | ServicePort
    proxy_protocol: ProxyProtocol | None = None
    """The header of these connections; None: that of all routes."""
    stated_port: int | None = None
    """The destination port in the header; None: the advertised or the listening one."""
    exceptions: tuple[tuple[str, ProxyProtocol], ...] = ()
    """Single addresses of the backend whose connections have another header."""
    services: tuple[str, ...] = ()
    """The route Services `NAMESPACE/NAME` that ask for it; empty for a route from a flag."""

    def __str__(self) -> str:
        option = "" if self.proxy_protocol is None else f",{_PROTOCOL_OPTION}={self.proxy_protocol}"
        return f"{self.listen}={self.backend}{option}"


class Quorum(StrEnum):
    """How many of the routes must reach their backends for the relay to be ready."""

    ANY = "any"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Listening:
    """The routes that listen on a port, on one address or on every one."""

    port: int
    host: str | None = None

    def covers(self, listen: Endpoint) -> bool:
        """Whether a route with this listening endpoint is meant."""
        return listen.port == self.port and self.host in {None, listen.host}

    def __str__(self) -> str:
        return str(self.port) if self.host is None else str(Endpoint(self.host, self.port))


ReadyWhen = tuple[Quorum | Listening, ...]
"""A single Quorum, or the routes that must all reach their backends."""


def parse_route(text: str) -> Route:
    """Parse `[ADDR:]PORT=BACKEND[,proxy-protocol=v1|v2|none|pass]`. Raises ValueError.

    BACKEND is `HOST:PORT`, with IPv6 addresses in brackets, or `service:NAMESPACE/NAME:PORT`.
    """
    listen, equals, rest = text.strip().partition("=")
    if not equals:
        raise ValueError(f"{quoted(text)} is not [ADDR:]PORT=HOST:PORT")
    backend, *options = rest.split(",")
    return Route(_parse_listen(listen), parse_backend(backend), _parse_options(options))


def parse_backend(text: str) -> HostPort | ServicePort:
    """Parse `HOST:PORT` or `service:NAMESPACE/NAME:PORT`. Raises ValueError."""
    return parse_service(text) if text.startswith(SERVICE) and "/" in text else parse_destination(text)


def parse_destination(text: str) -> HostPort:
    """Parse `HOST:PORT`, with an IPv6 address in brackets. Raises ValueError."""
    found = parse_host_port(text, parse_name=_parse_name)
    if text.startswith("[") and ":" not in found.host:
        raise ValueError(f"{quoted(text)}: brackets are for IPv6 addresses")
    return found


def parse_service(text: str) -> ServicePort:
    """Parse `service:NAMESPACE/NAME:PORT`; PORT is a number or a name. Raises ValueError."""
    namespace, _, rest = text.removeprefix(SERVICE).partition("/")
    name, colon, port = rest.partition(":")
    if not colon or not all(map(_LABEL.match, (namespace, name))):
        raise ValueError(f"{quoted(text)} is not service:NAMESPACE/NAME:PORT")
    if port.isdigit():
        return ServicePort(namespace, name, parse_port(port))
    if not _LABEL.match(port):
        raise ValueError(f"{quoted(text)}: {quoted(port)} is neither the number nor the name of a port")
    return ServicePort(namespace, name, port)


def parse_advertise(text: str) -> tuple[int, int]:
    """Parse `PORT=PORT`: the listening port, and the port that the header states. Raises ValueError."""
    listen, equals, stated = text.strip().partition("=")
    if not equals:
        raise ValueError(f"{quoted(text)} is not PORT=PORT")
    return parse_port(listen), parse_port(stated)


def parse_ready_when(text: str) -> Quorum | Listening:
    """Parse `any`, `all` or `[ADDR:]PORT`. Raises ValueError."""
    text = text.strip()
    if text in set(Quorum):
        return Quorum(text)
    if ":" in text:
        endpoint = parse_endpoint(text)
        return Listening(endpoint.port, endpoint.host)
    if not text.isdigit():
        raise ValueError(f"{quoted(text)} is not any, all or [ADDR:]PORT")
    return Listening(parse_port(text))


def parse_namespace(text: str) -> str:
    """The name of a namespace. Raises ValueError."""
    if not _LABEL.match(text):
        raise ValueError(f"{quoted(text)} is not the name of a namespace")
    return text


def check_ready_when(ready_when: ReadyWhen, routes: Iterable[Route], *, more_come: bool = False) -> None:
    """Raise ValueError if a quorum is not alone, or if no route listens on a port, unless `more_come` later."""
    if len(ready_when) > 1 and (quorum := next((one for one in ready_when if isinstance(one, Quorum)), None)):
        raise ValueError(f"{quorum} stands alone, without ports or another quorum")
    listening = [route.listen for route in routes]
    for one in () if more_come else ready_when:
        if isinstance(one, Listening) and not any(map(one.covers, listening)):
            raise ValueError(f"no route listens on {one}")


def check_routes(routes: Iterable[Route], advertise: Mapping[int, int]) -> None:
    """Raise ValueError if routes contradict one another, or if no route has an advertised port."""
    routes = list(routes)
    for endpoint, count in Counter(route.listen for route in routes).items():
        if count > 1 and endpoint.port:
            raise ValueError(f"{count} routes listen on {endpoint}")
    for route in routes:
        _check_backend(route, routes)
    if unknown := sorted(set(advertise) - {route.listen.port for route in routes}):
        raise ValueError(f"no route listens on the advertised port {unknown[0]}")


def _check_backend(route: Route, routes: Iterable[Route]) -> None:
    """Raise ValueError if a route ends at a listener of this relay: its connections would get two headers."""
    if isinstance(route.backend, ServicePort):
        return
    target = Endpoint(route.backend.host, route.backend.port)
    for other in routes:
        if reaches(other.listen, target):
            whose = "its own listener" if other is route else f"the listener of {other}"
            raise ValueError(f"{route} goes to {whose}")


def reaches(listener: Endpoint, target: Endpoint) -> bool:
    """Whether a connection to `target` certainly ends at `listener`: the same address, or loopback and any address."""
    if listener.port != target.port:
        return False
    if listener.host == target.host:
        return True
    loopback = target.host == "::1" or target.host.startswith("127.") or target.host == "localhost"
    return loopback and (listener.host == ANY_HOST or (listener.host == "0.0.0.0" and target.host != "::1"))


def _parse_listen(text: str) -> Endpoint:
    if ":" in text:
        return parse_endpoint(text)
    return Endpoint(ANY_HOST, parse_port(text, lowest=0))


def _parse_options(options: Iterable[str]) -> ProxyProtocol | None:
    protocol: ProxyProtocol | None = None
    for option in options:
        key, _, value = option.partition("=")
        if key != _PROTOCOL_OPTION:
            raise ValueError(f"{quoted(option)} is not an option of a route; use {_PROTOCOL_OPTION}=v1|v2|none|pass")
        if protocol is not None:
            raise ValueError(f"{_PROTOCOL_OPTION} appears twice")
        if value not in set(ProxyProtocol):
            raise ValueError(f"{quoted(value)} is not a {_PROTOCOL_OPTION}; use v1, v2, none or pass")
        protocol = ProxyProtocol(value)
    return protocol


def _parse_name(text: str) -> str:
    if re.fullmatch(r"[0-9.]+", text):
        raise ValueError(f"{quoted(text)} is not an IP address")
    if len(text.removesuffix(".")) > _MAXIMUM_NAME or not _NAME.match(text):
        raise ValueError(f"{quoted(text)} is neither a hostname nor an address")
    return text.lower()
