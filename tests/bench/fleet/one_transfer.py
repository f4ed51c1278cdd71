"""One transfer by one secondary, with nothing beside it, and how long it takes."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from typing import Final

from dnsproxy.zone.requests import format_request
from tests.bench.fleet.addresses import PRIMARY
from tests.bench.fleet.requests import format_frame
from tests.bench.fleet.scan import First, NotATransfer, TransferScan, read_first
from tests.bench.kit.faults import BadReport

_IDENT: Final = 1
_SOA_HEAD: Final = _IDENT.to_bytes(2, "big") + b"\0\0\0\1\0\0\0\0\0\0"
_SOA_QUESTION: Final = b"\0\6\0\1"
_BUFFER: Final = 1 << 16
_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Transferred:
    """One transfer."""

    seconds: float
    octets: int
    serial: int


def transfer(port: int, zone: bytes, *, since: int | None) -> Transferred:
    """AXFR over TCP without a serial; else IXFR, over UDP if the primary will. Raises BadReport."""
    begun = time.monotonic()
    try:
        if since is not None:
            message = _ask(port, zone, since)
            first = read_first(message) if message else None
            if first is not None and first.records > 1:
                return Transferred(time.monotonic() - begun, len(message), first.serial)
        return _over_tcp(port, zone, since=since, begun=begun)
    except (NotATransfer, OSError) as error:
        raise BadReport(f"a transfer failed: {error}") from None


def ask_serial(port: int, zone: bytes) -> int | None:
    """The serial of a primary; None while it has no answer."""
    try:
        return read_first(_ask(port, zone, None)).serial
    except NotATransfer:
        return None


def fetch_messages(port: int, zone: bytes) -> list[bytes]:
    """The messages of an AXFR. Raises BadReport."""
    found: list[bytes] = []
    with socket.create_connection((PRIMARY, port), timeout=_SECONDS) as opened, opened.makefile("rb") as stream:
        opened.sendall(format_frame(zone, serial=None, ident=_IDENT))
        first: First | None = None
        while first is None or len(found) == 1 or not found[-1].endswith(first.numbers):
            size = int.from_bytes(stream.read(2), "big")
            if not size:
                raise BadReport("an AXFR ended before its end")
            found.append(stream.read(size))
            first = first or read_first(found[0])
    return found


def _ask(port: int, zone: bytes, since: int | None) -> bytes:
    """The answer over UDP to IXFR, or to SOA without a serial; empty without one."""
    if since is None:
        request = _SOA_HEAD + zone + _SOA_QUESTION
    else:
        request = format_request(zone, serial=since, ident=_IDENT, datagram=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.settimeout(_ASK_SECONDS)
        opened.connect((PRIMARY, port))
        try:
            opened.send(request)
            return opened.recv(_BUFFER)
        except OSError:
            return b""


def _over_tcp(port: int, zone: bytes, *, since: int | None, begun: float) -> Transferred:
    buffer = bytearray(_BUFFER)
    scan = TransferScan(incremental=since is not None)
    with socket.create_connection((PRIMARY, port), timeout=_SECONDS) as opened:
        opened.sendall(format_frame(zone, serial=since, ident=_IDENT))
        while not scan.is_done:
            count, discard = scan.wanted()
            found = opened.recv_into(buffer, min(count, _BUFFER), socket.MSG_TRUNC if discard else 0)
            if not found:
                raise NotATransfer("it ended before its end")
            if discard:
                scan.skipped(found)
            else:
                scan.received(bytes(buffer[:found]))
    assert scan.first is not None
    return Transferred(time.monotonic() - begun, scan.octets, scan.first.serial)
