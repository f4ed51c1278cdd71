"""The feeder: a version has exactly the rows of one table, also if Services fail while names are judged.

Hubs are in tests/dnsproxy/replica/test_hubs.py too.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import pytest
import trio
import trio.testing

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames import keeper as keeper_module
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.targets import Targets
from dnsproxy.primary.feeder import ZoneFeeder
from dnsproxy.primary.published_zones import PublishedZones
from dnsproxy.primary.serials import SameSerials
from dnsproxy.zone.building import Zones
from tests.kit.zone_sides import ZONE, PrimarySide, ReplicaSide, show

TARGETS: Final = Targets(default=("service:edge/relay",), services={"edge/relay": ("192.0.2.3",)})
UNREADY: Final = frozenset(["edge/relay"])


def claim(hostname: str, reach: Reach = Reach.NAME, name: str = "app") -> Claim:
    return Claim(hostname, reach, Origin("Ingress", name, "shop", "2026-01-01T00:00:00Z"))


CLAIMS: Final = (
    claim("a.example.org"),
    claim("*.example.org", Reach.ONE_LABEL),
    claim("*.example.org", Reach.ANY_LABELS, "route"),
    claim("z.example.org"),
)


@pytest.mark.parametrize("steps", range(1, 5))
@pytest.mark.parametrize("retelling", [False, True], ids=["what changed", "every name"])
async def test_a_service_that_fails_amid_a_swap_takes_no_row_away(
    steps: int, retelling: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is shown at once, with half of the rows; the reaches of one hostname may be on both sides."""
    primary = PrimarySide(targets=TARGETS)
    primary.registry.replace("ingress", "shop/app", CLAIMS)
    replica = ReplicaSide()
    if retelling:
        await primary.swap()
        await replica.refresh(primary)
        primary.keeper.retell()
    versions = []

    async def fail_amid(work: Generator[None, None, int]) -> int:
        for number in range(100):
            try:
                next(work)
            except StopIteration as done:
                assert steps <= number + 1, "it was not amid the swap"
                found: int = done.value
                return found
            if number == steps - 1:
                primary.registry.set_services(TARGETS.services, unready=UNREADY, touching=())
                primary.keeper.forward(UNREADY)
                await trio.testing.wait_all_tasks_blocked()
                versions.append(len(primary.zones.zones.table))
        raise AssertionError

    monkeypatch.setattr(keeper_module, "in_slices", fail_amid)
    before = len(primary.zones.zones.table)
    await primary.swap()
    monkeypatch.undo()
    assert versions == [before], "a version of half a table"
    await replica.refresh(primary)
    assert show(replica.table) == show(primary.table)
    assert primary.table.unready == UNREADY
    assert len(primary.table.exact) == 2
    assert len(replica.registry.verdict("*.example.org", Reach.ONE_LABEL).contenders) == 1


class Hub:
    """A replica that serves the zones of its primary on; made inside of a loop."""

    def __init__(self) -> None:
        self.replica = ReplicaSide()
        self.zones = PublishedZones(Zones(ZONE))
        self.feeder = ZoneFeeder(
            self.zones,
            self.replica.registry,
            ttl=5,
            serials=SameSerials(self._given),
            is_synced=lambda: True,
            retell=self.replica.keeper.retell,
            given=self._given,
        )
        self.replica.keeper.observers.append(self.feeder)

    def _given(self) -> int | None:
        return self.replica.registry.serial

    async def begin(self, primary: PrimarySide, nursery: trio.Nursery) -> None:
        """Serve the first version, whose rows were judged before it had a serial."""
        nursery.start_soon(self.feeder.run)
        await self.replica.refresh(primary)
        await trio.testing.wait_all_tasks_blocked()
        await self.replica.keeper.swap()
        await trio.testing.wait_all_tasks_blocked()


async def put(primary: PrimarySide, hostname: str) -> None:
    primary.registry.replace("ingress", hostname, [claim(hostname)])
    await primary.swap()


async def test_a_hub_serves_each_version_with_its_own_serial_while_the_next_one_is_on_its_way(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, hub = PrimarySide(targets=TARGETS), Hub()
    await put(primary, "n1.example.org")
    await hub.begin(primary, nursery)
    sizes = {}

    async def serve_before_the_swap_ends() -> None:
        hub.zones.changing.release()
        await trio.testing.wait_all_tasks_blocked()
        sizes[hub.zones.zones.serial] = len(hub.zones.zones.table)

    # A transfer holds the zones, and two more versions come meanwhile; the third is not whole yet when it ends.
    await hub.zones.changing.acquire()
    for hostname in ("n2.example.org", "n3.example.org"):
        await put(primary, hostname)
        await hub.replica.refresh(primary)
        await trio.testing.wait_all_tasks_blocked()
    monkeypatch.setattr(hub.replica.keeper, "_settle", serve_before_the_swap_ends)
    await put(primary, "n4.example.org")
    await hub.replica.refresh(primary)
    await trio.testing.wait_all_tasks_blocked()
    sizes[hub.zones.zones.serial] = len(hub.zones.zones.table)
    control = 1
    assert sizes == {3: 3 + control, 4: 4 + control}


async def test_a_hub_serves_the_serial_of_a_restarted_primary_on_though_nothing_else_changed(
    nursery: trio.Nursery,
) -> None:
    primary, hub = PrimarySide(targets=TARGETS), Hub()
    await put(primary, "app.example.org")
    await hub.begin(primary, nursery)
    again = PrimarySide(start=500, targets=TARGETS)
    await put(again, "app.example.org")
    await hub.replica.refresh(again)
    await trio.testing.wait_all_tasks_blocked()
    assert hub.zones.zones.serial == again.serial == 500
