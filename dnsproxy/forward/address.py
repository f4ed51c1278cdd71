"""Upstream addresses: `ADDR[:PORT]`, and `tls://ADDR[:PORT]#NAME` for DNS over TLS.

The law: a text becomes a checked value or a ValueError fit for people. A TLS upstream always has a name, because an
address alone says nothing about who answers there (RFC 8310 section 8.1).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final

from dnsproxy.names import parse_hostname
from sidecar.endpoints import Endpoint, parse_endpoint

_DNS_PORT: Final = 53
_TLS_PORT: Final = 853
_SCHEME: Final = "tls://"


@dataclass(frozen=True, slots=True)
class TlsEndpoint(Endpoint):
    """An upstream that is spoken to over TLS (RFC 7858), and the name or address that its certificate must have."""

    name: str

    def __str__(self) -> str:
        return f"{_SCHEME}{Endpoint(self.host, self.port)}#{self.name}"


def parse_upstream(text: str) -> Endpoint:
    """The upstream that a flag names. Raises ValueError."""
    text = text.strip()
    if not text.startswith(_SCHEME):
        return parse_endpoint(text, default_port=_DNS_PORT)
    address, mark, name = text.removeprefix(_SCHEME).partition("#")
    if not mark or not name:
        raise ValueError(f"{text!a} does not say whose certificate to expect: {_SCHEME}ADDR[:PORT]#NAME")
    endpoint = parse_endpoint(address, default_port=_TLS_PORT)
    return TlsEndpoint(endpoint.host, endpoint.port, _parse_name(name))


def _parse_name(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return parse_hostname(name)
