"""A cluster's DNS that reacts to changes: objects in a real API server, and a real CoreDNS that follows its ConfigMaps.

The law: this module does only what a kubelet does: it writes the keys of a ConfigMap as files, atomically, soon after a
change. CoreDNS reads them through its plugin reload; only addresses and ports differ from a cluster's.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.kit.accounts import create_account, write_kubeconfig
from tests.kit.apiserver import ApiServer
from tests.kit.coredns import CoreDns, running_coredns
from tests.kit.manifest_cluster import Manifest
from tests.kit.prepared_program import play
from tests.kit.recorded_cluster import PATHS, writable

_SYNC_SECONDS: Final = 0.1
numbers = itertools.count()

Data = Mapping[str, Mapping[str, str]]
"""The data of ConfigMaps by name; empty if a ConfigMap does not exist."""
Render = Callable[[Data], Mapping[str, str]]
"""The files of the container, by name."""


@dataclass
class LivingCluster:
    """A namespace with a cluster's DNS in it."""

    server: ApiServer
    namespace: str
    folder: Path
    service_address: str = ""
    """The ClusterIP of dnsproxy's own Service, after its creation."""
    cluster_roles: list[str] = field(default_factory=list)

    def create(self, objects: Sequence[Manifest], *, manager: str = "kubeadm") -> None:
        """Create objects as the given field manager."""
        for one in objects:
            made = writable(one)
            made["metadata"] |= {"namespace": self.namespace}
            self.server.request("POST", f"{PATHS[one['kind']].format(self.namespace)}?fieldManager={manager}", made)

    def create_own_service(self, *, ready: bool = True) -> str:
        """Create dnsproxy's own Service with one pod behind it. Returns its ClusterIP."""
        spec = {"selector": {"app": "dnsproxy"}, "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}]}
        service = {"metadata": {"name": "dnsproxy"}, "spec": spec}
        made = self.server.request("POST", PATHS["Service"].format(self.namespace), service)
        endpoints = [{"addresses": ["192.0.2.7"], "conditions": {"ready": ready}}]
        metadata = {"name": "dnsproxy-1", "labels": {"kubernetes.io/service-name": "dnsproxy"}}
        pods = {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": []}
        self.server.request("POST", PATHS["EndpointSlice"].format(self.namespace), pods)
        self.service_address = str(made["spec"]["clusterIP"])
        return self.service_address

    def config_map(self, name: str) -> dict[str, Any] | None:
        """A ConfigMap, or None."""
        path = PATHS["ConfigMap"].format(self.namespace)
        return next((one for one in self.server.request("GET", path)["items"] if one["metadata"]["name"] == name), None)

    def data(self, name: str) -> dict[str, str]:
        """Its data."""
        return dict((self.config_map(name) or {}).get("data") or {})

    def patch(self, name: str, patch: Mapping[str, Any], *, manager: str = "somebody") -> None:
        """A JSON merge patch (RFC 7386) of a ConfigMap, by another client."""
        path = f"{PATHS['ConfigMap'].format(self.namespace)}/{name}?fieldManager={manager}"
        self.server.request("PATCH", path, patch, content_type="application/merge-patch+json")

    def dnsproxy(
        self, command: str, *arguments: str, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """`dnsproxy COMMAND` as a person runs it."""
        return play(self.command_line(command, *arguments, kubeconfig=kubeconfig), {**os.environ, "NO_COLOR": "1"})

    def command_line(self, command: str, *arguments: str, kubeconfig: Path | None = None) -> list[str]:
        where = ["--kubeconfig", str(kubeconfig or self.server.kubeconfig)]
        where += ["--dns-service", f"{self.namespace}/kube-dns"]
        return [sys.executable, "-m", "dnsproxy", command, *where, *arguments]

    def kubeconfig(self, roles: Sequence[Mapping[str, Any]]) -> tuple[Path, str]:
        """The kubeconfig and token of a service account that is bound to only these roles."""
        name = f"installer-{next(numbers)}"
        token = create_account(self.server, self.namespace, name, roles)
        return write_kubeconfig(self.server, token, self.folder / f"{name}.kubeconfig"), token


@contextmanager
def living_cluster(server: ApiServer, folder: Path) -> Iterator[LivingCluster]:
    """A namespace for one test, whose Ingresses are deleted afterwards: no controller does it with the namespace."""
    namespace = f"install-{next(numbers)}"
    server.create_namespace(namespace)
    yield LivingCluster(server, namespace, folder)
    server.delete_all_ingresses(namespace=namespace)
    server.request("DELETE", f"/api/v1/namespaces/{namespace}")


def localize(text: str, port: int, words: Mapping[str, str]) -> str:
    """A Corefile, or a part of one, on a loopback port, with the shortest interval of its plugin reload."""
    for word, other in words.items():
        text = text.replace(word, other)
    text = re.sub(r"(?<![0-9]):53\b", f":{port}", text)
    return re.sub(r"(?m)^(\s*)reload$", r"\1reload 2s 1s", text)


@contextmanager
def following(cluster: LivingCluster, names: Sequence[str], render: Render) -> Iterator[CoreDns]:
    """A CoreDNS whose files follow the ConfigMaps of these names.

    The result of `render` for `Corefile` is its Corefile, which also sets the port; the result for the name `port` is
    that port.
    """
    folder = cluster.folder / "mounted"
    folder.mkdir(exist_ok=True)
    done = threading.Event()

    def look() -> Data:
        found = cluster.server.request("GET", PATHS["ConfigMap"].format(cluster.namespace))["items"]
        data = {one["metadata"]["name"]: one.get("data") or {} for one in found}
        return {name: data.get(name, {}) for name in names}

    def keep() -> None:
        while not done.wait(_SYNC_SECONDS):
            _write(folder, render(look()))

    _write(folder, render(look()))
    thread = threading.Thread(target=keep)
    port = int(render(look())["port"])
    with running_coredns(cluster.folder, f"import {folder}/Corefile\n", port=port) as coredns:
        thread.start()
        try:
            yield coredns
        finally:
            done.set()
            thread.join()


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write each file atomically, and remove the files that no longer exist."""
    for name in {path.name for path in folder.iterdir()} - set(files):
        (folder / name).unlink()
    for name, text in files.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            part = folder.parent / f"{name}.part"
            part.write_text(text)
            part.replace(path)
