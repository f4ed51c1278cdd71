"""The feeder: makes each published table of the keeper the next version of the zones.

The law: a version has exactly the rows of one table that was published. Tables that come while one is made into a
version become one version together. Without the right to a serial nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import NoReturn, Protocol

import structlog
import trio

from dnsproxy.answers.table import Host, HostTable
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.verdict import Verdict
from dnsproxy.primary.published_zones import PublishedZones
from dnsproxy.replace.balancers import NO_BALANCERS
from dnsproxy.zone.building import Batch, BatchWriter
from dnsproxy.zone.control import FORMAT, Control, SavedGuards
from dnsproxy.zone.policy import Inexpressible
from dnsproxy.zone.serials import is_newer
from sidecar.loop.slices import in_slices


class Serials(Protocol):
    """Where the serials of new versions come from."""

    def may_publish(self) -> bool:
        """Whether this process may make versions of its own now."""

    async def next(self, after: int) -> int | None:
        """The serial after another one (0: before the first), which no later process gives again.

        The same for the same `after` until one was used. None: this process may not publish any more.
        """


class ZoneFeeder:
    """A TableObserver of the keeper whose registry it is.

    `is_synced`: whether the tables are whole yet; `retell`: have every row judged again. `given`: the serial that the
    table of now has from another primary; None: `serials` gives the next one.
    """

    def __init__(
        self,
        published: PublishedZones,
        registry: Registry,
        *,
        ttl: int,
        serials: Serials,
        is_synced: Callable[[], bool],
        retell: Callable[[], None] = lambda: None,
        given: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._published = published
        self._registry = registry
        self._ttl = ttl
        self._serials = serials
        self._is_synced = is_synced
        self._retell = retell
        self._given = given
        self._missed = False
        """Whether rows of the next table were judged while this process may not publish."""
        self._lacks_rows = False
        """Whether the zones lack rows that were judged."""
        self._writer = BatchWriter(published.zones.name)
        self._sealed: Batch | None = None
        self._wake = trio.Event()
        self._shown = Inexpressible()
        self._log = structlog.get_logger("dnsproxy.rpz")

    def judged(self, host: Host, verdict: Verdict, *, before: tuple[str, ...]) -> None:  # noqa: ARG002
        """See TableObserver."""
        if self._serials.may_publish():
            self._writer.judged(host, verdict)
        else:
            self._missed = True

    def begin_whole(self) -> None:
        """See TableObserver."""
        self._writer.begin_whole()

    def published(self, table: HostTable) -> None:
        """See TableObserver."""
        batch = self._writer.seal(table, self._control(), serial=self._given())
        missed, self._missed = self._missed, False
        if missed or not self._serials.may_publish():
            self._lose()
        elif batch.whole or not self._lacks_rows:
            self._lacks_rows = False
            if self._sealed is None:
                self._sealed = batch
            else:
                self._sealed.merge(batch)
        self._wake.set()

    def wake(self) -> None:
        """Look again whether this process may publish."""
        self._wake.set()

    async def run(self) -> NoReturn:
        """Publish until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            # Before the first lists are whole, a version would take names away from the secondaries.
            if not self._is_synced() or not self._serials.may_publish():
                continue
            if self._sealed is not None:
                await self._publish()
            elif self._lacks_rows:
                self._retell()

    def _lose(self) -> None:
        """Drop what nobody may publish here: the zones are another one's, and so are their rows."""
        self._sealed, self._lacks_rows = None, True

    async def _publish(self) -> None:
        published = self._published
        zones = published.zones
        # Before anything changes: rows without their serial would be another version's.
        serial = await self._serials.next(zones.serial)
        batch, self._sealed = self._sealed, None
        if serial is None or batch is None:
            self._lose()
            return
        if batch.serial is not None:
            # That of its rows: the next version may be on its way into the table already.
            serial = batch.serial
        async with published.changing:
            with trio.CancelScope(shield=True):
                await in_slices(zones.apply(batch))
            # Another primary's serial is served on without a change too, or a secondary that has it finds it nowhere.
            if zones.is_changed or (batch.serial is not None and is_newer(serial, zones.serial)):
                zones.commit(serial)
                published.tell()
                self._log.debug("zones published", serial=serial, names=len(zones.table))
        self._report(zones.inexpressible)

    def _report(self, found: Inexpressible) -> None:
        if found != self._shown and (found.one_label or found.too_long or found.triggers):
            self._log.warning(
                "names that a policy zone cannot say",
                wildcards_of_one_label=found.one_label,
                too_long=found.too_long,
                triggers=found.triggers,
                hint="--rpz-wildcards widen publishes wildcards of one label for any number of labels",
            )
        if _addresses_of(found) != _addresses_of(self._shown) and any(_addresses_of(found)):
            self._log.warning(
                "what leads here and resolvers with the policy zone do not replace",
                load_balancers_with_a_hostname=found.balancer_hostnames,
                addresses_without_a_target=found.balancer_addresses,
                names_below_a_wildcard=found.passed,
                hint="--replace ADDRESS=TARGET makes a rule of an address; --rpz-triggers names publishes every name",
            )
        self._shown = found

    def _control(self) -> Control:
        registry = self._registry
        targets = registry.targets
        return Control(
            FORMAT,
            registry.ttl or self._ttl,
            tuple(sorted(targets.unready)),
            SavedGuards(**asdict(registry.guards)),
            targets.default,
            dict(targets.by_class),
            dict(targets.steered),
            # Left out where there are none: a replica of an earlier version does not know the field.
            registry.balancers if registry.balancers != NO_BALANCERS else None,
        )


def _addresses_of(found: Inexpressible) -> tuple[int, int, int]:
    """What is not replaced by its address."""
    return found.balancer_hostnames, found.balancer_addresses, found.passed
