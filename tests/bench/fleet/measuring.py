"""What is measured of one primary with all its secondaries, one thing after the other.

The law: a primary and its secondaries are fresh in each round, and the first thing that all do is to transfer the zone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.bench.fleet.crowd import Crowd
from tests.bench.fleet.one_transfer import Transferred, ask_serial, transfer
from tests.bench.fleet.primaries import Kind, Primary, Site
from tests.bench.fleet.probing import probing
from tests.bench.fleet.replicas import measure_replicas, running_replicas
from tests.bench.fleet.samples import (
    Figures,
    Meanwhile,
    change_figures,
    changes_figures,
    one_figures,
    rollout_figures,
)
from tests.bench.fleet.usage import read_session_memory
from tests.bench.fleet.versions import lags, watched
from tests.bench.kit.clock import read_clock
from tests.bench.kit.cpus import Cpus
from tests.bench.kit.faults import BadReport

ROLLOUT_SECONDS: Final = 600.0
"""Patience."""
_CHANGE_SECONDS: Final = 120.0
_PAUSE: Final = 1.0
"""Seconds between two single changes: a primary may pace its NOTIFYs."""
_SINGLE: Final = 5


@dataclass(frozen=True, slots=True)
class Scene:
    """A running primary and its secondaries."""

    kind: Kind
    site: Site
    primary: Primary
    crowd: Crowd
    queries: Path
    cpus: Cpus
    changes: int
    """Single ones."""
    rate: float
    seconds: float
    replicas: int
    last_name: str
    priority: bool = False
    figures: Figures = field(default_factory=dict)

    @contextmanager
    def meanwhile(self) -> Iterator[list[Meanwhile]]:
        """What the primary used and answered in a block."""
        found: list[Meanwhile] = []
        folder, cpus = self.site.folder, self.cpus.load
        with probing(self.site.port, self.queries, folder=folder, cpus=cpus, first=self.priority) as probes:
            sessions = self.primary.session, self.crowd.session
            before, begun = [read_clock(one) for one in sessions], time.monotonic()
            yield found
            seconds = time.monotonic() - begun
            cpu, load = (read_clock(one) - earlier for one, earlier in zip(sessions, before, strict=True))
        found.append(Meanwhile(seconds, cpu, probes[0], load))

    @property
    def serial(self) -> int:
        """The primary's. Raises BadReport."""
        serial = ask_serial(self.site.port, self.site.wire_zone)
        if serial is None:
            raise BadReport(f"{self.kind.label} does not answer")
        return serial

    def transfer(self, since: int | None = None) -> Transferred:
        return transfer(self.site.port, self.site.wire_zone, since=since)


def roll_out(scene: Scene) -> Figures:
    """All transfer the whole zone at once."""
    before = read_session_memory(scene.primary.session)
    with scene.meanwhile() as meanwhile:
        begun = scene.crowd.load()
        scene.crowd.wait_newer(None, patience=ROLLOUT_SECONDS)
        memory = before, read_session_memory(scene.primary.session)
    return rollout_figures(begun, scene.crowd.take(), meanwhile[0], memory=memory)


def transfer_one(scene: Scene) -> Figures:
    """AXFR and IXFR by one secondary while the others rest."""
    differences = []
    with scene.meanwhile() as meanwhile:
        whole = [scene.transfer() for _ in range(_SINGLE)]
        for _ in range(_SINGLE):
            since = scene.serial
            _change_everywhere(scene, since)
            differences.append(scene.transfer(since))
            # The first whole transfer after a change is the one for which something has to be made.
            whole.append(scene.transfer())
    scene.crowd.take()
    return one_figures(whole, differences, meanwhile[0])


def change_once(scene: Scene) -> Figures:
    """One change at all secondaries, some times."""
    times: list[float] = []
    fetched = 0
    time.sleep(_PAUSE)
    scene.crowd.take()
    with scene.meanwhile() as meanwhile:
        for _ in range(scene.changes):
            since, begun = scene.serial, time.monotonic()
            _change_everywhere(scene, since)
            taken = scene.crowd.take()
            times += [event.at - begun for event in taken.events]
            fetched += len(taken.events)
            time.sleep(_PAUSE)
    return change_figures(times, fetched, meanwhile[0])


def _change_everywhere(scene: Scene, since: int) -> None:
    scene.primary.change()
    scene.crowd.wait_newer(since, patience=_CHANGE_SECONDS)


def change_steadily(scene: Scene) -> Figures:
    """Many changes a second for some time."""
    if not scene.kind.changes_fast:
        return {}
    scene.crowd.take()
    done = 0
    with scene.meanwhile() as meanwhile, watched(scene.site.port, scene.site.wire_zone) as published:
        begun = time.monotonic()
        while (now := time.monotonic()) < begun + scene.seconds:
            if now >= begun + done / scene.rate:
                scene.primary.change()
                done += 1
            else:
                time.sleep(begun + done / scene.rate - now)
        ended = time.monotonic()
        settled = _settle(scene, ended)
    taken = scene.crowd.take()
    return changes_figures(
        lags(published, taken.events),
        done=done / (ended - begun),
        versions=len(published),
        fetched=len(taken.events) / (ended - begun),
        settled=settled,
        meanwhile=meanwhile[0],
    )


def _settle(scene: Scene, ended: float) -> float:
    """Seconds until all have the last version."""
    while True:
        serial = scene.serial
        scene.crowd.wait_newer((serial - 1) % (1 << 32), patience=_CHANGE_SECONDS)
        found = time.monotonic() - ended
        # The last change may still be on its way to the primary.
        time.sleep(2 * _PAUSE)
        if scene.serial == serial:
            return found


def run_replicas(scene: Scene) -> Figures:
    """Real dnsproxys beside the others."""
    if not scene.replicas or scene.kind.label != "ours":
        return {}
    with running_replicas(
        scene.replicas,
        policy=scene.site.policy,
        port=scene.site.port,
        last=scene.last_name,
        folder=scene.site.folder,
        cpus=scene.cpus.load,
    ) as replicas:
        time.sleep(_PAUSE)
        return measure_replicas(replicas, scene.primary.change, changes=scene.changes)


@dataclass(frozen=True, slots=True)
class Workload:
    """One of those that can be asked for."""

    name: str
    about: str
    measure: Callable[[Scene], Figures]


WORKLOADS: Final = (
    Workload("rollout", "all secondaries transfer the whole zone at once", roll_out),
    Workload("one", "AXFR, and IXFR of one change, by one secondary", transfer_one),
    Workload("change", "one change, until all secondaries have it", change_once),
    Workload("changes", "many changes a second, and how far behind the secondaries are", change_steadily),
    Workload("replicas", "some real dnsproxys among the secondaries", run_replicas),
)
"""The first is always played, because the others need what it leaves."""
