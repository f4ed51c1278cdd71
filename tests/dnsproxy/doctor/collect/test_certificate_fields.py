"""Names and the end of a certificate, from DER; other bytes are refused."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import hypothesis.strategies as st
import pytest
from hypothesis import given

from dnsproxy.doctor.collect.certificate_fields import BadCertificate, CertificateFields, parse_certificate
from tests.dnsproxy.doctor.collect.certificates import der_of, issue

END = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
GOOD = der_of(issue("app.example.org", end=END))


@pytest.mark.parametrize(
    "names",
    [
        ("app.example.org",),
        ("*.example.org", "example.org"),
        ("192.0.2.1", "2001:db8::1"),
        tuple(f"host-{number}.example.org" for number in range(2000)),
        (),
    ],
    ids=["one name", "a wildcard", "addresses", "2000 names", "only a common name"],
)
def test_the_names_are_those_of_the_subject_alternative_name(names: tuple[str, ...]) -> None:
    found = parse_certificate(der_of(issue(*names, end=END, common_name="app.example.org")))
    assert found == CertificateFields(names, "2031-05-06T07:08:09+00:00")


@pytest.mark.parametrize(
    "end",
    [datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC) for year in (1960, 1999, 2000, 2049, 2050, 9999)],
    ids=str,
)
def test_both_forms_of_a_time_are_read(end: datetime) -> None:
    start = datetime(1951, 1, 1, tzinfo=UTC)
    assert parse_certificate(der_of(issue("app.example.org", start=start, end=end))).until == end.isoformat()


@pytest.mark.parametrize(
    "der",
    [
        b"", b"\x30", b"\x30\x00", b"\x30\x02\x30\x00", b"\x30\x80", b"\x30\x84\xff\xff\xff\xff", b"\x30\x83\x01",
        b"\x30\x05\x30", b"\x02\x01\x00", b"-----BEGIN CERTIFICATE-----", bytes(1000), b"\xff" * 1000, b"\x30" * 1000,
        GOOD.replace(b"310506070809Z", b"311306070809Z"), GOOD.replace(b"310506070809Z", b"31050607080\xff9"),
        GOOD.replace(b"310506070809Z", b"310506070809+"),
    ],
    ids=[
        "nothing", "a tag", "an empty sequence", "two empty sequences", "no definite length", "4 GiB",
        "a length that is cut short", "cut short", "a number", "PEM", "zeros", "ones", "sequences", "month 13",
        "a time that is not ASCII", "a time without its Z",
    ],
)  # fmt: skip
def test_what_is_no_certificate_is_refused(der: bytes) -> None:
    with pytest.raises(BadCertificate):
        parse_certificate(der)


def test_a_certificate_that_is_cut_anywhere_is_refused() -> None:
    for length in range(len(GOOD)):
        with pytest.raises(BadCertificate):
            parse_certificate(GOOD[:length])


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_a_changed_octet_gives_fields_or_is_refused(place: int, octet: int) -> None:
    with suppress(BadCertificate):
        parse_certificate(GOOD[:place] + bytes([octet]) + GOOD[place + 1 :])


@given(st.binary())
def test_any_bytes_give_fields_or_are_refused(der: bytes) -> None:
    with suppress(BadCertificate):
        parse_certificate(der)
