"""The zone desk of the parent: answers what workers pass on about zones.

The law: the parent's own server answers, and it is the only one that knows the zones; a fault there costs one query.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import structlog
import trio

from dnsproxy.answers.decide import decide
from dnsproxy.server.dns_server import DnsServer
from dnsproxy.workers.member import Handed, Member, ZoneMessage
from dnsproxy.workers.messages import Ask, Notified, Told, Zones, frame


class ZoneDesk:
    """Passes the workers' messages to `own`, the server of the parent."""

    def __init__(self, own: DnsServer) -> None:
        self._own = own
        self._zones = Zones(b"", ())
        self._log = structlog.get_logger("dnsproxy.workers")

    def serve(self, zone: bytes, notified: tuple[bytes, ...]) -> None:
        """Set the zone that the parent answers for, and those whose NOTIFY it takes; before the workers start."""
        self._zones = Zones(zone, notified)

    @property
    def introduction(self) -> bytes:
        """The frame that tells a worker of the zones."""
        return frame(self._zones)

    def taker(self, member: Member, nursery: trio.Nursery) -> Callable[[ZoneMessage], None]:
        """What takes the messages of one worker."""

        def take(message: ZoneMessage) -> None:
            try:
                if isinstance(message, Ask):
                    self._answer(message, member)
                elif isinstance(message, Notified):
                    if self._own.answer_notify is not None:
                        self._own.answer_notify(message.message)
                else:
                    nursery.start_soon(self._serve, message)
            except Exception:  # noqa: BLE001  # as in DnsServer: a bug costs one query
                self._log.exception("a query about a zone failed")

        return take

    def _answer(self, ask: Ask, member: Member) -> None:
        zones = self._own.zones
        if zones is None:
            return

        def tell(reply: bytes | None) -> None:
            member.outbox.post(frame(Told(ask.ident, reply)))

        query = zones.concerns(ask.message, decide(ask.message, self._own.table, stream=ask.stream))
        if query is None:
            return
        if not ask.stream:
            zones.answer_datagram(query, client=ask.client, reply=tell)
        elif zones.takes_connection(query, client=ask.client):
            tell(None)
        elif isinstance(answer := zones.answer_stream(query, client=ask.client), bytes):
            tell(answer)

    async def _serve(self, handed: Handed) -> None:
        sock = socket.socket(fileno=handed.descriptor)
        sock.setblocking(False)
        await self._own.serve_stream(trio.SocketStream(trio.socket.from_stdlib_socket(sock)), handed.received)
