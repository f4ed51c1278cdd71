"""One run of the benchmark: a network of its own, an API server, and the primaries one after the other, in rounds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.bench.fleet.addresses import address_of, replica_address
from tests.bench.fleet.crowd import running_crowd
from tests.bench.fleet.measuring import WORKLOADS, Scene, Workload
from tests.bench.fleet.one_transfer import fetch_messages
from tests.bench.fleet.primaries import INGRESSES, OURS, Kind, Site
from tests.bench.fleet.priority import put_first
from tests.bench.fleet.report import Row, make_rows
from tests.bench.fleet.samples import Figures
from tests.bench.fleet.zone_file import format_zone
from tests.bench.kit.cpus import Cpus, pinned, split_cpus
from tests.bench.kit.faults import BadReport, CannotServe
from tests.bench.sync.filling import fill
from tests.kit.apiserver import running_apiserver
from tests.kit.messages import query
from tests.kit.networks import one_network
from tests.kit.progress import Progress
from tests.kit.wholeip_world import PATHS

POLICY: Final = "rpz.example.org"
TABLE: Final = f"_switchback.{POLICY}"
ZONES: Final = {"table": TABLE, "policy": POLICY}
_ASKED: Final = 50
_TXT: Final = 16
_A: Final = 1


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and how much of it."""

    workloads: Sequence[Workload]
    kinds: Sequence[Kind]
    zone: str
    names: int
    secondaries: int
    changes: int
    rate: float
    seconds: float
    replicas: int
    rounds: int
    pin: bool = True
    priority: bool = False


@dataclass(slots=True)
class Found:
    """What a run found."""

    samples: dict[str, list[Figures]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @property
    def rows(self) -> Sequence[Row]:
        """The table."""
        return make_rows(self.samples)


def hostname_of(number: int) -> str:
    """A name of the hosts file."""
    return f"app{number}.tenant{number % 100}.example.org"


def run_bench(options: Options) -> Found:
    """Everything that was asked for."""
    found = Found({kind.label: [] for kind in options.kinds})
    progress = Progress(options.rounds * len(options.kinds) * len(options.workloads) + 1)
    try:
        with _scenery(options, progress) as site:
            for _ in range(options.rounds):
                for kind in options.kinds:
                    _measure(kind, site, options, found, progress)
    finally:
        progress.finish()
    return found


@contextmanager
def _scenery(options: Options, progress: Progress) -> Iterator[Site]:
    """A site for each primary to be varied from, in a network in which all programs are."""
    cpus = split_cpus(os.sched_getaffinity(0), pin=options.pin)
    progress.step(f"a network with an API server and {options.names:,} names")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-fleet-")))
        network = stack.enter_context(one_network())
        stack.enter_context(network.entered())
        for line in PATHS.strip().splitlines():
            network.ip(*line.split())
        stack.enter_context(pinned(cpus.load))
        (folder / "api").mkdir()
        api = stack.enter_context(running_apiserver(folder / "api"))
        fill(api, INGRESSES, tell=lambda _: None)
        hosts = folder / "hosts"
        hosts.write_text("".join(f"192.0.2.{one % 250 + 1} {hostname_of(one)}\n" for one in range(options.names)))
        told = [address_of(number) for number in range(options.secondaries)]
        told += [replica_address(number) for number in range(options.replicas)]
        site = Site(folder, POLICY, ZONES[options.zone], told, cpus.server, hosts, api, "")
        if any(kind.label != OURS for kind in options.kinds):
            site = replace(site, lines=_read_lines(options, site))
        yield site


def _read_lines(options: Options, site: Site) -> str:
    """The zone as ours transfers it."""
    ours = next(kind for kind in options.kinds if kind.label == OURS)
    with ExitStack() as stack:
        own = _own_site(site, "first", secondaries=())
        ours.start(own, stack)
        return "".join(f"{line}\n" for line in format_zone(fetch_messages(own.port, own.wire_zone)))


def _own_site(site: Site, label: str, **more: Any) -> Site:
    folder = Path(tempfile.mkdtemp(prefix=f"{label}-", dir=site.folder))
    # Its port is chosen anew.
    kept = {name: getattr(site, name) for name in ("policy", "zone", "secondaries", "cpus", "hosts", "api", "lines")}
    return Site(folder=folder, **{**kept, **more})


def _measure(kind: Kind, site: Site, options: Options, found: Found, progress: Progress) -> None:
    """One round of one primary."""
    figures: Figures = {}
    found.samples[kind.label].append(figures)
    cpus = Cpus(frozenset(site.cpus), frozenset(os.sched_getaffinity(0)))
    try:
        with ExitStack() as stack:
            own = _own_site(site, kind.label)
            primary = kind.start(own, stack)
            running = running_crowd(own.zone, own.port, options.secondaries, folder=own.folder, cpus=cpus.load)
            crowd = stack.enter_context(running)
            if options.priority:
                put_first(primary.session)
                put_first(crowd.session)
            scene = Scene(
                kind,
                own,
                primary,
                crowd,
                _write_queries(kind, own, options.names),
                cpus,
                options.changes,
                options.rate,
                options.seconds,
                options.replicas,
                hostname_of(options.names - 1),
                options.priority,
            )
            for workload in options.workloads:
                progress.step(f"{kind.label}: {workload.about}")
                figures.update(workload.measure(scene))
    except (CannotServe, BadReport) as error:
        progress.note(f"{kind.label} is not measured, or no further: {error}")
        found.faults.append(f"{kind.label}: {error}")


def _write_queries(kind: Kind, site: Site, names: int) -> Path:
    """Ours is asked what pods ask; the others know the zone's records only."""
    suffix, rtype = ("", _A) if kind.label == OURS else (f".{site.zone}", _A if site.zone == site.policy else _TXT)
    messages = [query(f"{hostname_of(number)}{suffix}", rtype) for number in range(min(_ASKED, names))]
    path = site.folder / "queries"
    path.write_bytes(b"".join(len(one).to_bytes(2, "big") + one for one in messages))
    return path


def chosen_workloads(names: Sequence[str]) -> list[Workload]:
    """Those with these names, in their order; the first in any case. All, if none is named."""
    return [one for one in WORKLOADS if not names or one.name in names or one is WORKLOADS[0]]
