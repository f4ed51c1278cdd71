"""The feeder: a version has exactly the rows of one table, also if Services fail while names are judged."""

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
from tests.kit.zone_sides import PrimarySide, ReplicaSide, show

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
