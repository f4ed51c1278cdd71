"""The notifier: sends NOTIFY to the secondaries and reads their answers.

The law: a thin shell over zone/notify_book.py. It sends no more than RATE a second, however many secondaries there are;
the table and its answers never wait for it.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

import structlog
import trio

from dnsproxy.dns import wire
from dnsproxy.dns.wire import Rcode
from dnsproxy.primary.published_zones import PublishedZones
from dnsproxy.zone.notify_book import NotifyBook
from dnsproxy.zone.requests import format_notify
from sidecar.sockets.socket_address import SocketAddress, endpoint_of, family_of, socket_address
from sidecar.values.endpoints import Endpoint

RATE: Final = 4_000
"""NOTIFYs a second; each brings a transfer, and the answers come first."""
_AT_ONCE: Final = 20
"""NOTIFYs between two turns of the loop."""
_REFUSED: Final = frozenset({int(Rcode.NOTAUTH), int(Rcode.REFUSED), int(Rcode.NOTIMP), int(Rcode.FORMERR)})
_ANSWER: Final = 512


class Notifier:
    """Tells secondaries of both zones; a secondary takes the one that it has."""

    def __init__(self, published: PublishedZones) -> None:
        self._published = published
        zones = published.zones
        self._books: dict[bytes, NotifyBook[Endpoint]] = {
            zones.name: NotifyBook(),
            zones.table_name: NotifyBook(),
        }
        self._hosts: dict[str, list[Endpoint]] = {}
        self._by_source: dict[str, tuple[Endpoint, ...]] = {}
        self._sockets: dict[socket.AddressFamily, socket.socket] = {}
        self._asked: dict[tuple[Endpoint, int], tuple[bytes, int]] = {}
        """The zone and its serial by the secondary and the ID of the NOTIFY."""
        self._most_asked = 0
        self._ident = 0
        self._wake = trio.Event()
        self._log = structlog.get_logger("dnsproxy.rpz")

    @property
    def behind(self) -> Mapping[bytes, int]:
        """By zone, how many secondaries are not known to have the current version."""
        return {name: book.behind for name, book in self._books.items()}

    def set_targets(self, source: str, targets: Iterable[Endpoint]) -> None:
        """Tell these, beside those of other sources."""
        self._by_source[source] = tuple(targets)
        every = list(dict.fromkeys(one for found in self._by_source.values() for one in found))
        self._hosts = {}
        for one in every:
            self._hosts.setdefault(one.host, []).append(one)
        self._most_asked = 2 * len(every) * len(self._books) + 64
        for book in self._books.values():
            book.set_targets(every)
        self._wake.set()

    def served(self, client: str, zone: bytes, serial: int) -> None:
        """A client got a version."""
        match self._hosts.get(client, ()):
            case [target]:
                self._books[zone].has(target, serial)
            case several:
                self._books[zone].has_one_of(several, serial)

    async def run(self) -> NoReturn:
        """Send until cancelled."""
        async with trio.open_nursery() as nursery:
            try:
                for family in (socket.AF_INET, socket.AF_INET6):
                    self._open(family, nursery)
                nursery.start_soon(self._follow_versions)
                while True:
                    with trio.move_on_at(self._next_due()):
                        await self._wake.wait()
                    self._wake = trio.Event()
                    await self._send_due()
            finally:
                for one in self._sockets.values():
                    one.close()

    def _open(self, family: socket.AddressFamily, nursery: trio.Nursery) -> None:
        try:
            opened = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            # A kernel without IPv6 has no secondaries there either.
            self._log.info("no NOTIFY over this family", family=family.name, cause=error.strerror)
            return
        self._sockets[family] = opened
        nursery.start_soon(self._read_answers, opened)

    async def _follow_versions(self) -> NoReturn:
        while True:
            committed = self._published.committed
            now = trio.current_time()
            for name, book in self._books.items():
                version = self._published.version(name)
                if version is not None and version.serial != book.serial:
                    book.publish(version.serial, now=now)
                    self._wake.set()
            await committed.wait()

    def _next_due(self) -> float:
        return min(book.next_due() for book in self._books.values())

    async def _send_due(self) -> None:
        for name, book in self._books.items():
            for number, target in enumerate(book.due(trio.current_time()), 1):
                self._send(name, book, target)
                if not number % _AT_ONCE:
                    await trio.sleep(_AT_ONCE / RATE)

    def _send(self, name: bytes, book: NotifyBook[Endpoint], target: Endpoint) -> None:
        book.told(target, now=trio.current_time())
        opened = self._sockets.get(family_of(target))
        if opened is None:
            return
        self._ident = (self._ident + 1) & 0xFFFF
        self._asked[target, self._ident] = name, book.serial
        while len(self._asked) > self._most_asked:
            del self._asked[next(iter(self._asked))]
        message = format_notify(name, serial=book.serial, ttl=self._published.zones.ttl, ident=self._ident)
        try:
            address: SocketAddress = socket_address(target)
            # Without waiting: a full buffer loses one, and the retry comes.
            opened.sendto(message, address)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ECONNREFUSED):
                self._log.info("a NOTIFY was not sent", secondary=str(target), cause=error.strerror)

    async def _read_answers(self, opened: socket.socket) -> NoReturn:
        while True:
            await trio.lowlevel.wait_readable(opened)
            try:
                message, address = opened.recvfrom(_ANSWER)
            except OSError:
                continue  # an ICMP error of an earlier NOTIFY
            if len(message) < wire.HEADER or not message[2] & 0x80:
                continue
            target = endpoint_of(address)
            asked = self._asked.pop((target, int.from_bytes(message[:2], "big")), None)
            if asked is None:
                continue
            name, serial = asked
            if wire.rcode_of(message) in _REFUSED:
                self._books[name].refused(target)
            elif wire.rcode_of(message) == Rcode.NOERROR:
                self._books[name].agreed(target, serial)
