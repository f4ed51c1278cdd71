"""The certificate check: whether a server's certificate is valid for a hostname and today, as OpenSSL judges it.

The law: nothing is sent. OpenSSL verifies certificates in handshakes only, so a handshake of TLS 1.2 is played to it
in memory, up to the certificate. Whether a client trusts the issuer is not checked: the certificate itself is the
trust anchor. A certificate that cannot be judged has no identity, and never an error.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from typing import Final

from dnsproxy.doctor.collect.certificate_fields import BadCertificate, parse_certificate
from dnsproxy.doctor.facts.probes import ServiceIdentity
from sidecar.values.text import one_line

MOST_NAMES: Final = 5
_SHOWN: Final = 80
# OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH.
_MISMATCHES: Final = (62, 64)
_MISMATCH: Final = "hostname mismatch"
_FAULTS: Final = {9: "is not yet valid", 10: "has expired"}
# TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 and the same with ECDSA: the one of the certificate's key leads to a verdict.
_CIPHERS: Final = (b"\xc0\x2f", b"\xc0\x2b")
_RECORD: Final = 16_384
_SERVER_HELLO, _CERTIFICATE = 2, 11


def check_certificate(der: bytes, hostname: str) -> ServiceIdentity | None:
    """The identity that a certificate gives a server; None if it cannot be judged."""
    try:
        faults = list(_faults(der, hostname))
    except (ValueError, TypeError, ssl.SSLError):
        return None
    try:
        fields = parse_certificate(der)
    except BadCertificate:
        # OpenSSL could read it, and its verdict stands without the names.
        return ServiceIdentity(_joined(faults))
    if _MISMATCH in faults and not fields.names:
        faults[0] = f"{_MISMATCH}: no subjectAltName"
    names = tuple(one_line(name)[:_SHOWN] for name in fields.names[:MOST_NAMES])
    return ServiceIdentity(_joined(faults), names, fields.until)


def _joined(faults: Iterable[str]) -> str:
    return one_line(", ".join(faults))[:_SHOWN]


def _faults(der: bytes, hostname: str) -> Iterator[str]:
    """Why clients reject the certificate. Raises ValueError, TypeError or SSLError if OpenSSL could not judge it."""
    fault = _verify(der, hostname, check_hostname=True)
    if fault is not None and fault.verify_code in _MISMATCHES:
        yield _MISMATCH
        # OpenSSL stops at the first fault; the second one matters too.
        fault = _verify(der, hostname, check_hostname=False)
    if fault is not None:
        yield _FAULTS.get(fault.verify_code, fault.verify_message)


def _verify(der: bytes, hostname: str, *, check_hostname: bool) -> ssl.SSLCertVerificationError | None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname, context.hostname_checks_common_name = check_hostname, False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=der)
    first, second = (_handshake(context, der, hostname, cipher) for cipher in _CIPHERS)
    if isinstance(first, ssl.SSLCertVerificationError):
        return first
    # SSLWantReadError: OpenSSL took the certificate and waits for the message that follows it.
    if isinstance(first, ssl.SSLWantReadError) or isinstance(second, ssl.SSLWantReadError):
        return None
    raise first


def _handshake(context: ssl.SSLContext, der: bytes, hostname: str, cipher: bytes) -> ssl.SSLError:
    """The error with which OpenSSL ends; it always does, for a handshake needs more than a certificate."""
    incoming = ssl.MemoryBIO()
    client = context.wrap_bio(incoming, ssl.MemoryBIO(), server_hostname=hostname)
    incoming.write(_server_flight(der, cipher))
    try:
        client.do_handshake()
    except ssl.SSLError as error:
        return error
    raise ValueError("a handshake without a key")


def _server_flight(der: bytes, cipher: bytes) -> bytes:
    """ServerHello and Certificate in records of TLS 1.2 (RFC 5246, sections 7.4.1.3, 7.4.2 and 6.2.1)."""
    # No session, no compression, and the empty renegotiation_info without which OpenSSL refuses (RFC 5746).
    hello = b"\x03\x03" + bytes(32) + b"\x00" + cipher + b"\x00" + b"\x00\x05\xff\x01\x00\x01\x00"
    messages = _message(_SERVER_HELLO, hello) + _message(_CERTIFICATE, _vector(_vector(der)))
    records = (messages[start : start + _RECORD] for start in range(0, len(messages), _RECORD))
    return b"".join(b"\x16\x03\x03" + len(record).to_bytes(2, "big") + record for record in records)


def _message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + _vector(body)


def _vector(octets: bytes) -> bytes:
    return len(octets).to_bytes(3, "big") + octets
