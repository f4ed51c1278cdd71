"""OpenSSL judges a certificate in memory: its names, its dates, and nothing about its issuer."""

from __future__ import annotations

import ssl
from datetime import datetime

import hypothesis.strategies as st
import pytest
import trustme
from hypothesis import given

from dnsproxy.doctor.collect import certificate_check
from dnsproxy.doctor.collect.certificate_check import MOST_NAMES, check_certificate
from dnsproxy.doctor.facts.probes import ServiceIdentity
from tests.dnsproxy.doctor.collect.certificates import DAY, HOST, NOW, der_of, fake, issue, rfc3339

END = NOW + 30 * DAY
EXPIRED = "has expired"
MISMATCH = "hostname mismatch"
GOOD = der_of(issue(HOST))


@pytest.mark.parametrize(
    ("names", "hostname", "fault"),
    [
        ((HOST,), HOST, ""),
        ((HOST,), "APP.Example.Org", ""),
        (("other.example.org", HOST), HOST, ""),
        (("*.example.org",), HOST, ""),
        (("192.0.2.1",), "192.0.2.1", ""),
        (("2001:db8::1",), "2001:db8::1", ""),
        (("*.example.org",), "a.b.example.org", MISMATCH),
        (("*.example.org",), "example.org", MISMATCH),
        (("example.org",), HOST, MISMATCH),
        (("other.example.org",), HOST, MISMATCH),
        (("app.example.org.example.net",), HOST, MISMATCH),
        (("192.0.2.2",), "192.0.2.1", MISMATCH),
        ((HOST,), "192.0.2.1", MISMATCH),
    ],
    ids=["its name", "in capitals", "its second name", "a wildcard", "an address", "an address of IPv6",
         "a wildcard two labels above", "a wildcard's own domain", "the domain", "another name", "a longer name",
         "another address", "an address that it lacks"],
)  # fmt: skip
def test_a_certificate_is_for_its_names_only(names: tuple[str, ...], hostname: str, fault: str) -> None:
    assert check_certificate(der_of(issue(*names)), hostname) == ServiceIdentity(fault, names, rfc3339(END))


@pytest.mark.parametrize(
    ("name", "start", "end", "fault"),
    [
        (HOST, NOW - 9 * DAY, NOW - DAY, EXPIRED),
        (HOST, NOW + DAY, NOW + 9 * DAY, "is not yet valid"),
        ("other.example.org", NOW - 9 * DAY, NOW - DAY, f"{MISMATCH}, {EXPIRED}"),
        ("other.example.org", NOW + DAY, NOW + 9 * DAY, f"{MISMATCH}, is not yet valid"),
    ],
    ids=["expired", "not yet valid", "another name and expired", "another name and not yet valid"],
)
def test_a_certificate_is_for_its_time_only(name: str, start: datetime, end: datetime, fault: str) -> None:
    found = check_certificate(der_of(issue(name, start=start, end=end)), HOST)
    assert found == ServiceIdentity(fault, (name,), rfc3339(end))


def test_the_default_certificate_of_ingress_nginx_is_known_by_its_name() -> None:
    assert check_certificate(der_of(fake()), HOST) == ServiceIdentity(MISMATCH, ("ingress.local",), rfc3339(END))


def test_a_common_name_is_no_name() -> None:
    found = check_certificate(der_of(issue(common_name=HOST)), HOST)
    assert found == ServiceIdentity("hostname mismatch: no subjectAltName", (), rfc3339(END))


@pytest.mark.parametrize("kind", list(trustme.KeyType), ids=str)
@pytest.mark.parametrize("host", [HOST, "other.example.org"], ids=["its name", "another name"])
def test_keys_of_all_kinds_are_judged(kind: trustme.KeyType, host: str) -> None:
    found = check_certificate(der_of(trustme.CA().issue_cert(HOST, key_type=kind)), host)
    assert found is not None
    assert found.fault == ("" if host == HOST else MISMATCH)


def test_a_long_certificate_is_judged_and_few_of_its_names_are_kept() -> None:
    names = tuple(f"host-{number}.example.org" for number in range(2000))
    der = der_of(issue(*names))
    assert len(der) > 2**15
    assert check_certificate(der, names[-1]) == ServiceIdentity("", names[:MOST_NAMES], rfc3339(END))
    assert check_certificate(der, HOST) == ServiceIdentity(MISMATCH, names[:MOST_NAMES], rfc3339(END))


def test_a_name_controls_no_terminal_and_is_not_endless() -> None:
    der = der_of(issue(HOST, "b" * 60 + "." + "c" * 60)).replace(b"app.example", b"\x1b[31m.examp")
    found = check_certificate(der, HOST)
    assert found is not None
    assert found.names == ("\\x1b[31m.examp.org", ("b" * 60 + "." + "c" * 60)[:80])


@pytest.mark.parametrize("der", [b"", b"garbage", bytes(500), GOOD[:-1]], ids=["none", "text", "zeros", "cut short"])
def test_what_is_no_certificate_has_no_identity(der: bytes) -> None:
    assert check_certificate(der, HOST) is None


@pytest.mark.parametrize("hostname", ["", ".a", "a\0b", "a" * 70, "a..b", "x." * 200], ids=ascii)
def test_a_name_that_no_sni_can_hold_has_no_identity(hostname: str) -> None:
    assert check_certificate(GOOD, hostname) is None


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_a_changed_octet_is_no_error(place: int, octet: int) -> None:
    check_certificate(GOOD[:place] + bytes([octet]) + GOOD[place + 1 :], HOST)


def test_an_openssl_that_plays_no_tls_1_2_has_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_check, "_CIPHERS", (b"\0\0", b"\0\0"))
    assert check_certificate(GOOD, HOST) is None
    assert ssl.HAS_TLSv1_2
