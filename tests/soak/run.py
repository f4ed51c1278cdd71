"""One soak: a real server and its upstreams, the traffic, and samples at intervals.

The law: every behaviour of the server is part of the result; only a server that does not start raises StartError.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import trio

from sidecar.cli.options import StartError
from tests.bench.kit.command import COULD_NOT
from tests.kit.faulty_upstream import FaultyUpstream, faulty_upstream, refusing_upstream
from tests.kit.processes import StartFailed
from tests.kit.progress import Progress
from tests.kit.serve_process import Serving, serving
from tests.soak.chances import chance_of
from tests.soak.faults import DATAGRAM_FAULTS, STREAM_FAULTS, faulty
from tests.soak.figures import FIGURES, Sample
from tests.soak.sampling import Gone, take_sample
from tests.soak.tally import Tally
from tests.soak.traffic import Site, Traffic, replace_hosts

_SEED: Final = 4
"""The seed: the same traffic and the same faults in every run."""
_MOST_BETWEEN: Final = 5.0
_SAMPLES: Final = 40
"""The minimum, so that a quarter is long enough."""
_SETTLE: Final = 45.0
"""Seconds for the server to become idle after the traffic: longer than any of its idle timers."""


@dataclass(frozen=True, slots=True)
class Options:
    """Duration and amount of the traffic."""

    seconds: float
    rate: float
    """Questions of all kinds per second."""

    @property
    def every(self) -> float:
        """Seconds between two samples."""
        return min(_MOST_BETWEEN, self.seconds / _SAMPLES)

    @property
    def samples(self) -> int:
        return int(self.seconds / self.every)


@dataclass
class Found:
    """The result of a soak."""

    options: Options
    tally: Tally = field(default_factory=Tally)
    samples: list[Sample] = field(default_factory=list)
    before: Sample = field(default_factory=dict)
    """Sample of the server before the traffic."""
    after: Sample = field(default_factory=dict)
    """Sample of the server when it is idle again."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Its own counters at the end."""
    gone: str = ""
    """The reason why sampling ended early; empty if it did not."""
    status: int | None = None
    """Its exit status after SIGTERM."""


async def run_soak(options: Options, folder: Path, progress: Progress) -> Found:
    """Soak a server. Raises StartError if it does not start."""
    found = Found(options)
    with ExitStack() as stack:
        async with _upstreams() as (upstreams, endpoints):
            hosts = folder / "hosts"
            replace_hosts(hosts, 0)
            flags = [flag for endpoint in endpoints for flag in ("--upstream", endpoint)]
            server = await trio.to_thread.run_sync(_start, stack, folder, ["--hosts-file", str(hosts), *flags])
            site = Site(server.port, hosts, upstreams)
            await _soak(server, site, found, progress)
            if found.gone:
                found.gone += f"; its exit status: {server.process.poll()}"
            else:
                found.status = await trio.to_thread.run_sync(server.terminate)
    return found


def _start(stack: ExitStack, folder: Path, flags: list[str]) -> Serving:
    try:
        return stack.enter_context(serving(folder, *flags))
    except StartFailed as error:
        raise StartError(f"the server does not start: {error}", status=COULD_NOT) from None


@asynccontextmanager
async def _upstreams() -> AsyncIterator[tuple[tuple[FaultyUpstream, ...], list[str]]]:
    """One that refuses, one with all faults, and one that is healthy, in the server's order."""
    chance = chance_of(_SEED)
    scripts = faulty(DATAGRAM_FAULTS, chance), faulty(STREAM_FAULTS, chance)
    with refusing_upstream() as refusing:
        async with faulty_upstream(*scripts) as faults, faulty_upstream() as well:
            yield (faults, well), [str(refusing), str(faults.endpoint), str(well.endpoint)]


async def _soak(server: Serving, site: Site, found: Found, progress: Progress) -> None:
    found.before, _ = await _sample(server)
    chance = chance_of(_SEED)
    traffic = Traffic(site, rate=found.options.rate, tally=found.tally, chance=chance)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(traffic.run)
        await _take_samples(server, found, progress)
        nursery.cancel_scope.cancel()
    if not found.gone:
        progress.step("the traffic is over; waiting for the server to come to rest")
        await _settle(server, found)


async def _take_samples(server: Serving, found: Found, progress: Progress) -> None:
    options, begun = found.options, trio.current_time()
    for number in range(1, options.samples + 1):
        await trio.sleep_until(begun + number * options.every)
        try:
            sample, found.metrics = await _sample(server)
        except Gone as gone:
            found.gone = str(gone)
            return
        found.samples.append(sample)
        progress.step(format_progress(sample, asked=found.tally.asked, seconds=trio.current_time() - begun))


async def _settle(server: Serving, found: Found) -> None:
    """Wait until the server has no more tasks than before, or until the time limit."""
    with trio.move_on_after(_SETTLE):
        while found.after.get("tasks", float("inf")) > found.before.get("tasks", 0):
            await trio.sleep(found.options.every)
            try:
                found.after, found.metrics = await _sample(server)
            except Gone as gone:
                found.gone = str(gone)
                return


async def _sample(server: Serving) -> tuple[Sample, Mapping[str, float]]:
    return await trio.to_thread.run_sync(take_sample, server.process.pid, server.admin)


def format_progress(sample: Sample, *, asked: int, seconds: float) -> str:
    """A sample in one line."""
    figures = ", ".join(f"{each.name} {sample[each.name]:.4g}" for each in FIGURES if each.name in sample)
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d} {figures}, {asked / seconds:.0f} answers/s"
