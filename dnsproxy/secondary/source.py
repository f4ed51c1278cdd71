"""The source `rpz:ZONE@HOST:PORT`: a primary and its zone. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dnsproxy.dns.names import BadName, format_wire, parse_hostname, parse_zone, to_wire
from dnsproxy.dns.wire import DNS_PORT
from dnsproxy.zone.table_zone import table_zone
from sidecar.values.endpoints import is_address, parse_port
from sidecar.values.text import quoted

PREFIX: Final = "rpz:"


@dataclass(frozen=True, slots=True)
class RpzSource:
    """One primary."""

    zone: bytes
    """The wire name of the policy zone; replicas load the table zone beside it."""
    host: str
    """An address, or a hostname that the system's resolver knows."""
    port: int = DNS_PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{PREFIX}{format_wire(self.zone).removesuffix('.')}@{host}:{self.port}"


def parse_rpz_source(text: str) -> RpzSource:
    """`rpz:ZONE@HOST[:PORT]`, an IPv6 address in brackets. Raises ValueError."""
    zone, at, place = text.strip().removeprefix(PREFIX).rpartition("@")
    if not at or not zone or not place:
        raise ValueError(f"{quoted(text)} is not {PREFIX}ZONE@HOST:PORT, for example rpz:rpz.example.org@192.0.2.53:53")
    wire = to_wire(parse_zone(zone))
    table_zone(wire)
    if place.startswith("["):
        host, bracket, rest = place[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"{quoted(place)} is not [ADDRESS]:PORT")
        port = rest.removeprefix(":")
    else:
        host, colon, port = place.partition(":")
        if colon and not port:
            raise ValueError(f"{quoted(place)} has no port after its colon")
    return RpzSource(wire, _parse_host(host), parse_port(port) if port else DNS_PORT)


def _parse_host(text: str) -> str:
    if is_address(text):
        return text
    try:
        host = parse_hostname(text)
    except BadName as error:
        raise ValueError(f"{error}; a primary is an address or a hostname") from None
    if host.startswith("*."):
        raise ValueError(f"{quoted(text)} is a wildcard, not a host")
    return host
