"""A network with an API server, pods that are real nginx, and real relays that follow the Services of a namespace.

The law: everything is in a network of its own, where any port and address is free; Services and EndpointSlices are what
the test writes, and nothing else writes there. Root only.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.launched import limited
from tests.kit.log_lines import whole_lines
from tests.kit.networks import Network, one_network
from tests.kit.nginx import Nginx, nginx_expecting_proxy
from tests.kit.polling import poll_until
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, is_listening, wait_for

BACKEND: Final = "shop"
"""The Service behind the routes, with the ports 80 and 443."""
PODS: Final = ("192.0.2.11", "192.0.2.12", "192.0.2.13")
POD_PORT: Final = 8443
READY: Final = {"ready": True, "serving": True, "terminating": False}
LEAVING: Final = {"ready": False, "serving": True, "terminating": True}
MERGE: Final = "application/merge-patch+json"
_PATIENCE: Final = 30.0


@dataclass
class RouteWorld:
    """The API server; `spaces` makes the namespaces of one test."""

    network: Network
    server: ApiServer
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def spaces(self) -> Spaces:
        """A namespace for route Services and one for a backend, both new."""
        number = next(self._numbers)
        own, web = f"routes{number}", f"web{number}"
        for name in (own, web):
            self.server.create_namespace(name)
        return Spaces(self.server, own, web)


@contextmanager
def route_world(folder: Path) -> Iterator[RouteWorld]:
    """A network with an API server, for the duration of the block; the caller is inside."""
    with one_network() as network:
        for address in PODS:
            network.own(address)
        # Otherwise it looks for a default route, and this network has none.
        flags = (f"--advertise-address={PODS[0]}",)
        with network.entered(), running_apiserver(folder, flags=flags) as server:
            yield RouteWorld(network, server)


@dataclass(frozen=True)
class Spaces:
    """The objects of one test."""

    server: ApiServer
    own: str
    """The namespace of the route Services."""
    web: str
    """The namespace of the backend."""

    @property
    def backend(self) -> str:
        """As in the annotation."""
        return f"{self.web}/{BACKEND}"

    def create_backend(self, name: str = BACKEND) -> None:
        ports = [{"name": "http", "port": 80}, {"name": "https", "port": 443, "targetPort": POD_PORT}]
        self._request("POST", self._services(self.web), {"metadata": {"name": name}, "spec": {"ports": ports}})

    def put_pods(
        self, name: str, *addresses: str, service: str = BACKEND, conditions: Mapping[str, bool] = READY
    ) -> None:
        """Create or replace an EndpointSlice of a backend."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{self.web}/endpointslices"
        manifest = {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4",
            "ports": [{"name": "https", "port": POD_PORT, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address], "conditions": dict(conditions)} for address in addresses],
        }
        names = {one["metadata"]["name"] for one in self._request("GET", path)["items"]}
        if name in names:
            self._request("PUT", f"{path}/{name}", manifest)
        else:
            self._request("POST", path, manifest)

    def create_route(self, name: str, *ports: tuple[int, int | str], **annotations: str) -> None:
        """Create a route Service with (port, targetPort) pairs; annotations without their prefix, `_` for `-`."""
        listed = [{"name": f"p{port}", "port": port, "targetPort": target} for port, target in ports]
        metadata = {"name": name, "annotations": _annotations({"relay_to": self.backend, **annotations})}
        spec = {"ports": listed, "selector": {"app": "relay"}}
        self._request("POST", self._services(self.own), {"metadata": metadata, "spec": spec})

    def annotate(self, name: str, **annotations: str | None) -> None:
        """Change annotations of a route Service; None removes one."""
        patch = {"metadata": {"annotations": _annotations(annotations)}}
        self._request("PATCH", f"{self._services(self.own)}/{name}", patch, content_type=MERGE)

    def delete_route(self, name: str) -> None:
        self._request("DELETE", f"{self._services(self.own)}/{name}")

    def _services(self, namespace: str) -> str:
        return f"/api/v1/namespaces/{namespace}/services"

    def _request(self, *arguments: Any, **options: Any) -> Any:
        return self.server.request(*arguments, **options)


