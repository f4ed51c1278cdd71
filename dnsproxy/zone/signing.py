"""TSIG (RFC 8945): signed requests and transfers, checked and made with dnspython.

The law: no octet of a message counts before its signature is good. Each message of a transfer is signed, and the
signature of the first one covers the request's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.tsig
from dns.rdtypes.ANY.TSIG import TSIG

from dnsproxy.dns.wire import HEADER, Type
from dnsproxy.zone.tsig_keys import TsigKey
from dnsproxy.zone.walking import Record, walk_records

FUDGE: Final = 300
"""Seconds that two clocks may differ (RFC 8945 section 10)."""
_CLASS_ANY: Final = 255
_ADDITIONAL: Final = 3
"""The section (walking.py)."""
_MOST_UNSIGNED: Final = 99
"""Messages of a transfer between two signed ones (RFC 8945 section 5.3.1)."""


# Typed by its signature: dnspython has no annotations there.
_validate: Callable[..., Any] = dns.tsig.validate
_sign: Callable[..., tuple[Any, Any]] = dns.tsig.sign
_make_rdata: Callable[..., Any] = TSIG


class TsigError(IntEnum):
    """Why a signature is refused (RFC 8945 section 3)."""

    BADSIG = 16
    BADKEY = 17
    BADTIME = 18


class BadSignature(ValueError):
    """A reply whose signature is missing or wrong; the message is the reason, as part of a sentence."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of a good request."""

    key: TsigKey
    mac: bytes
    time: int
    """When it was made, in seconds since the epoch, by the client's clock."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A bad signature, and what to answer."""

    error: TsigError
    record: bytes
    """The TSIG record of the answer, unsigned; of BADTIME it is signed by the caller with `signature`."""
    signature: Signature | None = None


def find_tsig(message: bytes) -> Record | None:
    """The TSIG record of a message. Raises ValueError, also if it is not the last one (RFC 8945 section 5.1)."""
    found = None
    for record in walk_records(message):
        if found is not None:
            raise ValueError("a record follows its TSIG record")
        if record.type == Type.TSIG and record.section:
            found = record
    if found is not None and (found.section != _ADDITIONAL or found.klass != _CLASS_ANY):
        raise ValueError("its TSIG record is malformed")
    return found


def check_request(message: bytes, keys: Mapping[str, TsigKey], *, now: int) -> Signature | Refusal | None:
    """The signature of a request; None if it has none. `now` in seconds since the epoch. Raises ValueError."""
    record = find_tsig(message)
    if record is None:
        return None
    rdata = _parse_rdata(message, record)
    name = dns.name.from_wire(record.name, 0)[0]
    key = keys.get(name.to_text(omit_final_dot=True))
    if key is None or _dns_key(key).algorithm != rdata.algorithm:
        return Refusal(TsigError.BADKEY, _error_record(record.name, rdata, TsigError.BADKEY))
    signature = Signature(key, rdata.mac, rdata.time_signed)
    try:
        _validate(message, _dns_key(key), name, rdata, now, b"", record.start)
    except dns.tsig.BadTime:
        return Refusal(TsigError.BADTIME, b"", signature)
    except dns.exception.DNSException:
        return Refusal(TsigError.BADSIG, _error_record(record.name, rdata, TsigError.BADSIG))
    return signature


def append_record(message: bytes, record: bytes) -> bytes:
    """The message with one more additional record."""
    additional = int.from_bytes(message[10:HEADER], "big") + 1
    return message[:10] + additional.to_bytes(2, "big") + message[HEADER:] + record


