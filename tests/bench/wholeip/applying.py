"""How long rules take: to become the kernel's, to be read back, to reach the first packet, and to end flows.

The law: what the agent runs is measured, from the value to the kernel's answer, the start of nft included.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Final

import trio

from tests.bench.wholeip.ways import make_mappings
from tests.kit.networks import Network
from tests.kit.progress import Progress
from tests.wholeip.scene.cluster import CLUSTER, OPEN_PORT, Cluster, address
from wholeip.kernel.conntrack import end_flows
from wholeip.kernel.nft import Nft
from wholeip.mappings.mapping import Mapping
from wholeip.ruleset.ruleset import Ruleset, changes, make_ruleset

_NEW: Final = "203.0.113.200"
"""An address that comes and goes."""
_FLOWS: Final = 40_000


@dataclass(frozen=True, slots=True)
class Applied:
    """Seconds, for so many mappings."""

    mappings: int
    value: float
    """Making the ruleset of the mappings."""
    whole: float
    """The whole table, from the value."""
    read: float
    """Reading it back, as a compare with the kernel does."""
    change: Sequence[float]
    """One mapping more or less: the whole ruleset made, the change found and applied; each time."""
    packet: Sequence[float]
    """From the same beginning to the first packet in the pod, which a client sends every half millisecond."""


def measure_applying(made: Cluster, counts: Sequence[int], times: int, progress: Progress) -> list[Applied]:
    """For each of these counts of mappings."""
    measured = []
    for count in counts:
        progress.step(f"applying {count:,} mappings")
        made.node.run("nft", "flush", "ruleset")
        with Network(made.node.process).entered():
            measured.append(trio.run(_measure, made, count, times))
    return measured


async def _measure(made: Cluster, count: int, times: int) -> Applied:
    nft, mappings = Nft(), make_mappings(count)
    begun = time.monotonic()
    ruleset = make_ruleset(mappings, cluster=CLUSTER)
    valued = time.monotonic()
    await nft.apply(changes(None, ruleset))
    applied = time.monotonic()
    assert await nft.read_ruleset() == ruleset
    read = time.monotonic()
    heard = made.a.do("listen_raw", family=4, protocol=17)
    changed, packets, current = [], [], ruleset
    for _ in range(times):
        more = [*mappings, replace(mappings[0], address=ip_address(_NEW), egress=False)]
        seconds, packet, current = await _change(made, nft, current, more, heard)
        changed.append(seconds)
        packets.append(packet)
        begun_again = time.monotonic()
        less = make_ruleset(mappings, cluster=CLUSTER)
        await nft.apply(changes(current, less))
        changed.append(time.monotonic() - begun_again)
        current = less
    made.a.do("close", number=heard)
    return Applied(count, valued - begun, applied - valued, read - applied, changed, packets)


async def _change(
    made: Cluster, nft: Nft, current: Ruleset, more: Sequence[Mapping], heard: int
) -> tuple[float, float, Ruleset]:
    sprinkled = made.client.do("sprinkle", address=_NEW, port=OPEN_PORT)
    begun = time.monotonic()
    desired = make_ruleset(more, cluster=CLUSTER)
    await nft.apply(changes(current, desired))
    ended = time.monotonic()
    arrived = made.a.do("arrival", number=heard, source=address("client", 4))
    made.client.do("stop", number=sprinkled)
    return ended - begun, arrived - begun, desired


@dataclass(frozen=True, slots=True)
class Ended:
    """How long it took to end flows that a filter no longer allows."""

    flows: int
    """That the kernel tracked."""
    ended: int
    look: float
    """Seconds to find that none has to end."""
    end: float
    """Seconds to end all."""


def measure_ending(made: Cluster, progress: Progress) -> Ended:
    """One address with many flows whose port is closed."""
    progress.step(f"ending {_FLOWS:,} flows")
    made.node.run("nft", "flush", "ruleset")
    mappings = make_mappings(1)
    before = make_ruleset(mappings, cluster=CLUSTER)
    after = make_ruleset([replace(mappings[0], opened=frozenset())], cluster=CLUSTER)
    with Network(made.node.process).entered():
        trio.run(Nft().apply, changes(None, before))
        made.node.run("conntrack", "-F")
        made.client.do("many_flows", address=str(mappings[0].address), port=OPEN_PORT, count=_FLOWS)
        tracked = int(made.node.run("conntrack", "-C"))
        begun = time.monotonic()
        trio.run(end_flows, before, before)
        looked = time.monotonic()
        ended = trio.run(end_flows, before, after)
        return Ended(tracked, ended, looked - begun, time.monotonic() - looked)
