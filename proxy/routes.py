"""Routes: which port is relayed to which backend, and the text form of the flags that say so.

The law: pure. A backend here is a name or an address that was written down; what it resolves to is proxy.backend's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sidecar.endpoints import Endpoint, parse_address, parse_endpoint, parse_port

ANY_HOST = "::"
"""Where a route without an address listens: every address, the IPv4 ones included."""

_MAXIMUM_NAME = 253
# A final dot makes a name absolute, which spares the search list of resolv.conf.
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?\Z")


@dataclass(frozen=True, slots=True)
class Destination:
    """A backend as it was written: a name or an address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Route:
    """Connections to `listen` go to `backend`."""

    listen: Endpoint
    backend: Destination

    def __str__(self) -> str:
        return f"{self.listen}={self.backend}"


def parse_route(text: str) -> Route:
    """The route that `[ADDR:]PORT=HOST:PORT` names; IPv6 addresses in brackets. Raises ValueError."""
    listen, equals, backend = text.strip().partition("=")
    if not equals:
        raise ValueError(f"{_shown(text)} is not [ADDR:]PORT=HOST:PORT")
    return Route(_parse_listen(listen), parse_destination(backend))


def parse_destination(text: str) -> Destination:
    """The backend that `HOST:PORT` names; an IPv6 address in brackets. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        raise ValueError(f"{_shown(text)} is not HOST:PORT")
    return Destination(_parse_host(host), parse_port(port))


def parse_advertise(text: str) -> tuple[int, int]:
    """The listening port and the port to state in the header that `PORT=PORT` names. Raises ValueError."""
    listen, equals, stated = text.strip().partition("=")
    if not equals:
        raise ValueError(f"{_shown(text)} is not PORT=PORT")
    return parse_port(listen), parse_port(stated)


def check_routes(routes: Iterable[Route], advertise: Mapping[int, int]) -> None:
    """Raise ValueError where routes contradict one another, or an advertised port is of no route."""
    routes = list(routes)
    for endpoint, count in Counter(route.listen for route in routes).items():
        if count > 1 and endpoint.port:
            raise ValueError(f"{count} routes listen on {endpoint}")
    for route in routes:
        if reaches(route.listen, Endpoint(route.backend.host, route.backend.port)):
            raise ValueError(f"{route} goes to its own listener")
    if unknown := sorted(set(advertise) - {route.listen.port for route in routes}):
        raise ValueError(f"no route listens on the advertised port {unknown[0]}")


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


def _parse_host(text: str) -> str:
    if text.startswith("[") and text.endswith("]"):
        address = parse_address(text[1:-1])
        if ":" not in address:
            raise ValueError(f"{_shown(text)}: brackets are for IPv6 addresses")
        return address
    if ":" in text:
        raise ValueError(f"{_shown(text)}: an IPv6 address goes in brackets")
    if re.fullmatch(r"[0-9.]+", text):
        return parse_address(text)
    if len(text.removesuffix(".")) > _MAXIMUM_NAME or not _NAME.match(text):
        raise ValueError(f"{_shown(text)} is neither a hostname nor an address")
    return text.lower()


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 80 else text[:80] + "...")  # noqa: PLR2004  # enough to recognise it
