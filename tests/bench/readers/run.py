"""One run: a real `dnsproxy serve`, so many readers of its names or people who search them, and DNS beside.

The law: each scene is measured beside the same one without them, on one processor that nothing else of ours uses.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.dns.prober import RATE, Probe, parse_probe
from tests.bench.kit.clock import read_clock
from tests.bench.kit.cpus import Cpus, pinned, split_cpus
from tests.bench.readers.pollers import Summary, parse_summary
from tests.kit.launched import ROOT, launched
from tests.kit.messages import query
from tests.kit.ports import free_port
from tests.kit.processes import end_process, is_listening, wait_for

_SETTLE: Final = 2.0
"""Seconds for the server to come to rest."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured."""

    names: int
    readers: int
    interval: float
    people: int
    pause: float
    """Seconds between two searches of one."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Scene:
    """What happens meanwhile."""

    about: str
    asking: str
    """The program of those who ask, `pollers` or `searchers`; empty where there are none."""
    changes: bool


SCENES: Final = (
    Scene("nobody reads", "", changes=False),
    Scene("all read, the table stays", "pollers", changes=False),
    Scene("people search, the table stays", "searchers", changes=False),
    Scene("nobody reads, the table changes", "", changes=True),
    Scene("all read, the table changes", "pollers", changes=True),
    Scene("people search, the table changes", "searchers", changes=True),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """What one scene came to."""

    scene: Scene
    cpu: float
    """Of a processor's time, 0 to 1."""
    dns: Probe
    readers: Summary | None


@dataclass(frozen=True, slots=True)
class _Server:
    port: int
    admin: int
    process: subprocess.Popen[bytes]
    hosts: Path


def run(options: Options) -> Iterator[Figure]:
    """The figures of all scenes."""
    cpus = split_cpus(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder, _serving(Path(folder), options, cpus) as server:
        queries = Path(folder) / "queries"
        messages = [query(f"h{number}.example.org") for number in range(min(options.names, 1000))]
        queries.write_bytes(b"".join(len(one).to_bytes(2, "big") + one for one in messages))
        for scene in SCENES:
            time.sleep(_SETTLE)
            with pinned(cpus.load):
                yield _measure(scene, server, options, queries)


@contextmanager
def _serving(folder: Path, options: Options, cpus: Cpus) -> Iterator[_Server]:
    hosts, log = folder / "table.hosts", folder / "serve.log"
    _write_table(hosts, options.names, version=0)
    port, admin = free_port(), free_port()
    command = [sys.executable, "-m", "dnsproxy", "serve", "--hosts-file", str(hosts), "--upstream", "127.0.0.1:9"]
    command += ["--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}"]
    with launched(command, log=log, cpus=cpus.server, folder=ROOT) as process:
        wait_for(lambda: is_listening(admin), process=process, log=log)
        yield _Server(port, admin, process, hosts)


def _write_table(path: Path, names: int, *, version: int) -> None:
    """Every version has one address of its own."""
    lines = [f"192.0.2.{1 + version % 250} h0.example.org", *(f"192.0.2.10 h{n}.example.org" for n in range(1, names))]
    new = path.with_suffix(".new")
    new.write_text("\n".join(lines) + "\n")
    new.replace(path)


def _measure(scene: Scene, server: _Server, options: Options, queries: Path) -> Figure:
    with ExitStack() as processes:
        readers = None
        if scene.asking:
            polls = scene.asking == "pollers"
            many, interval = (options.readers, options.interval) if polls else (options.people, options.pause)
            # They know the table when the measurement begins, or have searched it.
            known = interval + 1
            arguments = (server.admin, many, interval, known + options.seconds)
            readers = _started(processes, f"tests.bench.readers.{scene.asking}", *arguments)
            time.sleep(known)
        prober = _started(processes, "tests.bench.dns.prober", server.port, queries, RATE, options.seconds)
        before, begun = read_clock(server.process.pid), time.monotonic()
        version = 0
        while (left := begun + options.seconds - time.monotonic()) > 0:
            if scene.changes and time.monotonic() >= begun + version * options.interval:
                version += 1
                _write_table(server.hosts, options.names, version=version + int(begun))
            time.sleep(min(left, 0.1))
        cpu = (read_clock(server.process.pid) - before).total / (time.monotonic() - begun)
        summary = parse_summary(readers.communicate()[0].decode()) if readers else None
        return Figure(scene, cpu, parse_probe(prober.communicate()[0].decode()), summary)


def _started(processes: ExitStack, module: str, *arguments: object) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-m", module, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE)
    processes.callback(end_process, process)
    return process
