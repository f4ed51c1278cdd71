"""How long a change takes while the agent compares the kernel's table with what the cluster asks for.

The law: the agent's own reconciler, flow ender and kernel; only the objects come without an API server. A change counts
as one during a comparison if a comparison ran when the change began.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

import trio
from structlog.testing import capture_logs

from sidecar.kubernetes.follower_status import FollowerStatus
from tests.kit.networks import Network
from tests.kit.programs import program
from tests.kit.progress import Progress
from tests.kit.wholeip_objects import READY, WHOLE, endpoint_slice, node, service
from tests.wholeip.scene.cluster import Cluster
from wholeip.agent.flow_ender import FlowEnder
from wholeip.agent.pace import ReconcilePace
from wholeip.agent.reconciler import Reconciler
from wholeip.agent.status import AgentStatus
from wholeip.agent.update import Update
from wholeip.kernel.conntrack import end_flows
from wholeip.kernel.nft import Nft
from wholeip.mappings.cluster_state import ClusterState
from wholeip.ruleset.ruleset import TABLE, Transaction

_NODE: Final = "n1"
_DAMAGED: Final = 1_000
"""Elements that another program deletes before a comparison that repairs."""
_PAUSE: Final = 0.01
"""Seconds between two changes."""
_LONGEST_DELAY: Final = 0.3
"""Seconds from the beginning of a comparison to its first change, of which there are so many delays."""
_DELAYS: Final = 7
_NEVER: Final = 1e6
_NEIGHBOUR: Final = b"add table ip neighbour\ndelete table ip neighbour\n"


@dataclass
class Resync:
    """Seconds from a changed object to the kernel's answer, each."""

    mappings: int
    damaged: int = _DAMAGED
    quiet: list[float] = field(default_factory=list)
    """Without a comparison."""
    clean: list[float] = field(default_factory=list)
    """During comparisons that find nothing."""
    repairing: list[float] = field(default_factory=list)
    """During comparisons that find and repair so many missing elements."""


class _Notified(Nft):
    """A table of which the benchmark may say that another program has changed it."""

    changed: Callable[[], None]

    async def watch_changes(
        self, changed: Callable[[], None], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        self.changed = changed
        await super().watch_changes(changed, task_status=task_status)


@dataclass
class _Agent:
    """The agent of a node, and the cluster that it knows."""

    services: int
    state: ClusterState = field(default_factory=lambda: ClusterState(node=_NODE))
    table: _Notified = field(default_factory=_Notified)
    status: AgentStatus = field(default_factory=lambda: AgentStatus(node=_NODE))
    applied: trio.Event = field(default_factory=trio.Event)
    turn: int = 0
    awaited: tuple[str, str] = ("", "")
    """The Service that changes now, and the address of its pod."""

    def __post_init__(self) -> None:
        self.ender = FlowEnder(end_flows, self.status)
        pace = ReconcilePace(resync=_NEVER)
        self.reconciler = Reconciler(self.table, self.state, self.status, pace=pace, on_applied=self._note)
        self.state.change_nodes({_NODE: node(_NODE, "198.51.100.11", pods=["10.0.0.0/8"])})
        for number in range(self.services):
            self.state.change_services({_key(number): service(f"vm{number}", _address(number), annotations=WHOLE)})
            self.move(number, 0)
        self.status.watches = [FollowerStatus(synced=True)]

    def move(self, number: int, side: int) -> None:
        """The pod of a Service gets one of its two addresses."""
        found = endpoint_slice(f"vm{number}", (_pod(number, side), READY), name=f"vm{number}", node=_NODE)
        self.state.change_slices({_key(number): found})

    async def change(self) -> float:
        """Change one pod's address; the seconds until the kernel has it."""
        places = self.services - _DAMAGED
        # The first ones are those whose elements are damaged.
        number, side = _DAMAGED + self.turn % places, 1 - self.turn // places % 2
        self.turn += 1
        self.applied, self.awaited = trio.Event(), (_key(number), _pod(number, side))
        begun = time.perf_counter()
        self.move(number, side)
        self.reconciler.wake()
        await self.applied.wait()
        return time.perf_counter() - begun

    def _note(self, update: Update) -> None:
        self.ender.note(update)
        key, pod = self.awaited
        if any(str(one.endpoint) == pod for one in update.desired.plan.part(key).mappings):
            self.applied.set()


def measure_resync(made: Cluster, mappings: int, changes: int, progress: Progress) -> Resync:
    """So many changes of each kind."""
    progress.step(f"changes during comparisons of {mappings:,} mappings")
    made.node.run("nft", "flush", "ruleset")
    with Network(made.node.process).entered(), capture_logs():
        return trio.run(_measure, mappings, changes)


async def _measure(mappings: int, changes: int) -> Resync:
    agent, found, other = _Agent(mappings), Resync(mappings), Nft()
    damage = Transaction(TABLE, deletes={"whole_v4": {_address(one): "" for one in range(_DAMAGED)}})

    async def notify() -> None:
        # The agent reads its table only if the kernel has committed a change to any table since the last comparison.
        await trio.run_process([program("nft"), "-f", "-"], stdin=_NEIGHBOUR)
        agent.table.changed()

    async with trio.open_nursery() as nursery:
        await agent.reconciler.begin()
        nursery.start_soon(agent.reconciler.run)
        nursery.start_soon(agent.ender.run)
        agent.reconciler.wake()
        while agent.status.why_not_ready():  # noqa: ASYNC110  # plain state of what is measured
            await trio.sleep(_PAUSE)
        for _ in range(changes):
            found.quiet.append(await agent.change())
            await trio.sleep(_PAUSE)
        while len(found.clean) < changes:
            await _change_meanwhile(agent, notify, found.clean)
        while len(found.repairing) < changes:
            repaired = agent.status.repaired
            await _change_meanwhile(agent, lambda: other.apply(damage), found.repairing)
            while agent.status.repaired == repaired:  # noqa: ASYNC110
                await trio.sleep(_PAUSE)
        nursery.cancel_scope.cancel()
    return found


async def _change_meanwhile(agent: _Agent, suspect: Callable[[], Awaitable[None]], seconds: list[float]) -> None:
    """Begin changes as long as a comparison runs."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(suspect)
        while not agent.reconciler.is_comparing:  # noqa: ASYNC110
            await trio.sleep(_PAUSE / 10)
        await trio.sleep(_LONGEST_DELAY * (len(seconds) % _DELAYS) / _DELAYS)
        while agent.reconciler.is_comparing:
            seconds.append(await agent.change())
            await trio.sleep(_PAUSE)


def _key(number: int) -> str:
    return f"default/vm{number}"


def _address(number: int) -> str:
    return str(ip_address(int(ip_address("203.0.0.1")) + number))


def _pod(number: int, side: int) -> str:
    return str(ip_address(int(ip_address("10.0.0.1")) + 2 * number + side))
