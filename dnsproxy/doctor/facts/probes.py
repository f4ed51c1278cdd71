"""What was asked and dialled: look-ups, connections, and checks of whether a DNS server asks dnsproxy.

The law: an outcome is recorded as it was seen; `judge` decides what it means. Tested in
tests/dnsproxy/doctor/facts/test_file.py.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from sidecar.values.endpoints import Endpoint


class Fact(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=False):
    """Base of all facts: frozen, and without default values in JSON."""


class Lookup(Fact, frozen=True):
    """What one DNS server answers for a hostname, A and AAAA together."""

    hostname: str
    server: str
    """`cluster` or `public`."""
    endpoint: str
    addresses: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    fault: str = ""
    """Why there is no answer; empty if there are addresses, or if both answers have none."""
    partial: str = ""
    """The record type that alone has no answer, and why: `AAAA: no answer`. More addresses may exist."""


class Header(StrEnum):
    """What a probe sends before its request."""

    PLAIN = "plain"
    V1 = "v1"
    V2 = "v2"


class Outcome(StrEnum):
    """How a probe ended."""

    ANSWERED = "answered"
    """An HTTP response other than 400, or a TLS ServerHello."""
    BAD_REQUEST = "bad request"
    """HTTP 400: the server could not parse the bytes, or rejects the request."""
    ALERT = "TLS alert"
    """The port speaks TLS and refuses this handshake."""
    GARBAGE = "garbage"
    """Bytes that are neither HTTP nor TLS."""
    CLOSED = "closed"
    RESET = "reset"
    SILENT = "silent"
    """Connected, but no bytes came in time, or too few to tell what they are."""
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    """No connection in time, or an ICMP error on the way."""
    NO_ROUTE = "no route"
    """This machine has no address or route of the family, so that a pod's client uses the other family."""


class ServiceIdentity(Fact, frozen=True):
    """The names by which a TLS server identified itself (RFC 9525); whether a client trusts its issuer is unknown."""

    fault: str = ""
    """Why a client rejects it for the hostname: `hostname mismatch`, `has expired`; empty if none."""
    names: tuple[str, ...] = ()
    """The first of its names; empty if they are unknown."""
    until: str = ""
    """The end of its validity: RFC 3339, UTC; empty if unknown."""


class Probe(Fact, frozen=True):
    """One connection attempt: what came back, not why the address was dialled."""

    address: str
    port: int
    hostname: str
    """In the request's Host and in the handshake's SNI."""
    tls: bool
    header: Header
    outcome: Outcome
    detail: str = ""
    """The status line, the TLS alert or the error of the operating system."""
    status: int = 0
    """The HTTP status, over TLS too; 0 without a response."""
    identity: ServiceIdentity | None = None
    """None without TLS, or if the handshake failed."""

    @property
    def endpoint(self) -> str:
        """`192.0.2.1:80` or `[2001:db8::1]:80`, for display."""
        return str(Endpoint(self.address, self.port))


class DnsCheck(Fact, frozen=True):
    """Whether dnsproxy answers through one DNS server: the probe names of cluster_dns/probing.py."""

    endpoint: str
    zone: str
    state: str
    """`yes`, `partly`, `no` or `silent`."""
    said: str = ""
    forwards: tuple[str, ...] = ()
    """Where the dnsproxy behind it reports to forward all other names, each report once; older ones report nothing."""
