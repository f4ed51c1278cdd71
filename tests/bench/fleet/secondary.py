"""One secondary among thousands: an address, a socket for NOTIFY and queries, and a connection while it transfers.

The law: it behaves to the primary like a real one (NOTIFY, IXFR over UDP, then TCP, AXFR), and does nothing else: a
transfer's body is thrown away in the kernel. What the primary refuses is tried again, as ours does.
"""

from __future__ import annotations

import contextlib
import errno
import random
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from dnsproxy.zone.requests import format_request
from tests.bench.fleet.addresses import PORT
from tests.bench.fleet.loop import Loop
from tests.bench.fleet.requests import answer_notify, format_frame
from tests.bench.fleet.scan import NotATransfer, TransferScan, read_first

_RETRY: Final = 0.5
"""Seconds; doubled up to _LONGEST_RETRY, and each a little different."""
_LONGEST_RETRY: Final = 10.0
_DATAGRAM_SECONDS: Final = 1.0
_TRANSFER_SECONDS: Final = 300.0
_BUFFER: Final = 1 << 16
_WINDOW: Final = 256 << 10
"""Octets in flight of one transfer."""
_RECEIVES: Final = 64
"""Of one transfer before others have their turn."""
_IP_BIND_ADDRESS_NO_PORT: Final = 24  # linux/in.h


@dataclass(slots=True)
class Record:
    """What all secondaries did."""

    counts: Counter[str] = field(default_factory=Counter)
    events: list[tuple[str, int, float]] = field(default_factory=list)
    """Address, serial, and when the secondary had it (time.monotonic)."""
    buffer: bytearray = field(default_factory=lambda: bytearray(_BUFFER))


class Secondary:
    """One of them."""

    def __init__(self, loop: Loop, record: Record, address: str, *, zone: bytes, primary: tuple[str, int]) -> None:
        self.serial: int | None = None
        self._loop = loop
        self._record = record
        self._address = address
        self._zone = zone
        self._primary = primary
        self._ident = 0
        self._cold = True
        """Until it is told to load: a NOTIFY before brings nothing."""
        self._again = False
        self._waits = False
        """Whether an attempt is under way or planned."""
        self._retry = _RETRY
        self._attempt = 0
        self._scan: TransferScan | None = None
        self._stream: socket.socket | None = None
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._datagrams.bind((self._address, PORT))
        loop.watch(self._datagrams, self._receive_datagrams)

    def load(self) -> None:
        """Forget the zone, and transfer it whole."""
        self._end_stream()
        self.serial, self._cold, self._again, self._waits, self._retry = None, False, False, True, _RETRY
        self._connect()

    def _refresh(self) -> None:
        if self._waits:
            self._again = True
            return
        self._waits, self._again, self._retry = True, False, _RETRY
        self._ask()

    def _ask(self) -> None:
        if self.serial is None:
            self._connect()
            return
        self._begin_attempt(_DATAGRAM_SECONDS)
        request = format_request(self._zone, serial=self.serial, ident=self._ident, datagram=True)
        with contextlib.suppress(OSError):
            self._datagrams.sendto(request, self._primary)

    def _begin_attempt(self, patience: float) -> None:
        self._attempt += 1
        self._ident = random.getrandbits(16)
        attempt = self._attempt

        def give_up() -> None:
            if attempt == self._attempt and self._waits:
                self._fail("timeout")

        self._loop.call_later(patience, give_up)

    def _receive_datagrams(self) -> None:
        while True:
            try:
                message, sender = self._datagrams.recvfrom(_BUFFER)
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP error of an earlier request
            if len(message) > 2 and message[2] & 0x80:
                self._take_answer(message)
            else:
                reply, is_new = answer_notify(message, zone=self._zone, known=self.serial)
                if reply is not None:
                    self._record.counts["notify"] += 1
                    with contextlib.suppress(OSError):
                        self._datagrams.sendto(reply, sender)
                if is_new and not self._cold:
                    self._refresh()

    def _take_answer(self, message: bytes) -> None:
        if not self._waits or self._stream is not None or message[:2] != self._ident.to_bytes(2, "big"):
            return
        try:
            first = read_first(message)
        except NotATransfer:
            self._record.counts["datagram refused"] += 1
            self._connect()
            return
        if first.records > 1 or first.serial == self.serial:
            self._record.counts["datagram"] += 1
            self._has(first.serial)
        else:
            self._connect()

    def _connect(self) -> None:
        self._begin_attempt(_TRANSFER_SECONDS)
        opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _WINDOW)
        opened.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
        self._stream, self._scan = opened, TransferScan(incremental=self.serial is not None)
        opened.bind((self._address, 0))
        found = opened.connect_ex(self._primary)
        self._loop.watch_writing(opened, self._send_request)
        if found not in (0, errno.EINPROGRESS):
            self._fail("connect")

    def _send_request(self) -> None:
        stream = self._stream
        assert stream is not None
        try:
            stream.send(format_frame(self._zone, serial=self.serial, ident=self._ident))
        except OSError:
            self._fail("connect")
            return
        self._loop.turn_to_reading(stream, self._receive_stream)

    def _receive_stream(self) -> None:
        stream, scan, buffer = self._stream, self._scan, self._record.buffer
        assert stream is not None
        assert scan is not None
        try:
            for _ in range(_RECEIVES):
                count, discard = scan.wanted()
                found = stream.recv_into(buffer, min(count, _BUFFER), socket.MSG_TRUNC if discard else 0)
                if not found:
                    self._fail("closed")
                    return
                if discard:
                    scan.skipped(found)
                else:
                    scan.received(bytes(buffer[:found]))
                    if scan.is_done:
                        self._end_transfer(scan)
                        return
        except BlockingIOError:
            return
        except NotATransfer:
            self._fail("refused")
        except OSError:
            self._fail("reset")

    def _end_transfer(self, scan: TransferScan) -> None:
        assert scan.first is not None
        self._record.counts["axfr" if self.serial is None else "ixfr"] += 1
        self._record.counts["octets"] += scan.octets
        self._end_stream()
        self._has(scan.first.serial)

    def _has(self, serial: int) -> None:
        self._waits, self._retry = False, _RETRY
        if serial != self.serial:
            self.serial = serial
            self._record.events.append((self._address, serial, time.monotonic()))
        if self._again:
            self._refresh()

    def _fail(self, why: str) -> None:
        self._record.counts[why] += 1
        self._end_stream()
        self._attempt += 1
        self._waits = True
        wait = self._retry * random.uniform(0.5, 1.0)  # noqa: S311
        self._retry = min(2 * self._retry, _LONGEST_RETRY)
        attempt = self._attempt

        def ask() -> None:
            if attempt == self._attempt:
                self._ask()

        self._loop.call_later(wait, ask)

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._loop.close(self._stream)
            self._stream = self._scan = None
