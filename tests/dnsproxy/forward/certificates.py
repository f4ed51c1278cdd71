"""Certificates for upstreams over TLS: valid ones and every kind of invalid one, made by trustme for each run."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Callable

import trustme

NAME = "dns.example.org"
CA = trustme.CA()
"""The authority that the clients of these tests trust."""

_DAY = datetime.timedelta(days=1)


def server_context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    """The TLS context of a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def good(*names: str) -> ssl.SSLContext:
    """A server with a valid certificate."""
    return server_context(CA.issue_cert(*(names or (NAME,))))


def expired() -> ssl.SSLContext:
    now = datetime.datetime.now(tz=datetime.UTC)
    return server_context(CA.issue_cert(NAME, not_before=now - 2 * _DAY, not_after=now - _DAY))


def not_yet_valid() -> ssl.SSLContext:
    now = datetime.datetime.now(tz=datetime.UTC)
    return server_context(CA.issue_cert(NAME, not_before=now + _DAY, not_after=now + 2 * _DAY))


def of_another_name() -> ssl.SSLContext:
    return server_context(CA.issue_cert("other.example.org", "*.dns.example.org"))


def of_a_common_name_alone() -> ssl.SSLContext:
    """The name is in a field that clients no longer check (RFC 9525 section 6.3)."""
    return server_context(CA.issue_cert("other.example.org", common_name=NAME))


def of_another_authority() -> ssl.SSLContext:
    return server_context(trustme.CA().issue_cert(NAME))


BAD: list[tuple[str, Callable[[], ssl.SSLContext], str]] = [
    ("expired", expired, "certificate has expired"),
    ("not yet valid", not_yet_valid, "certificate is not yet valid"),
    ("another name", of_another_name, "Hostname mismatch"),
    ("a common name alone", of_a_common_name_alone, "Hostname mismatch"),
    ("another authority", of_another_authority, "unable to get local issuer certificate"),
]
"""Invalid certificates, and the error that the client reports."""


def trusting_context() -> ssl.SSLContext:
    """The default context of Pipeline on a system that trusts only CA."""
    context = ssl.create_default_context()
    CA.configure_trust(context)
    return context
