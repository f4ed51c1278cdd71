"""What a way costs: bulk by TCP (iperf3), datagrams and connections by the processor's time.

The law: rounds go around the ways, so that a busy moment of the machine meets all of them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from tests.bench.wholeip.ways import WAYS, Way, take
from tests.kit.processes import end_process
from tests.kit.progress import Progress
from tests.wholeip.scene.cluster import Cluster, wait_until

_BULK_PORT: Final = 5201
_SINK_PORT: Final = 9
_REFUSED_PORT: Final = 10


@dataclass
class Traffic:
    """A value for each round."""

    way: Way
    gigabits: list[float] = field(default_factory=list)
    """A second, received."""
    bulk_cpu: list[float] = field(default_factory=list)
    """Processor seconds of both sides for a gigabit; the node's work happens in their time."""
    datagram_cpu: list[float] = field(default_factory=list)
    """Microseconds of the sender for a datagram, on its way through the node into the pod."""
    flow_cpu: list[float] = field(default_factory=list)
    """Microseconds of the sender for a flow: a connection that the pod refuses, of which each is new to the rules."""


def measure_traffic(made: Cluster, rounds: int, seconds: float, progress: Progress) -> list[Traffic]:
    """Every way in every round."""
    measured = [Traffic(way) for way in WAYS]
    made.a.do("sink", port=_SINK_PORT)
    with _bulk_server(made):
        for turn in range(rounds):
            for one in measured:
                progress.step(f"{one.way.name}: round {turn + 1}")
                take(made, one.way)
                _measure(made, one, seconds)
    return measured


def _measure(made: Cluster, one: Traffic, seconds: float) -> None:
    target = one.way.target
    bulk = ("-c", target, "-p", str(_BULK_PORT), "-t", str(round(seconds)), "--json")
    end = json.loads(made.client.run("iperf3", *bulk))["end"]
    gigabits = end["sum_received"]["bytes"] * 8 / 1e9
    lasted, used = end["sum_received"]["seconds"], end["cpu_utilization_percent"]
    one.gigabits.append(gigabits / lasted)
    one.bulk_cpu.append((used["host_total"] + used["remote_total"]) / 100 * lasted / gigabits)
    count, cpu, _ = made.client.do("blast", address=target, port=_SINK_PORT, seconds=seconds)
    one.datagram_cpu.append(cpu / count * 1e6)
    count, cpu = made.client.do("knock", address=target, port=_REFUSED_PORT, seconds=seconds)
    one.flow_cpu.append(cpu / count * 1e6)


@contextmanager
def _bulk_server(made: Cluster) -> Iterator[None]:
    server = subprocess.Popen(
        [*made.a.command("iperf3"), "-s", "-p", str(_BULK_PORT)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: f":{_BULK_PORT} " in made.a.run("ss", "-Htln"))
        yield
    finally:
        end_process(server)
