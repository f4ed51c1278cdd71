"""The server to take the table from: `HOST:PORT`.

The law: the host is an IP literal or a hostname in normal form; the name is looked up each time it is used. Pure.
"""

from __future__ import annotations

from typing import Final

from dnsproxy.dns.names import is_wildcard, parse_hostname
from sidecar.values.host_port import HostPort, parse_host_port
from sidecar.values.text import quoted

_EXAMPLE: Final = "dnsproxy-admin.switchback.svc:8081"


def parse_server_name(text: str) -> HostPort:
    """The server that `HOST:PORT` names; an IPv6 address goes in brackets. Raises ValueError."""
    return parse_host_port(text.strip(), parse_name=_parse_name, example=_EXAMPLE)


def _parse_name(text: str) -> str:
    hostname = parse_hostname(text)
    if is_wildcard(hostname):
        raise ValueError(f"{quoted(text)} is a wildcard, not a host")
    # The final dot keeps a pod's search list out of it.
    return hostname + "." if text.endswith(".") else hostname
