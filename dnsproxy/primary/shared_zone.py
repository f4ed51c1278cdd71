"""The shared zone: two replicas of a primary and one Lease; its holder publishes, the other one mirrors the holder.

The law: only the holder makes versions, with serials of its term; the other one serves those of the holder. Without the
API server nobody makes versions, and both serve on what they have.
"""

from __future__ import annotations

import secrets
import socket
import time
from typing import NoReturn

import structlog
import trio

from dnsproxy.primary.mirror import Mirror
from dnsproxy.primary.published_zones import PublishedZones
from dnsproxy.primary.settings import LeaseRef
from dnsproxy.primary.term import Term, holder_address
from dnsproxy.zone.tsig_keys import TsigKey
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.leases.leading import SeenLease
from sidecar.kubernetes.leases.lease_keeper import LeaseKeeper
from sidecar.values.endpoints import Endpoint


class SharedZone:
    """Serials (feeder.py) of a Lease, and the mirror for the time without it."""

    def __init__(self, lease: LeaseRef, published: PublishedZones, *, address: Endpoint, key: TsigKey | None) -> None:
        self.changed = trio.Event()
        """Set when this replica begins or ceases to lead, and replaced."""
        self._identity = f"{socket.gethostname()}_{secrets.token_hex(8)}"
        self._lease = lease
        self._address = address
        self._term = Term(self._identity, address, now=time.time)
        self._mirror = Mirror(published, key=key)
        self._looked = trio.Event()
        self._keeper: LeaseKeeper | None = None
        self._log = structlog.get_logger("dnsproxy.rpz")

    @property
    def _seen(self) -> SeenLease:
        return self._keeper.state.seen if self._keeper is not None else SeenLease()

    def may_publish(self) -> bool:
        """See Serials."""
        return self._keeper is not None and self._keeper.leads

    def notify(self, zone: bytes, serial: int | None) -> bool:
        """A NOTIFY of the holder came; whether it is for a zone of ours."""
        return self._mirror.notify(zone, serial)

    async def next(self, after: int) -> int | None:
        """See Serials; waits while the Lease allows no further one."""
        while self.may_publish():
            serial = self._term.next(after, self._seen)
            if serial is not None:
                return serial
            await self._wait_for_look()
        return None

    async def run(self, client: ApiClient) -> NoReturn:
        """Try to lead, and mirror the holder meanwhile, until cancelled."""
        self._keeper = LeaseKeeper(
            client,
            self._lease.ref.namespace,
            self._lease.ref.name,
            identity=self._identity,
            logger="dnsproxy.rpz",
            annotate=self._term.annotate,
            on_look=self._note_look,
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keeper.run)
            led = False
            while True:
                leads, holder = self.may_publish(), holder_address(self._seen)
                if leads != led:
                    led = leads
                    changed, self.changed = self.changed, trio.Event()
                    changed.set()
                if leads or holder is None or holder == self._address:
                    await self._wait_for_look()
                else:
                    await self._mirror_until_another(holder)

    async def _mirror_until_another(self, holder: Endpoint) -> None:
        self._log.info("serving the zone of another replica", holder=str(holder))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._mirror.run, holder)
            while not self.may_publish() and holder_address(self._seen) in (holder, None):
                await self._wait_for_look()
            nursery.cancel_scope.cancel()

    async def _wait_for_look(self) -> None:
        # Also without a look: who cannot renew ceases to lead by the time alone.
        with trio.move_on_after(1):
            await self._looked.wait()

    def _note_look(self) -> None:
        self._looked.set()
        self._looked = trio.Event()
