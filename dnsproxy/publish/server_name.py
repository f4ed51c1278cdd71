"""The name of a server to take the table from: `HOST:PORT`, as text and as a value.

The law: the host is an IP literal or a hostname in normal form; what it means is looked up each time it is used. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from dnsproxy.dns.names import is_wildcard, parse_hostname, shown
from sidecar.endpoints import parse_endpoint, parse_port


@dataclass(frozen=True, slots=True)
class ServerName:
    """A host and a port."""

    host: str
    """An IP literal without brackets, or a hostname."""
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_server_name(text: str) -> ServerName:
    """The server that `HOST:PORT` names; an IPv6 address goes in brackets. Raises ValueError."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host:
        raise ValueError(f"{shown(text)} is not HOST:PORT, such as dnsproxy-admin.switchback.svc:8081")
    try:
        endpoint = parse_endpoint(text)
    except ValueError:
        hostname = parse_hostname(host)
        if is_wildcard(hostname):
            raise ValueError(f"{shown(host)} is a wildcard, not a host") from None
        # The final dot keeps a pod's search list out of it.
        return ServerName(hostname + "." if host.endswith(".") else hostname, parse_port(port))
    return ServerName(endpoint.host, parse_port(port))
