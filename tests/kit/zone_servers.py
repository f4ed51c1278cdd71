"""A DNS server on loopback that is primary for the zones of a table, for the duration of a block, and its clients."""

from __future__ import annotations

import base64
import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import dns.name
import dns.query
import dns.rdatatype
import dns.tsig
import dns.xfr
import dns.zone
import trio

from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.primary.settings import RpzSettings
from dnsproxy.server.stream_connection import StreamLimits
from dnsproxy.zone.tsig_keys import ALGORITHMS, TsigKey
from tests.kit.dns_server import Running, running, wait_until
from tests.kit.messages import parse_host
from tests.kit.zone_sides import ZONE, PrimarySide

SECONDS: Final = 20.0
POLICY: Final = dns.name.from_text("rpz.example.org")
TABLE: Final = dns.name.from_text("_switchback.rpz.example.org")
KEYS: Final = tuple(
    TsigKey(f"key-{number}.example.org", algorithm, b"%d" % number * 16)
    for number, algorithm in enumerate(sorted(set(ALGORITHMS.values())))
)
OPEN: Final = RpzSettings(ZONE)
SIGNED: Final = RpzSettings(ZONE, KEYS)
T = TypeVar("T")


def dns_key(key: TsigKey) -> dns.tsig.Key:
    return dns.tsig.Key(key.name, base64.b64encode(key.secret).decode(), key.algorithm)


@dataclass
class ZonesServed:
    """A running primary, and a change of its table."""

    primary: PrimarySide
    running: Running

    @property
    def port(self) -> int:
        return self.running.endpoint.port

    async def put(self, key: str, *lines: str) -> None:
        """Set the hosts of one key, in the notation of parse_host, and publish."""
        origin = Origin("hosts file", key)
        claims = [Claim(one.hostname, one.reach, origin, Terms(one.addresses)) for one in map(parse_host, lines)]
        self.primary.registry.replace("hosts", key, claims)
        await self.primary.swap()
        self.running.server.table = self.primary.table

    async def wait_for_transfers(self, **counts: int) -> None:
        """The server counts a transfer when the client has accepted its last octet."""
        await wait_until(lambda: {**self.primary.server.transfers, **counts} == self.primary.server.transfers)

    async def transfer(
        self, zone: dns.zone.Zone, *, key: TsigKey | None = None, serial: int | None = None, udp: bool = False
    ) -> None:
        """Bring a zone up to date with dnspython's client: AXFR without a serial, else IXFR, over UDP if `udp`."""
        query, _ = dns.xfr.make_query(zone, serial, keyring=dns_key(key) if key else None)
        mode = dns.query.UDPMode.TRY_FIRST if udp else dns.query.UDPMode.NEVER
        await in_thread(
            dns.query.inbound_xfr, "127.0.0.1", zone, query, port=self.port, lifetime=SECONDS, udp_mode=mode
        )


async def in_thread(function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
    return await trio.to_thread.run_sync(functools.partial(function, *arguments, **keywords))


@asynccontextmanager
async def zones_served(
    *lines: str, settings: RpzSettings = OPEN, start: int = 1, limits: StreamLimits | None = None
) -> AsyncIterator[ZonesServed]:
    primary = PrimarySide(start=start, settings=settings)
    async with running(limits=limits) as found:
        found.server.zones = primary.server
        served = ZonesServed(primary, found)
        await served.put("first", *lines)
        yield served


def records_of(zone: dns.zone.Zone) -> set[str]:
    """Owner, type and data of all records but the SOA."""
    return {
        f"{name} {dns.rdatatype.to_text(rdata.rdtype)} {rdata}"
        for name, _, rdata in zone.iterate_rdatas()
        if rdata.rdtype != dns.rdatatype.SOA
    }


def serial_of(zone: dns.zone.Zone) -> int:
    serial: int = zone.get_soa().serial
    return serial
