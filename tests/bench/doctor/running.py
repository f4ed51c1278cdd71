"""Runs one command on the scene and reads what it used.

The law: a command is a process of its own, as a user starts it, by a kubeconfig or in a pod. Its code is compiled
before, as that of an installed package is; nothing is written into the checkouts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.doctor import measured
from tests.bench.doctor.audit import parse_requests
from tests.bench.doctor.commands import MeasuredCommand, Places
from tests.bench.doctor.samples import Sample
from tests.bench.doctor.scene import Scene
from tests.bench.kit.clock import read_seconds
from tests.bench.kit.cpus import pinned
from tests.bench.kit.faults import CannotServe

POD: Final = "pod"
KUBECONFIG: Final = "kubeconfig"
_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Runner:
    """Where commands run."""

    scene: Scene
    folder: Path
    cpus: frozenset[int]

    def run(self, command: MeasuredCommand, *, way: str, checkout: Path) -> Sample:
        """A command with the code of a checkout. Raises CannotServe if it did not do its work."""
        log, used = self.folder / "output", self.folder / "used.json"
        before, served = self._audited(), read_seconds(self.scene.api.process_id)
        with log.open("wb") as output, pinned(self.cpus):
            subprocess.run(
                [sys.executable, measured.__file__, str(used), *self._command_line(command, way)],
                cwd=checkout,
                env=self._environment(way, checkout),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=_SECONDS,
                check=True,
            )
        found = json.loads(used.read_text())
        if found["status"] not in command.statuses:
            raise CannotServe(f"it ended with status {found['status']}: {log.read_text(errors='replace')[-500:]}")
        served = read_seconds(self.scene.api.process_id) - served
        with self.scene.audit.open(encoding="utf-8") as file:
            file.seek(before)
            requests = parse_requests(file.read())
        return Sample(**found, requests=len(requests), served=served)

    def _audited(self) -> int:
        return self.scene.audit.stat().st_size

    def _command_line(self, command: MeasuredCommand, way: str) -> Sequence[str]:
        places = Places(f"127.0.0.1:{self.scene.dnsproxy.port}", self.scene.dnsproxy.admin)
        arguments = command.arguments(places)
        if way == POD:
            return [sys.executable, "-m", "tests.bench.sync.in_pod", str(self.scene.account), *arguments]
        where = ["--kubeconfig", str(self.scene.api.kubeconfig)] if command.asks_cluster else []
        return [sys.executable, "-m", "dnsproxy", *arguments, *where]

    def _environment(self, way: str, checkout: Path) -> dict[str, str]:
        return {
            **os.environ,
            **(self.scene.environment() if way == POD else {"KUBECONFIG": ""}),
            "PYTHONPATH": str(checkout),
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(self.folder / "compiled"),
            "NO_COLOR": "1",
        }
