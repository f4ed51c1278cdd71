"""CoreDNS as in a pod of a cluster: its files, its resolv.conf, its ServiceAccount, and its ports.

The law: a Corefile is loaded unchanged, character by character. Its inputs are at their usual paths, in a root folder
with no other files, and in a separate network every port is free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kit.apiserver import ApiServer
from tests.kit.coredns import CoreDns, started_coredns
from tests.kit.programs import program

_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True)
class Pod:
    """The inputs of a container."""

    root: Path
    environment: Mapping[str, str]

    def write(self, files: Mapping[str, str]) -> None:
        """Files by path in the container."""
        for name, text in files.items():
            path = self.root / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode(errors="surrogateescape"))

    @contextmanager
    def coredns(self, peer: str, *, conf: str, address: str, port: int) -> Iterator[CoreDns]:
        """CoreDNS in that root and in the network of this thread, asked at an address. Raises Refused."""
        binary = self.root / peer
        binary.write_bytes(Path(program(peer)).read_bytes())
        binary.chmod(0o755)
        command = ["chroot", str(self.root), f"/{peer}", "-conf", conf]
        with started_coredns(command, folder=self.root, environment=self.environment) as process:
            # CoreDNS keeps running without its file, which is large; pytest keeps the folders of several runs.
            binary.unlink()
            yield CoreDns(port, process, address)


def make_pod(root: Path, api: ApiServer, *, nameserver: str) -> Pod:
    """A pod of that API server's cluster, on a node with that nameserver."""
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api.port)}
    pod = Pod(root, environment)
    account = {f"{_ACCOUNT}/token": api.token, f"{_ACCOUNT}/ca.crt": api.ca_file.read_text()}
    pod.write({"/etc/resolv.conf": f"nameserver {nameserver}\n", **account})
    return pod
