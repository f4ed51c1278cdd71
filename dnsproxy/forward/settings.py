"""The settings of forwarding, and the texts they come from: upstream flags and resolv.conf.

The law: settings are frozen, checked and complete. A text becomes a checked value or a ValueError that a user can
understand. A TLS upstream always has a name, because an address alone does not prove which server answers
(RFC 8310 section 8.1).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from dnsproxy.dns.names import is_wildcard, parse_hostname
from dnsproxy.dns.wire import DNS_PORT
from dnsproxy.forward.resolv_conf import parse_nameservers, parse_options
from sidecar.endpoints import Endpoint, parse_endpoint
from sidecar.text import quoted

_TLS_PORT: Final = 853
_SCHEME: Final = "tls://"
_MOST_ATTEMPTS = 2  # more would be a storm where every upstream is ill


@dataclass(frozen=True, slots=True)
class ForwardSettings:
    """Whom to ask, how, and how much may wait."""

    upstreams: tuple[Endpoint, ...]
    """In the order in which they are asked; a TlsEndpoint is asked over TLS."""
    outstanding: int = 10_000
    """Queries that may wait at a time."""
    per_client: int = 1_000
    """The same for one client address (CVE-2024-33655: a client must not be able to gather replies for one pulse)."""
    rotate: bool = False
    """Begin with another upstream each time (`options rotate` of resolv.conf)."""
    attempts: int = 2
    """Datagrams that one upstream gets for a query at most; 1 or 2."""
    use_tcp: bool = False
    """Ask over TCP from the start (`options use-vc`)."""
    detect_loops: bool = True
    """Ask each upstream now and then for a name that only we can be asked for."""


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
        raise ValueError(f"{quoted(text)} does not say whose certificate to expect: {_SCHEME}ADDR[:PORT]#NAME")
    endpoint = parse_endpoint(address, default_port=_TLS_PORT)
    return TlsEndpoint(endpoint.host, endpoint.port, _parse_name(name))


def _parse_plain(text: str) -> Endpoint:
    if "://" in text:
        raise ValueError(f"{quoted(text)}: an upstream is ADDR[:PORT] or {_SCHEME}ADDR[:PORT]#NAME")
    return parse_endpoint(text, default_port=DNS_PORT)


def _parse_name(name: str) -> str:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        hostname = parse_hostname(name)
        if is_wildcard(hostname):
            raise ValueError(f"{quoted(name)}: a certificate is expected for one name, not for a wildcard") from None
        return hostname
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        # A scope means something on one host only, so that no certificate can have it.
        raise ValueError(f"{quoted(name)}: the address in a certificate has no scope")
    return str(address)


def parse_forwarding(content: str, *, plain: ForwardSettings) -> ForwardSettings:
    """`plain` with the nameservers and options of a resolv.conf. Raises ValueError where it names no nameserver.

    All nameservers count, where the C library stops after three. `attempts` above 2 are 2; `timeout` has no effect
    (see ResolverOptions).
    """
    addresses = parse_nameservers(content)
    if not addresses:
        raise ValueError("names no nameserver")
    options = parse_options(content)
    return replace(
        plain,
        upstreams=tuple(Endpoint(address, DNS_PORT) for address in addresses),
        rotate=options.rotate,
        attempts=min(options.attempts, _MOST_ATTEMPTS),
        use_tcp=options.use_vc,
    )


def refuse_loop(upstreams: Iterable[Endpoint], *, listening: Iterable[Endpoint]) -> None:
    """Raises ValueError for an upstream that is where we listen ourselves.

    It sees the plain case at once; a loop by way of another address is found when a query of ours comes back.
    """
    ours = {(endpoint.host, endpoint.port) for endpoint in listening}
    for upstream in upstreams:
        if (upstream.host, upstream.port) in ours:
            raise ValueError(f"{upstream} is where we listen ourselves; queries would go round for ever")
