"""One run: fills a cluster, starts the agent, and changes one slice after the other.

The law: when something is in the kernel is said by the kernel itself, by the event that it sends to whoever listens.
"""

from __future__ import annotations

import http.client
import math
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import trio

from tests.bench.wholeip_events.report import Figures
from tests.kit.apiserver import send
from tests.kit.wholeip_objects import READY, WHOLE, slice_manifest
from tests.kit.wholeip_world import MERGE, NODE, SERVICES, SLICES, World, running_world
from wholeip.kernel.nft import Nft
from wholeip.mappings.services import LABEL

_FIRST: Final = {"service": int(ip_address("203.0.0.1")), "pod": int(ip_address("10.0.0.1"))}
_OTHERS: Final = 100_000
"""Added to a pod's number: its other address."""
_WRITERS: Final = 4
_PAUSE: Final = 0.03
"""Seconds between two changes, in which the agent comes to rest."""
_LATEST: Final = 20.0


def measure(services: int, changes: int) -> Figures:
    """The figures of so many changes among so many Services."""
    with tempfile.TemporaryDirectory() as folder, running_world(Path(folder)) as world, world.network.entered():
        _fill(world, services)
        begun = time.monotonic()
        world.start_agent()
        world.until_in_step()
        filled = time.monotonic() - begun
        world.end_agent()
        begun = time.monotonic()
        world.start_agent()
        world.until_ready()
        restarted = time.monotonic() - begun
        assert world.agent is not None
        before = _cpu_seconds(world.agent.pid)
        times = trio.run(_change, world, services, changes)
        cpu = (_cpu_seconds(world.agent.pid) - before) / changes
        memory = _memory(world.agent.pid)
        world.until_in_step()
    return Figures(services, filled, restarted, memory, cpu, [one for one, _ in times], [one for _, one in times])


def _address(kind: str, number: int) -> str:
    return str(ip_address(_FIRST[kind] + number))


def _fill(world: World, services: int) -> None:
    """A Service and a slice each, over a few connections."""
    with ThreadPoolExecutor(_WRITERS) as pool:
        for _ in pool.map(partial(_write, world, services), range(_WRITERS)):
            pass


def _write(world: World, services: int, first: int) -> None:
    with world.server.connection() as connection:
        for number in range(first, services, _WRITERS):
            name = f"vm{number}"
            metadata = {"name": name, "labels": {LABEL: "cozy-proxy"}, "annotations": WHOLE}
            ports = [{"port": 65535}]
            spec = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": ports}
            send(connection, "POST", SERVICES, {"metadata": metadata, "spec": spec})
            status = {"status": {"loadBalancer": {"ingress": [{"ip": _address("service", number)}]}}}
            send(connection, "PATCH", f"{SERVICES}/{name}/status", status, content_type=MERGE)
            manifest = slice_manifest(name, (_address("pod", number), READY), node=NODE)
            send(connection, "POST", SLICES, manifest)


async def _change(world: World, services: int, changes: int) -> list[tuple[float, float]]:
    """Seconds from the request, and from its answer, to the kernel's event; of each change."""
    times: list[tuple[float, float]] = []
    happened: list[float] = []
    heard = trio.Event()

    def note() -> None:
        happened.append(time.monotonic())
        heard.set()

    with world.server.connection() as connection:
        async with trio.open_nursery() as nursery:
            await nursery.start(Nft().watch_changes, note)
            for turn in range(changes):
                happened.clear()
                heard = trio.Event()
                # Another one each time, and back after all had their turn.
                pod = _address("pod", turn % services + (0 if (turn // services) % 2 else _OTHERS))
                ask = partial(_patch, connection, f"vm{turn % services}-ipv4", pod)
                begun, answered = await trio.to_thread.run_sync(ask)
                with trio.fail_after(_LATEST):
                    while not happened:
                        await heard.wait()
                times.append((happened[0] - begun, max(0.0, happened[0] - answered)))
                await trio.sleep(_PAUSE)
            nursery.cancel_scope.cancel()
    return times


def _patch(connection: http.client.HTTPSConnection, name: str, pod: str) -> tuple[float, float]:
    content: Any = {"endpoints": [{"addresses": [pod], "conditions": READY, "nodeName": NODE}]}
    begun = time.monotonic()
    send(connection, "PATCH", f"{SLICES}/{name}", content, content_type=MERGE)
    return begun, time.monotonic()


def _cpu_seconds(pid: int) -> float:
    """User and system, those of children that have ended included (proc_pid_stat(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return math.fsum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
