"""A real etcd on loopback ports, whose state can be kept and restored. It ends only the process that it started."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program


@dataclass
class EtcdServer:
    """A running etcd; `restore` needs an ended API server, as with a real one."""

    folder: Path
    port: int
    peer_port: int
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False, kw_only=True)

    def start(self) -> None:
        """Start it and wait for its port."""
        with (self.folder / "etcd.log").open("ab") as log:
            self._process = subprocess.Popen(self._command(), stdout=log, stderr=log)
        wait_for(lambda: is_listening(self.port), process=self._process, log=self.folder / "etcd.log")

    def kill(self) -> None:
        """SIGKILL, and wait for the process to end."""
        end_process(self._process)
        self._process = None

    def back_up(self) -> None:
        """Keep a copy of the present state."""
        self.kill()
        shutil.copytree(self.folder / "etcd", self.folder / "etcd-backup")
        self.start()

    def restore(self) -> None:
        """Go back to the state of the copy, with its revision."""
        self.kill()
        shutil.rmtree(self.folder / "etcd")
        shutil.copytree(self.folder / "etcd-backup", self.folder / "etcd")
        self.start()

    def _command(self) -> list[str]:
        client, peer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.peer_port}"
        command = [program("etcd"), "--unsafe-no-fsync", f"--data-dir={self.folder / 'etcd'}", "--name=test"]
        command += [f"--listen-client-urls={client}", f"--advertise-client-urls={client}"]
        command += [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"]
        return [*command, f"--initial-cluster=test={peer}"]
