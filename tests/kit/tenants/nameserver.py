"""A tenant's own nameserver, which answers as it likes: late, never, in circles, with thousands of records.

The law: the first label of a name says how it is answered (BEHAVIOURS, without the digits at its end). The server is on
UDP and TCP; it can stand in place of the resolver too, and then passes names of other zones on to public DNS.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

import dns.flags
import dns.message
import dns.rrset

from tests.kit.ports import free_port
from tests.kit.tenants.public_dns import BALANCER, WORLD

ZONE: Final = "hostile.com"
MANY: Final = 900
"""Addresses of `many`: 14 KB, which need TCP."""
LATE: Final = 1.1
"""Seconds until `late` is answered."""
_LARGEST: Final = 1232

Reply = Callable[[dns.message.Message], bytes | None]


def _answer(*records: str) -> Reply:
    """Records as `TTL TYPE DATA`, for the name that was asked for."""

    def reply(query: dns.message.Message) -> bytes:
        made = dns.message.make_response(query, recursion_available=True)
        made.flags |= dns.flags.AA
        for record in records:
            ttl, rtype, data = record.split(maxsplit=2)
            name = query.question[0].name
            if rtype in {dns.rdatatype.to_text(query.question[0].rdtype), "CNAME"}:
                found = made.find_rrset(
                    made.answer, name, dns.rdataclass.IN, dns.rdatatype.from_text(rtype), create=True
                )
                found.add(dns.rdata.from_text("IN", rtype, data), int(ttl))
        return made.to_wire(max_size=65535)

    return reply


def _late(query: dns.message.Message) -> bytes | None:
    time.sleep(LATE)
    return _answer(f"60 A {BALANCER}")(query)


def _garbage(query: dns.message.Message) -> bytes | None:
    return struct.pack("!H", query.id) + b"\x84\x00\x00\x01\xff\xff\xff\xff\xff\xff" + b"\xc0\x0c" * 200


def _cut(query: dns.message.Message) -> bytes | None:
    whole = _answer(f"60 A {BALANCER}")(query)
    return whole[:-3] if whole else None


BEHAVIOURS: Final[Mapping[str, Reply]] = {
    "here": _answer(f"60 A {BALANCER}"),
    "elsewhere": _answer(f"60 A {WORLD}"),
    "silent": lambda _: None,
    "late": _late,
    "loop": _answer(f"60 CNAME loop.{ZONE}."),
    "circle": _answer(f"60 CNAME circleb.{ZONE}."),
    "circleb": _answer(f"60 CNAME circle.{ZONE}."),
    "brief": _answer(f"0 A {BALANCER}"),
    "many": _answer(f"60 A {BALANCER}", *(f"60 A 198.51.{one // 250}.{one % 250 + 1}" for one in range(MANY))),
    "crowd": _answer(*(f"60 A 198.{one // 62_500}.{one // 250 % 250}.{one % 250 + 1}" for one in range(3_000))),
    "garbage": _garbage,
    "cut": _cut,
}


class Nameserver:
    """The running server."""

    def __init__(self, public_dns: int) -> None:
        self.port = free_port()
        self.asked: Counter[str] = Counter()
        """Queries by behaviour."""
        self._public_dns = public_dns
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._datagrams.bind(("127.0.0.1", self.port))
        self._streams = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self._ended = False

    def start(self) -> None:
        for work in (self._serve_datagrams, self._serve_streams):
            threading.Thread(target=work, daemon=True).start()

    def end(self) -> None:
        self._ended = True
        for one in (self._datagrams, self._streams):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _reply(self, message: bytes) -> bytes | None:
        query = dns.message.from_wire(message)
        name = query.question[0].name.to_text(omit_final_dot=True).lower()
        if not name.endswith(ZONE):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
                there.settimeout(5)
                there.connect(("127.0.0.1", self._public_dns))
                there.send(message)
                return there.recv(65535)
        label = name.partition(".")[0].rstrip("0123456789")
        self.asked[label] += 1
        return BEHAVIOURS.get(label, BEHAVIOURS["here"])(query)

    def _serve_datagrams(self) -> None:
        while not self._ended:
            with suppress(OSError):
                message, client = self._datagrams.recvfrom(65535)
                if not message:
                    return
                if b"\x06silent" in message.lower():
                    self.asked["silent"] += 1
                    continue  # without a thread: there are thousands
                threading.Thread(target=self._serve_datagram, args=[message, client], daemon=True).start()

    def _serve_datagram(self, message: bytes, client: tuple[str, int]) -> None:
        reply = self._reply(message)
        if reply is None:
            return
        if len(reply) > _LARGEST:
            reply = reply[:2] + bytes([reply[2] | 2]) + reply[3:6] + bytes(6) + message[12:]
            reply = reply[:10] + b"\0\0" + message[12 : message.index(b"\0", 12) + 5]
        with suppress(OSError):
            self._datagrams.sendto(reply, client)

    def _serve_streams(self) -> None:
        while not self._ended:
            with suppress(OSError):
                client, _ = self._streams.accept()
                threading.Thread(target=self._serve_stream, args=[client], daemon=True).start()

    def _serve_stream(self, client: socket.socket) -> None:
        with suppress(OSError, struct.error), client, client.makefile("rb") as octets:
            while True:
                (size,) = struct.unpack("!H", octets.read(2))
                reply = self._reply(octets.read(size))
                if reply is not None:
                    client.sendall(struct.pack("!H", len(reply)) + reply)


@contextmanager
def running_nameserver(public_dns: int) -> Iterator[Nameserver]:
    """The server until the block ends."""
    one = Nameserver(public_dns)
    one.start()
    try:
        yield one
    finally:
        one.end()
