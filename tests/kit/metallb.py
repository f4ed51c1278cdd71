"""The real controller of MetalLB, which writes the statuses of Services; it announces no address (the speaker does).

The law: no webhook and no memberlist, which need a cluster's network; all that it reads and writes is on the test's
API server.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.deploy.kubectl import kubectl
from tests.kit.apiserver import ApiServer
from tests.kit.ports import free_port
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program

NAMESPACE: Final = "metallb-system"
_POOLS: Final = f"/apis/metallb.io/v1beta1/namespaces/{NAMESPACE}/ipaddresspools"


@dataclass
class MetalLb:
    """MetalLB's controller; `kill` and `start` restart it."""

    server: ApiServer
    log: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False, kw_only=True)

    def start(self) -> None:
        """Start it, and wait until its caches are filled: it then serves its metrics."""
        port = free_port()
        command = [program("metallb-controller"), f"--port={port}", f"--namespace={NAMESPACE}"]
        command += ["--webhook-mode=disabled", "--disable-cert-rotation", "--log-level=debug"]
        environment = {**os.environ, "KUBECONFIG": str(self.server.kubeconfig)}
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        wait_for(lambda: is_listening(port), process=self._process, log=self.log)

    def kill(self) -> None:
        """SIGKILL, and wait for the process to end."""
        end_process(self._process)
        self._process = None


def define_metallb(server: ApiServer) -> None:
    """MetalLB's definitions and its namespace."""
    kubectl(server, "apply", "--server-side", "-f", program("metallb-crds"))
    server.create_namespace(NAMESPACE)


def put_pool(server: ApiServer, name: str, addresses: Sequence[str]) -> None:
    """Create a pool of addresses, or replace it."""
    pool: dict[str, Any] = {
        "apiVersion": "metallb.io/v1beta1",
        "kind": "IPAddressPool",
        "metadata": {"name": name},
        "spec": {"addresses": list(addresses)},
    }
    path = f"{_POOLS}/{name}?fieldManager=test&force=true"
    server.request("PATCH", path, pool, content_type="application/apply-patch+yaml")
