"""Our server on the Ingresses of an API server: started, waited for, and looked at.

The law: it is waited for by its log, because each look at /readyz would take time from it.
"""

from __future__ import annotations

import compileall
import json
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench.dns.checking import CannotServe
from tests.bench.launched import ROOT, launched
from tests.bench.ports import free_port
from tests.peers.apiserver import ApiServer

ADDRESS: Final = "192.0.2.10"
"""What the names of Ingresses are answered with."""
STATIC: Final = tuple(f"static{number}.example.org" for number in range(50))
"""Names that are in the table from the first query on, whatever the cluster does."""
STATIC_ADDRESS: Final = "192.0.2.20"

_LOOK_SECONDS: Final = 0.002
_PATIENCE: Final = 300.0
_LOG_END: Final = 1000


class Ours:
    """A server that was started."""

    def __init__(self, process: subprocess.Popen[bytes], *, port: int, log: Path, started: float) -> None:
        self.process = process
        self.port = port
        self.log = log
        self.started = started
        self._read = 0
        self._lines: list[dict[str, Any]] = []

    def wait_serving(self) -> float:
        """Until its sockets are open; the seconds from its start. Raises CannotServe."""
        return self._wait(lambda line: line.get("event") == "serving")

    def wait_ready(self) -> float:
        """Until every source is in the table; the seconds from its start. Raises CannotServe."""
        return self._wait(lambda line: line.get("event") == "table swapped" and line.get("waiting_for") == [])

    def _wait(self, is_wanted: Callable[[dict[str, Any]], bool]) -> float:
        deadline = time.monotonic() + _PATIENCE
        while not any(map(is_wanted, self._lines)):
            now = time.monotonic()
            if self.process.poll() is not None or now > deadline:
                raise CannotServe(f"ours is not ready; its log ends: {self.log.read_text()[-_LOG_END:]}")
            if not self._read_log():
                time.sleep(_LOOK_SECONDS)
        return time.monotonic() - self.started

    def _read_log(self) -> bool:
        with self.log.open("rb") as log:
            log.seek(self._read)
            lines = log.read().split(b"\n")[:-1]
        self._read += sum(len(line) + 1 for line in lines)
        self._lines += [json.loads(line) for line in lines if line.startswith(b"{")]
        return bool(lines)


@dataclass(frozen=True, slots=True)
class Way:
    """How the server gets at the cluster."""

    name: str
    in_pod: bool


POD: Final = Way("pod", in_pod=True)
KUBECONFIG: Final = Way("kubeconfig", in_pod=False)


@contextmanager
def serving(
    api: ApiServer, folder: Path, *, cpus: Collection[int], upstream: int, way: Way = POD, profile: Path | None = None
) -> Iterator[Ours]:
    """A server for the time of a block; its start is the moment before its process is made."""
    port, log = free_port(), folder / "ours.log"
    hosts = folder / "hosts"
    hosts.write_text("".join(f"{STATIC_ADDRESS} {name}\n" for name in STATIC))
    where = ["--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{free_port()}", "--log-format", "json"]
    what = [
        "--source",
        "ingress",
        "--target",
        ADDRESS,
        "--hosts-file",
        str(hosts),
        "--upstream",
        f"127.0.0.1:{upstream}",
    ]
    command = _profiled(profile) + _program(api, folder, way) + ["serve", *where, *what, "--lameduck", "0"]
    if not way.in_pod:
        command += ["--kubeconfig", str(api.kubeconfig)]
    environment = {
        "PYTHONPATH": str(ROOT),
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(api.port),
        "KUBECONFIG": "",
        "PYTHONDONTWRITEBYTECODE": "",
    }
    _compile()
    started = time.monotonic()
    with launched(command, log=log, cpus=cpus, folder=folder, environment=environment) as process:
        yield Ours(process, port=port, log=log, started=started)


def _compile() -> None:
    """As an image has it: else a start would be the compiler's time, where the surroundings forbid to keep its work."""
    for package in ("dnsproxy", "sidecar"):
        compileall.compile_dir(ROOT / package, quiet=2)


def _program(api: ApiServer, folder: Path, way: Way) -> list[str]:
    if not way.in_pod:
        return ["-m", "dnsproxy"]
    account = folder / "account"
    account.mkdir(exist_ok=True)
    (account / "token").write_text(api.token)
    (account / "ca.crt").write_bytes(api.ca_file.read_bytes())
    return ["-m", "tests.bench.sync.in_pod", str(account)]


def _profiled(profile: Path | None) -> list[str]:
    return [sys.executable, *(["-m", "cProfile", "-o", str(profile)] if profile else [])]
