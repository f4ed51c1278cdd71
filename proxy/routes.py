"""Routes: which port is relayed to which backend with which header, and the text form of the flags that say so.

The law: pure. A backend here is what was written down: a name, an address or a Service; what it stands for at the
moment is proxy.backends.backend's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from proxy.header.protocol import ProxyProtocol
from sidecar.endpoints import Endpoint, parse_endpoint, parse_port
from sidecar.host_port import HostPort, parse_host_port
from sidecar.text import quoted

ROUTE_FLAG = "--route"

ANY_HOST = "::"
"""Where a route without an address listens: every address, the IPv4 ones included."""

SERVICE = "service:"
"""What a backend begins with that is a Kubernetes Service."""

_MAXIMUM_NAME = 253
# A final dot makes a name absolute, which spares the search list of resolv.conf.
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?\Z")
# Names of namespaces, Services (RFC 1123, and RFC 1035 before) and of their ports (RFC 6335) as the API server takes
# them; that a port's name is at most 15 octets, it says itself.
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_PROTOCOL_OPTION = "proxy-protocol"


@dataclass(frozen=True, slots=True)
class ServicePort:
    """A backend that is whatever stands behind a port of a Kubernetes Service at the moment."""

    namespace: str
    name: str
    port: int | str
    """Its number or its name."""

    def __str__(self) -> str:
        return f"{SERVICE}{self.namespace}/{self.name}:{self.port}"


@dataclass(frozen=True, slots=True)
class Route:
    """Connections to `listen` go to `backend`."""

    listen: Endpoint
    backend: HostPort | ServicePort
    proxy_protocol: ProxyProtocol | None = None
    """The header in front of them, where it is not the one of all routes."""

    def __str__(self) -> str:
        option = "" if self.proxy_protocol is None else f",{_PROTOCOL_OPTION}={self.proxy_protocol}"
        return f"{self.listen}={self.backend}{option}"


def parse_route(text: str) -> Route:
    """The route that `[ADDR:]PORT=BACKEND[,proxy-protocol=v1|v2|none]` names. Raises ValueError.

    BACKEND is `HOST:PORT`, IPv6 addresses in brackets, or `service:NAMESPACE/NAME:PORT`.
    """
    listen, equals, rest = text.strip().partition("=")
    if not equals:
        raise ValueError(f"{quoted(text)} is not [ADDR:]PORT=HOST:PORT")
    backend, *options = rest.split(",")
    return Route(_parse_listen(listen), parse_backend(backend), _parse_options(options))


def parse_backend(text: str) -> HostPort | ServicePort:
    """The backend that `HOST:PORT` or `service:NAMESPACE/NAME:PORT` names. Raises ValueError."""
    return parse_service(text) if text.startswith(SERVICE) and "/" in text else parse_destination(text)


def parse_destination(text: str) -> HostPort:
    """The backend that `HOST:PORT` names; an IPv6 address in brackets. Raises ValueError."""
    found = parse_host_port(text, parse_name=_parse_name)
    if text.startswith("[") and ":" not in found.host:
        raise ValueError(f"{quoted(text)}: brackets are for IPv6 addresses")
    return found


def parse_service(text: str) -> ServicePort:
    """The backend that `service:NAMESPACE/NAME:PORT` names; PORT is a number or a name. Raises ValueError."""
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
    """The listening port and the port to state in the header that `PORT=PORT` names. Raises ValueError."""
    listen, equals, stated = text.strip().partition("=")
    if not equals:
        raise ValueError(f"{quoted(text)} is not PORT=PORT")
    return parse_port(listen), parse_port(stated)


def check_routes(routes: Iterable[Route], advertise: Mapping[int, int]) -> None:
    """Raise ValueError where routes contradict one another, or an advertised port is of no route."""
    routes = list(routes)
    for endpoint, count in Counter(route.listen for route in routes).items():
        if count > 1 and endpoint.port:
            raise ValueError(f"{count} routes listen on {endpoint}")
    for route in routes:
        _check_backend(route, routes)
    if unknown := sorted(set(advertise) - {route.listen.port for route in routes}):
        raise ValueError(f"no route listens on the advertised port {unknown[0]}")


def _check_backend(route: Route, routes: Iterable[Route]) -> None:
    """No route may end at a listener of this relay, be it another route's: the header would come in front twice."""
    if isinstance(route.backend, ServicePort):
        return
    target = Endpoint(route.backend.host, route.backend.port)
    for other in routes:
        if reaches(other.listen, target):
            whose = "its own listener" if other is route else f"the listener of {other}"
            raise ValueError(f"{route} goes to {whose}")


def reaches(listener: Endpoint, target: Endpoint) -> bool:
    """Whether a connection to an endpoint surely ends at a listener: the same address, or loopback and any address."""
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
            raise ValueError(f"{quoted(option)} is no option of a route; there is {_PROTOCOL_OPTION}=v1|v2|none")
        if protocol is not None:
            raise ValueError(f"{_PROTOCOL_OPTION} is given twice")
        if value not in set(ProxyProtocol):
            raise ValueError(f"{quoted(value)} is no {_PROTOCOL_OPTION}; there are v1, v2 and none")
        protocol = ProxyProtocol(value)
    return protocol


def _parse_name(text: str) -> str:
    if re.fullmatch(r"[0-9.]+", text):
        raise ValueError(f"{quoted(text)} is not an IP address")
    if len(text.removesuffix(".")) > _MAXIMUM_NAME or not _NAME.match(text):
        raise ValueError(f"{quoted(text)} is neither a hostname nor an address")
    return text.lower()