class Signer:
    """Signs the messages of one answer, or with an empty `request_mac` one request."""

    def __init__(self, key: TsigKey, *, request_mac: bytes = b"", error: int = 0, other: bytes = b"") -> None:
        self.mac = b""
        """Of the message that was signed last."""
        self._key = _dns_key(key)
        self._name = self._key.name.to_wire() or b""
        self._request_mac = request_mac
        self._error, self._other = error, other
        self._context: Any = None

    def sign(self, message: bytes, *, now: int, several: bool = False) -> bytes:
        """The signed message; `several`: more messages belong to the answer."""
        rdata = _make_rdata(
            _CLASS_ANY,
            Type.TSIG,
            self._key.algorithm,
            now,
            FUDGE,
            b"",
            int.from_bytes(message[:2], "big"),
            self._error,
            self._other,
        )
        rdata, self._context = _sign(message, self._key, rdata, now, self._request_mac, self._context, several)
        self.mac = rdata.mac
        return append_record(message, _format_record(self._name, rdata))


class Verifier:
    """Checks the messages of one answer, in order."""

    def __init__(self, key: TsigKey, *, request_mac: bytes) -> None:
        self._key = _dns_key(key)
        self._request_mac = request_mac
        self._context: Any = None
        self._unsigned = 0

    def check(self, message: bytes, *, now: int, several: bool) -> bytes:
        """The message without its TSIG record. Raises BadSignature, or ValueError for a malformed message."""
        record = find_tsig(message)
        if record is None:
            return self._pass_unsigned(message)
        rdata = _parse_rdata(message, record)
        name = dns.name.from_wire(record.name, 0)[0]
        try:
            self._context = _validate(
                message, self._key, name, rdata, now, self._request_mac, record.start, self._context, several
            )
        except dns.exception.DNSException as error:
            raise BadSignature(_reason_of(error)) from None
        self._unsigned = 0
        additional = int.from_bytes(message[10:HEADER], "big") - 1
        return message[:10] + additional.to_bytes(2, "big") + message[HEADER : record.start]

    def finish(self) -> None:
        """Raises BadSignature if the last message was not signed (RFC 8945 section 5.3.1)."""
        if self._unsigned:
            raise BadSignature("its last message is not signed")

    def _pass_unsigned(self, message: bytes) -> bytes:
        self._unsigned += 1
        if self._context is None or self._unsigned > _MOST_UNSIGNED:
            raise BadSignature("it is not signed")
        self._context.update(message)
        return message


def time_of_day(now: int) -> bytes:
    """The other data of BADTIME: the server's time (RFC 8945 section 5.2.3)."""
    return struct.pack("!HI", now >> 32, now & 0xFFFFFFFF)


def key_map(keys: Iterable[TsigKey]) -> dict[str, TsigKey]:
    """The keys by their names."""
    return {key.name: key for key in keys}


def _dns_key(key: TsigKey) -> dns.tsig.Key:
    return dns.tsig.Key(key.name, key.secret, key.algorithm)


def _parse_rdata(message: bytes, record: Record) -> Any:
    """Raises ValueError."""
    try:
        return dns.rdata.from_wire(
            dns.rdataclass.ANY, dns.rdatatype.TSIG, message, record.data, record.end - record.data
        )
    except dns.exception.DNSException:
        raise ValueError("its TSIG record is malformed") from None


def _format_record(name: bytes, rdata: Any) -> bytes:
    data: bytes = rdata.to_wire()
    return name + struct.pack("!HHIH", Type.TSIG, _CLASS_ANY, 0, len(data)) + data


def _error_record(name: bytes, rdata: Any, error: TsigError) -> bytes:
    """An unsigned TSIG record with the error (RFC 8945 sections 5.2.1 and 5.2.2)."""
    return _format_record(name, rdata.replace(mac=b"", error=int(error), other=b""))


def _reason_of(error: dns.exception.DNSException) -> str:
    reasons = {
        dns.tsig.PeerBadKey: "the primary does not know the key",
        dns.tsig.PeerBadSignature: "the primary has another secret for the key",
        dns.tsig.PeerBadTime: "the primary's clock differs too much from this one",
        dns.tsig.BadTime: "the primary's clock differs too much from this one",
        dns.tsig.BadKey: "it is signed with another key",
        dns.tsig.BadAlgorithm: "it is signed with another algorithm",
        dns.tsig.BadSignature: "its signature is wrong",
    }
    return reasons.get(type(error), f"its signature cannot be checked: {error}")
