"""Certificates as servers have them: valid, expired, of other names, and as ingress controllers make them."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import Final

import trustme

HOST: Final = "app.example.org"
NOW: Final = datetime.now(UTC)
DAY: Final = timedelta(days=1)
_CA: Final = trustme.CA()


def issue(
    *names: str, start: datetime = NOW - DAY, end: datetime = NOW + 30 * DAY, common_name: str | None = None
) -> trustme.LeafCert:
    """A certificate for names; without names, only with a common name."""
    return _CA.issue_cert(*names, not_before=start, not_after=end, common_name=common_name)


def der_of(certificate: trustme.LeafCert) -> bytes:
    """The leaf alone."""
    return ssl.PEM_cert_to_DER_cert(certificate.cert_chain_pems[0].bytes().decode())


def rfc3339(moment: datetime) -> str:
    """As ServiceIdentity has it."""
    return moment.replace(microsecond=0).isoformat()


def fake() -> trustme.LeafCert:
    """The default certificate of ingress-nginx."""
    return issue("ingress.local", common_name="Kubernetes Ingress Controller Fake Certificate")
