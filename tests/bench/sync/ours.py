"""Our server on the objects of an API server: started, waited for, and looked at.

The law: it is waited for by its log, because each look at /readyz would take time from it.
"""

from __future__ import annotations

import compileall
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.kit.clock import CpuTime, read_clock
from tests.bench.kit.faults import CannotServe
from tests.bench.sync.log import Event, Log, is_ready, is_serving
from tests.bench.sync.memory import Memory, read_memory
from tests.bench.sync.samples import Use
from tests.kit.apiserver import ApiServer
from tests.kit.launched import ROOT, launched
from tests.kit.ports import free_port

ADDRESS: Final = "192.0.2.10"
"""What the names of objects are answered with."""
STATIC: Final = tuple(f"static{number}.example.org" for number in range(50))
"""Names that are in the table from the first query on, whatever the cluster does."""
STATIC_ADDRESS: Final = "192.0.2.20"

_REALTIME: Final = ("chrt", "--rr", "1")
_LOOK_SECONDS: Final = 0.002
_PATIENCE: Final = 300.0


class Ours:
    """A server that was started."""

    def __init__(self, process: subprocess.Popen[bytes], *, port: int, log: Path, started: float) -> None:
        self.process = process
        self.port = port
        self._started = started
        self._log = Log(log)

    def wait_serving(self) -> float:
        """Until its sockets are open; the seconds from its start. Raises CannotServe."""
        return self._wait(is_serving)

    def wait_ready(self) -> float:
        """Until every source is in the table; the seconds from its start. Raises CannotServe."""
        return self._wait(is_ready)

    def read_memory(self) -> Memory:
        """Its memory now."""
        return read_memory(self.process.pid)

    def read_clock(self) -> CpuTime:
        """Its processor time so far."""
        return read_clock(self.process.pid)

    @contextmanager
    def using(self) -> Iterator[list[Use]]:
        """What it used of the processor in a block, in the list after it."""
        found: list[Use] = []
        before, begun = self.read_clock(), time.monotonic()
        yield found
        found.append(Use(time.monotonic() - begun, self.read_clock() - before))

    def _wait(self, is_wanted: Callable[[Event], bool]) -> float:
        deadline = time.monotonic() + _PATIENCE
        while not any(map(is_wanted, self._log.events)):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise CannotServe(f"ours is not ready; its log ends: {self._log.end()}")
            if not self._log.read():
                time.sleep(_LOOK_SECONDS)
        return time.monotonic() - self._started


@dataclass(frozen=True, slots=True)
class Way:
    """How the server gets at the cluster."""

    name: str
    in_pod: bool


POD: Final = Way("pod", in_pod=True)
KUBECONFIG: Final = Way("kubeconfig", in_pod=False)


@contextmanager
def serving(
    api: ApiServer,
    folder: Path,
    *,
    cpus: Collection[int],
    upstream: int,
    sources: Sequence[str],
    way: Way = POD,
    profile: Path | None = None,
    realtime: bool = False,
) -> Iterator[Ours]:
    """A server for the time of a block; its start is the moment before its process is made.

    `realtime`: nothing else has its processor while it is ready to run (sched(7)).
    """
    port, log = free_port(), folder / "ours.log"
    python = [*(_REALTIME if realtime else ()), sys.executable]
    python += ["-m", "cProfile", "-o", str(profile)] if profile else []
    arguments = _serve_arguments(_write_hosts(folder), port=port, upstream=upstream, sources=sources)
    if way.in_pod:
        command = [*python, "-m", "tests.bench.sync.in_pod", str(_write_account(api, folder)), *arguments]
    else:
        command = [*python, "-m", "dnsproxy", *arguments, "--kubeconfig", str(api.kubeconfig)]
    _compile()
    started = time.monotonic()
    with launched(command, log=log, cpus=cpus, folder=folder, environment=_environment(api)) as process:
        yield Ours(process, port=port, log=log, started=started)


def _serve_arguments(hosts: Path, *, port: int, upstream: int, sources: Sequence[str]) -> list[str]:
    options = {
        "--listen": f"127.0.0.1:{port}",
        "--admin": f"127.0.0.1:{free_port()}",
        "--log-format": "json",
        "--target": ADDRESS,
        "--hosts-file": str(hosts),
        "--upstream": f"127.0.0.1:{upstream}",
        "--lameduck": "0",
    }
    pairs = (*options.items(), *(("--source", source) for source in sources))
    return ["serve", *(part for option in pairs for part in option)]


def _environment(api: ApiServer) -> dict[str, str]:
    return {
        "PYTHONPATH": str(ROOT),
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(api.port),
        "KUBECONFIG": "",
        "PYTHONDONTWRITEBYTECODE": "",
    }


def _compile() -> None:
    """As an image has it: else a start would be the compiler's time, where the surroundings forbid to keep its work."""
    for package in ("dnsproxy", "sidecar"):
        compileall.compile_dir(ROOT / package, quiet=2)


def _write_hosts(folder: Path) -> Path:
    hosts = folder / "hosts"
    hosts.write_text("".join(f"{STATIC_ADDRESS} {name}\n" for name in STATIC))
    return hosts


def _write_account(api: ApiServer, folder: Path) -> Path:
    """As the kubelet would put it into a pod."""
    account = folder / "account"
    account.mkdir(exist_ok=True)
    (account / "token").write_text(api.token)
    (account / "ca.crt").write_bytes(api.ca_file.read_bytes())
    return account