def _annotations(named: Mapping[str, str | None]) -> dict[str, str | None]:
    return {f"switchback.dev/{name.replace('_', '-')}": text for name, text in named.items()}


@contextmanager
def pods(
    folder: Path, *, plain: frozenset[str] = frozenset(), count: int = 2, only: Sequence[str] = ()
) -> Iterator[list[Nginx]]:
    """Real nginx at the first addresses of PODS, or at those named; those in `plain` take no PROXY header."""
    with ExitStack() as stack:
        running = []
        for address in only or PODS[:count]:
            (folder / address).mkdir()
            one = nginx_expecting_proxy(
                folder / address, hosts=(address,), port=POD_PORT, proxy_protocol=address not in plain
            )
            running.append(stack.enter_context(one))
        yield running


@dataclass(frozen=True)
class FollowingRelay:
    """A running relay that follows Services."""

    process: subprocess.Popen[bytes]
    log: Path
    admin: str
    _waited: Counter[str] = field(default_factory=Counter)

    def workers(self) -> list[int]:
        """The processes that relay, if there are several."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]

    def readiness(self) -> tuple[int, list[str]]:
        """The status and the lines of /readyz."""
        try:
            with urllib.request.urlopen(f"http://{self.admin}/readyz", timeout=10) as answer:
                return answer.status, answer.read().decode().splitlines()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode().splitlines()

    def page(self) -> str:
        with urllib.request.urlopen(f"http://{self.admin}/", timeout=10) as answer:
            return str(answer.read().decode())

    def metrics(self) -> dict[str, float]:
        """Every sample by name and labels."""
        with urllib.request.urlopen(f"http://{self.admin}/metrics", timeout=10) as answer:
            rows = [row for row in answer.read().decode().splitlines() if not row.startswith("#")]
        return {name: float(value) for name, _, value in (row.rpartition(" ") for row in rows)}

    def named(self, event: str) -> list[dict[str, Any]]:
        """The log lines of one event."""
        rows = map(json.loads, whole_lines(self.log))
        return [row for row in rows if row["event"] == event]

    def until_logged(self, event: str) -> None:
        """Wait for one more line of an event than at the last call."""
        self._waited[event] += 1
        self.until(lambda: len(self.named(event)) >= self._waited[event], event)

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until a condition holds."""
        try:
            poll_until(condition, what, seconds=_PATIENCE)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log.read_text()[-3000:]}") from None

    def until_followed(self, backend: str, *, workers: str) -> None:
        """Wait until every process of the relay has read the pods of a backend, `NAMESPACE/NAME`."""
        processes = 1 if workers == "1" else int(workers) + 1
        kind = f"EndpointSlices of {backend}"
        self.until(lambda: sum(row["kind"] == kind for row in self.named("synced")) == processes, kind)

    def until_open(self, *ports: int) -> None:
        """Wait until clients can connect."""
        self.until(lambda: all(map(is_listening, ports)), f"listening on {ports}")

    def until_closed(self, *ports: int) -> None:
        """Wait until no client can connect."""
        self.until(lambda: not any(map(is_listening, ports)), f"closed {ports}")


@contextmanager
def following_relay(
    folder: Path,
    *arguments: str,
    namespace: str | None,
    kubeconfig: Path,
    open_files: tuple[int, int] | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[FollowingRelay]:
    """The real `proxy --routes-from services`, for the duration of the block; `open_files` as for `limited`."""
    (admin,) = free_ports(1)
    log = folder / "relay.log"
    named = () if namespace is None else ("--routes-namespace", namespace)
    flags = ("--routes-from", "services", *named, "--kubeconfig", str(kubeconfig), "--admin", f"127.0.0.1:{admin}")
    command = [*limited(open_files), sys.executable, "-m", "proxy", *flags, *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **environment})
    try:
        wait_for(lambda: b'"limits"' in log.read_bytes(), process=process, log=log)
        yield FollowingRelay(process, log, f"127.0.0.1:{admin}")
        assert process.poll() is None, log.read_text()[-3000:]
        assert "Traceback" not in log.read_text()
    finally:
        end_process(process)
