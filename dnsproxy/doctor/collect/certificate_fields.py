"""The fields of a certificate that people read: its names and its end, from DER (RFC 5280, section 4.1).

The law: any bytes give fields or BadCertificate. It decides nothing about validity: OpenSSL does that. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from itertools import islice
from typing import Final

_SEQUENCE, _OCTET_STRING, _OID = 0x30, 0x04, 0x06
_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_VERSION, _EXTENSIONS = 0xA0, 0xA3
_DNS_NAME, _IP_ADDRESS = 0x82, 0x87
_SUBJECT_ALT_NAME: Final = b"\x55\x1d\x11"  # 2.5.29.17
_LONG: Final = 0x80
_LONGEST_LENGTH: Final = 3  # octets; a certificate in TLS is shorter than 16 MiB
_PIVOT: Final = "50"  # UTCTime: 50 is 1950, 49 is 2049

Element = tuple[int, bytes]
"""Tag and content."""


@dataclass(frozen=True, slots=True)
class CertificateFields:
    """The DNS names and IP addresses of a certificate, and when it ends."""

    names: tuple[str, ...] = ()
    until: str = ""
    """RFC 3339, UTC."""


class BadCertificate(ValueError):
    """Bytes that are no certificate."""


def parse_certificate(der: bytes) -> CertificateFields:
    """The fields of a certificate. Raises BadCertificate."""
    try:
        return _parse(der)
    except ValueError as error:
        raise BadCertificate(str(error)) from None


def _parse(der: bytes) -> CertificateFields:
    (certificate,) = islice(_elements(der), 1)
    (signed,) = islice(_elements(_content(certificate, _SEQUENCE)), 1)
    fields = [one for one in _elements(_content(signed, _SEQUENCE)) if one[0] != _VERSION]
    _serial, _algorithm, _issuer, validity, *_ = fields
    _start, end = _elements(_content(validity, _SEQUENCE))
    names = (name for tag, content in fields if tag == _EXTENSIONS for name in _alternative_names(content))
    return CertificateFields(tuple(dict.fromkeys(names)), _time(end))


def _elements(octets: bytes) -> Iterator[Element]:
    """The elements of a constructed value. Raises ValueError where one is cut short."""
    start = 0
    while start < len(octets):
        tag, length, start = octets[start], *_length(octets, start + 1)
        if start + length > len(octets):
            raise ValueError("an element is cut short")
        yield tag, octets[start : start + length]
        start += length


def _length(octets: bytes, start: int) -> tuple[int, int]:
    """A length, and where its content starts."""
    head = octets[start : start + 1]
    if not head:
        raise ValueError("a length is missing")
    if head[0] < _LONG:
        return head[0], start + 1
    count = head[0] - _LONG
    octets_of_length = octets[start + 1 : start + 1 + count]
    if not 0 < count <= _LONGEST_LENGTH or len(octets_of_length) < count:
        raise ValueError("a length that DER does not have")
    return int.from_bytes(octets_of_length, "big"), start + 1 + count


def _content(element: Element, tag: int) -> bytes:
    if element[0] != tag:
        raise ValueError(f"tag {element[0]:#x} in place of {tag:#x}")
    return element[1]


def _time(element: Element) -> str:
    tag, content = element
    text = content.decode("ascii")
    if tag == _UTC_TIME:
        text = ("19" if text >= _PIVOT else "20") + text
    elif tag != _GENERALIZED_TIME:
        raise ValueError("not a time")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).isoformat()


def _alternative_names(content: bytes) -> Iterator[str]:
    (extensions,) = _elements(content)
    for extension in _elements(_content(extensions, _SEQUENCE)):
        kind, *_critical, value = _elements(_content(extension, _SEQUENCE))
        if kind == (_OID, _SUBJECT_ALT_NAME):
            (names,) = _elements(_content(value, _OCTET_STRING))
            yield from _names(_content(names, _SEQUENCE))


def _names(content: bytes) -> Iterator[str]:
    for tag, name in _elements(content):
        if tag == _DNS_NAME:
            yield name.decode("latin-1")
        elif tag == _IP_ADDRESS:
            yield str(ip_address(name))
