"""Upstream addresses: `ADDR[:PORT]`, and `tls://ADDR[:PORT]#NAME` for DNS over TLS.

The law: a text becomes a checked value or a ValueError fit for people. A TLS upstream always has a name, because an
address alone says nothing about who answers there (RFC 8310 section 8.1).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final

from dnsproxy.dns.names import is_wildcard, parse_hostname, shown
from sidecar.endpoints import Endpoint, parse_endpoint

DNS_PORT: Final = 53
"""Of an upstream that is named without a port (RFC 1035 section 4.2)."""
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
    if text[: len(_SCHEME)].lower() != _SCHEME:
        return _parse_plain(text)
    address, mark, name = text[len(_SCHEME) :].partition("#")
    if not mark or not name:
        raise ValueError(f"{shown(text)} does not say whose certificate to expect: {_SCHEME}ADDR[:PORT]#NAME")
    endpoint = parse_endpoint(address, default_port=_TLS_PORT)
    return TlsEndpoint(endpoint.host, endpoint.port, _parse_name(name))


def _parse_plain(text: str) -> Endpoint:
    if "://" in text:
        raise ValueError(f"{shown(text)}: an upstream is ADDR[:PORT] or {_SCHEME}ADDR[:PORT]#NAME")
    return parse_endpoint(text, default_port=DNS_PORT)


def _parse_name(name: str) -> str:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        hostname = parse_hostname(name)
        if is_wildcard(hostname):
            raise ValueError(f"{shown(name)}: a certificate is expected for one name, not for a wildcard") from None
        return hostname
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        # A scope means something on one host only, so that no certificate can have it.
        raise ValueError(f"{shown(name)}: the address in a certificate has no scope")
    return str(address)
