"""The answers to secondaries: SOA, IXFR and AXFR of the two zones, over UDP and TCP.

The law: a query for anything else at or below a zone is refused, and never forwarded: the zones are for transfer. All
transfers together occupy the loop for a few sends in each of its turns, so answers do not wait for them.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import Final

from dnsproxy.answers.decide import Outcome, refuse, reply_limit
from dnsproxy.dns.wire import Query, Rcode, Type
from dnsproxy.primary.published_zones import PublishedZones
from dnsproxy.primary.request_check import RequestCheck, Sealer
from dnsproxy.primary.settings import RpzSettings
from dnsproxy.zone.concern import query_within
from dnsproxy.zone.content import Piece
from dnsproxy.zone.requests import serial_of_request
from dnsproxy.zone.serials import is_newer
from dnsproxy.zone.transfer import ZoneVersion, apex_record, incremental, messages, one_record, reply_head, whole

_SEALED_ROOM: Final = 200
"""Octets that a signature may take in a datagram."""

_SMALL: Final = 4096
"""Octets of a difference that is sent also if the whole zone is smaller: secondaries then touch what changed alone."""

Served = Callable[[str, bytes, int], None]
"""Told that a client has a serial of a zone."""


def _nobody(_client: str, _zone: bytes, _serial: int) -> None:
    return None


class ZoneServer:
    """Answers for the published zones; `on_served` is told of each secondary that has a version."""

    def __init__(self, published: PublishedZones, settings: RpzSettings, *, on_served: Served = _nobody) -> None:
        self.transfers = {"axfr": 0, "ixfr": 0, "current": 0}
        self._published = published
        self._check = RequestCheck(settings)
        self._on_served = on_served
        self._zone = published.zones.name

    @property
    def refused(self) -> int:
        """How many requests were refused."""
        return self._check.refusals.count

    def concerns(self, message: bytes, outcome: Outcome) -> Query | None:
        """See ZoneService."""
        return query_within(self._zone, message, outcome)

    def answer_datagram(self, query: Query, *, client: str, reply: Callable[[bytes], None]) -> None:
        """See ZoneService."""
        found = self._answer(query, client=client, stream=False)
        if isinstance(found, bytes):
            reply(found)

    def answer_stream(self, query: Query, *, client: str) -> bytes | ZoneTransfer:
        """See ZoneService."""
        return self._answer(query, client=client, stream=True)

    def takes_connection(self, query: Query, *, client: str) -> bool:
        """See ZoneService."""
        return (
            query.type in (Type.AXFR, Type.IXFR)
            and self._published.zones.content_of(query.name) is not None
            and self._check.admits(client)
        )

    def _answer(self, query: Query, *, client: str, stream: bool) -> bytes | ZoneTransfer:
        if self._published.zones.content_of(query.name) is None or query.type not in _SERVED:
            return refuse(query, Rcode.REFUSED).message
        sealer = self._check.check(query, client=client, stream=stream)
        if isinstance(sealer, bytes):
            return sealer
        version = self._published.version(query.name)
        if version is None:
            return sealer.seal(refuse(query, Rcode.SERVFAIL).message)
        if query.type in (Type.SOA, Type.NS):
            body = one_record(version, apex_record(version, query.type), rtype=query.type, reply=_head(query))
            return sealer.seal(query.message[:2] + body)
        return self._transfer(query, version, sealer, client=client, stream=stream)

    def _transfer(
        self, query: Query, version: ZoneVersion, sealer: Sealer, *, client: str, stream: bool
    ) -> bytes | ZoneTransfer:
        since = serial_of_request(query) if query.type == Type.IXFR else None
        if query.type == Type.IXFR and since is None:
            return refuse(query, Rcode.FORMERR).message
        if not stream and query.type == Type.AXFR:
            # RFC 5936 section 4.2: AXFR over UDP has no meaning.
            return refuse(query, Rcode.FORMERR).message
        if since is not None and not is_newer(version.serial, since):
            self.transfers["current"] += 1
            if since == version.serial:
                self._on_served(client, query.name, version.serial)
            return self._only_soa(query, version, sealer)
        if not stream:
            return self._datagram(query, version, sealer, since=since or 0, client=client)
        return ZoneTransfer(self, query, sealer, since=since, client=client)

    def _datagram(self, query: Query, version: ZoneVersion, sealer: Sealer, *, since: int, client: str) -> bytes:
        """The whole difference if it fits, else the SOA alone: the client then asks over TCP (RFC 1995 section 2)."""
        difference = self._published.increment_now(query.name, since)
        limit = reply_limit(query, stream=False) - _SEALED_ROOM
        if difference is None or difference.size > limit:
            return self._only_soa(query, version, sealer)
        found = list(
            messages(version, incremental(version, difference, since=since), rtype=query.type, reply=_head(query))
        )
        if len(found) > 1 or len(found[0]) > limit:
            return self._only_soa(query, version, sealer)
        self.served(client, version, incremental=True)
        return sealer.seal(query.message[:2] + found[0])

    def _only_soa(self, query: Query, version: ZoneVersion, sealer: Sealer) -> bytes:
        body = one_record(version, version.soa, rtype=query.type, reply=_head(query))
        return sealer.seal(query.message[:2] + body)

    async def records(self, name: bytes, since: int | None) -> tuple[ZoneVersion, Iterator[Piece], bool] | None:
        """What to send for a serial, or for AXFR: a version, its records, and whether they are a difference."""
        if since is not None:
            increment = await self._published.increment(name, since)
            if (
                increment is not None
                and increment.difference is not None
                and increment.difference.size <= max(increment.size, _SMALL)
            ):
                version = increment.version
                return version, incremental(version, increment.difference, since=since), True
        snapshot = await self._published.snapshot(name)
        if snapshot is None:
            return None
        return snapshot.version, whole(snapshot.version, snapshot.pieces), False

    def served(self, client: str, version: ZoneVersion, *, incremental: bool) -> None:
        """Note that a client has a version now."""
        self.transfers["ixfr" if incremental else "axfr"] += 1
        self._on_served(client, version.name, version.serial)


_SERVED: Final = frozenset({int(Type.SOA), int(Type.NS), int(Type.IXFR), int(Type.AXFR)})


class ZoneTransfer:
    """One transfer over TCP."""

    def __init__(self, server: ZoneServer, query: Query, sealer: Sealer, *, since: int | None, client: str) -> None:
        self._server = server
        self._query = query
        self._sealer = sealer
        self._since = since
        self._client = client
        self._sent: tuple[ZoneVersion, bool] | None = None

    async def messages(self) -> AsyncGenerator[bytes, None]:
        """The messages, in order."""
        query = self._query
        found = await self._server.records(query.name, self._since)
        if found is None:
            yield refuse(query, Rcode.SERVFAIL).message
            return
        version, records, is_incremental = found
        bodies = messages(version, records, rtype=query.type, reply=_head(query))
        for body, is_last in _with_last(bodies):
            yield self._sealer.seal(query.message[:2] + body, several=not is_last or self._sent is not None)
            self._sent = version, is_incremental

    def finish(self) -> None:
        """Note that the client accepted all messages."""
        if self._sent is not None:
            version, is_incremental = self._sent
            self._server.served(self._client, version, incremental=is_incremental)


def _with_last(bodies: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    held: bytes | None = None
    for body in bodies:
        if held is not None:
            yield held, False
        held = body
    if held is not None:
        yield held, True


def _head(query: Query) -> int:
    flags: int = struct.unpack_from("!H", query.message, 2)[0]
    return reply_head(flags)
