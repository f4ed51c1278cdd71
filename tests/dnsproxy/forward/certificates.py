"""Certificates for upstreams over TLS: good ones and every kind of bad one, made anew by trustme."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Callable

import trustme

NAME = "dns.example.org"
CA = trustme.CA()
"""The authority that a client of these tests trusts."""

_DAY = datetime.timedelta(days=1)


def server_context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    """What a server speaks TLS with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def good(*names: str) -> ssl.SSLContext:
    """A server that is who it says it is."""
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
    """The name stands where nobody looks for it any more (RFC 9525 section 6.3)."""
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
"""What a server may show that must not be believed, and what the client says of it."""


def trusting_context() -> ssl.SSLContext:
    """What Pipeline takes by itself where the system trusts CA alone."""
    context = ssl.create_default_context()
    CA.configure_trust(context)
    return context
