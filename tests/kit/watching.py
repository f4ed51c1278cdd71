"""The real `dnsproxy install --watch`, or another watch of ours, as a process, for the duration of a block."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.kit.launched import ROOT
from tests.kit.log_lines import whole_lines
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.scraping import scrape

END_SECONDS = 20


class Commanded(Protocol):
    """A cluster, and how to run a command of ours on it."""

    @property
    def namespace(self) -> str:
        """The address of dnsproxy's own Service."""

    def command_line(self, command: str, *arguments: str, kubeconfig: Path | None = None) -> list[str]: ...


@dataclass(frozen=True)
class Watching:
    """A running watcher."""

    admin: str
    process: subprocess.Popen[bytes]
    log: Path

    def metrics(self) -> Mapping[str, float]:
        return scrape(self.admin)

    def ready(self) -> bool:
        """The readiness that a kubelet sees."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://{self.admin}/readyz", timeout=END_SECONDS) as reply:
                return bool(reply.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
            return False

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition while the watcher runs."""
        wait_for(condition, process=self.process, log=self.log)

    def wait_ready(self) -> None:
        self.wait(self.ready)

    def lines(self, event: str) -> list[Any]:
        """Its log entries of one event."""
        return [one for one in map(json.loads, whole_lines(self.log)) if one["event"] == event]

    def terminate(self) -> int:
        """Terminate it as Kubernetes does. Returns its exit status."""
        self.process.terminate()
        return self.process.wait(END_SECONDS)


@contextmanager
def watching(cluster: Commanded, folder: Path, *arguments: str, kubeconfig: Path | None = None) -> Iterator[Watching]:
    """`dnsproxy install --watch` on a cluster, from the start of its admin port to its guaranteed end."""
    given = ["--watch", "--service", f"{cluster.namespace}/dnsproxy", *arguments]
    with launched_watch(cluster.command_line("install", *given, kubeconfig=kubeconfig), folder) as one:
        yield one


@contextmanager
def launched_watch(command: Sequence[str], folder: Path) -> Iterator[Watching]:
    """A command of ours that watches, with an admin port and a log, from the start of that port to its end."""
    (port,) = free_ports(1)
    admin = f"127.0.0.1:{port}"
    log = folder / f"watch-{port}.log"
    whole = [*command, "--admin", admin, "--log-format", "json"]
    with log.open("wb") as stderr:
        process = subprocess.Popen(whole, stderr=stderr, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        wait_for(lambda: is_listening(port), process=process, log=log)
        yield Watching(admin, process, log)
    finally:
        end_process(process)
