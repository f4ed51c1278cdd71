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

from dnsproxy.dns.names import is_wildcard, is_within_wire, parse_hostname
from dnsproxy.dns.wire import DNS_PORT
from dnsproxy.forward.resolv_conf import parse_nameservers, parse_options
from sidecar.values.endpoints import Endpoint, parse_endpoint
from sidecar.values.text import quoted

_TLS_PORT: Final = 853
_SCHEME: Final = "tls://"
_TCP_SCHEME: Final = "tcp://"
_LOCAL_HOST: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_MOST_ATTEMPTS = 2  # more would be a storm of queries when every upstream fails


@dataclass(frozen=True, slots=True)
class ZoneUpstreams:
    """Upstreams for the names at and below one zone, in place of those for all names."""

    zone: bytes
    """In lower-case wire form."""
    upstreams: tuple[Endpoint, ...]
    excepted: tuple[bytes, ...] = ()
    """Zones below it that are not included."""
    rotate: bool = False
    """Start with another upstream for each query."""

    def serves(self, name: bytes) -> bool:
        """Whether a name in lower-case wire form is at or below the zone, and not below an excepted one."""
        return is_within_wire(name, self.zone) and not any(is_within_wire(name, zone) for zone in self.excepted)


@dataclass(frozen=True, slots=True)
class ForwardSettings:
    """Which upstreams to ask, how, and how many queries may wait."""

    upstreams: tuple[Endpoint, ...]
    """In the order to ask them; a TlsEndpoint is asked over TLS, a TcpEndpoint over TCP."""
    outstanding: int = 10_000
    """How many queries may wait for an upstream at one time."""
    per_client: int = 1_000
    """The same for one client address (CVE-2024-33655: a client must not collect replies for one pulse)."""
    rotate: bool = False
    """Start with another upstream for each query outside all zones (`options rotate` of resolv.conf)."""
    attempts: int = 2
    """The most datagrams that one upstream gets for one query; 1 or 2."""
    use_tcp: bool = False
    """Ask over TCP from the start (`options use-vc`)."""
    source_ports: int = 4096
    """How many UDP sockets all upstreams together may have, so that other parts always find a descriptor."""
    detect_loops: bool = True
    """Send each upstream regular loop probes."""
    zones: tuple[ZoneUpstreams, ...] = ()
    """Zones with upstreams of their own; the first that serves a name counts."""


@dataclass(frozen=True, slots=True)
class TcpEndpoint(Endpoint):
    """An upstream that is never asked over UDP."""

    def __str__(self) -> str:
        return f"{_TCP_SCHEME}{Endpoint(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class TlsEndpoint(Endpoint):
    """An upstream that is asked over TLS (RFC 7858), and the name or address that its certificate must have."""

    name: str

    def __str__(self) -> str:
        return f"{_SCHEME}{Endpoint(self.host, self.port)}#{self.name}"


def parse_upstream(text: str) -> Endpoint:
    """The upstream from the value of a flag. Raises ValueError."""
    text = text.strip()
    if text[: len(_SCHEME)].lower() != _SCHEME:
        return _parse_plain(text)
    address, mark, name = text[len(_SCHEME) :].partition("#")
    if not mark or not name:
        raise ValueError(f"{quoted(text)} has no name to expect in the certificate: {_SCHEME}ADDR[:PORT]#NAME")
    endpoint = parse_endpoint(address, default_port=_TLS_PORT)
    return TlsEndpoint(endpoint.host, endpoint.port, _parse_name(name))


def _parse_plain(text: str) -> Endpoint:
    if text[: len(_TCP_SCHEME)].lower() == _TCP_SCHEME:
        endpoint = parse_endpoint(text[len(_TCP_SCHEME) :], default_port=DNS_PORT)
        return TcpEndpoint(endpoint.host, endpoint.port)
    if "://" in text:
        raise ValueError(
            f"{quoted(text)}: an upstream is ADDR[:PORT], {_TCP_SCHEME}ADDR[:PORT] or {_SCHEME}ADDR[:PORT]#NAME"
        )
    return parse_endpoint(text, default_port=DNS_PORT)


def _parse_name(name: str) -> str:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        hostname = parse_hostname(name)
        if is_wildcard(hostname):
            raise ValueError(f"{quoted(name)}: the expected certificate name is one name, not a wildcard") from None
        return hostname
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        # A scope is valid on one host only, so no certificate can have it.
        raise ValueError(f"{quoted(name)}: an address in a certificate has no scope")
    return str(address)


def parse_forwarding(content: str, *, plain: ForwardSettings, may_be_empty: bool = False) -> ForwardSettings:
    """`plain` with the nameservers and options of a resolv.conf. Raises ValueError for none, unless it may be empty.

    All nameservers count; the C library stops after three. `attempts` is capped at 2; `timeout` has no effect (see
    ResolverOptions).
    """
    addresses = parse_nameservers(content)
    if not addresses and not may_be_empty:
        raise ValueError("has no nameserver")
    options = parse_options(content)
    return replace(
        plain,
        upstreams=tuple(Endpoint(address, DNS_PORT) for address in addresses),
        rotate=options.rotate,
        attempts=min(options.attempts, _MOST_ATTEMPTS),
        use_tcp=options.use_vc,
    )


def split_own(
    upstreams: Iterable[Endpoint], *, listening: Iterable[Endpoint]
) -> tuple[tuple[Endpoint, ...], tuple[Endpoint, ...]]:
    """The upstreams without, and those with, an address that this server listens on: queries to them would loop.

    This finds the simple case at once; a loop through another address is found by the loop probes.
    """
    listened = {_normal(endpoint) for endpoint in listening}
    others: list[Endpoint] = []
    ours: list[Endpoint] = []
    for upstream in upstreams:
        own = not listened.isdisjoint((_normal(upstream), _reached(upstream)))
        (ours if own else others).append(upstream)
    return tuple(others), tuple(ours)


def _normal(endpoint: Endpoint) -> tuple[str, int]:
    address = ipaddress.ip_address(endpoint.host)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address), endpoint.port


def _reached(endpoint: Endpoint) -> tuple[str, int]:
    """Where a query to this address arrives: Linux sends one for the unspecified address to the local host."""
    return _LOCAL_HOST.get(_normal(endpoint)[0], endpoint.host), endpoint.port


def refuse_loop(upstreams: Iterable[Endpoint], *, listening: Iterable[Endpoint]) -> None:
    """Raises ValueError for an upstream whose address this server listens on."""
    _, ours = split_own(upstreams, listening=listening)
    for upstream in ours:
        raise ValueError(f"{upstream} is an address that dnsproxy listens on; queries would loop")


def exclude_own(
    settings: ForwardSettings, *, listening: Iterable[Endpoint], may_be_empty: bool = False
) -> tuple[ForwardSettings, tuple[Endpoint, ...]]:
    """The settings without the upstreams that are this server, and those.

    Raises ValueError if no other is left, unless there may be none.
    """
    others, ours = split_own(settings.upstreams, listening=listening)
    if not others and not may_be_empty:
        refuse_loop(ours, listening=listening)
    return replace(settings, upstreams=others), ours
