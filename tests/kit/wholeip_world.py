"""A real API server and a real kernel in one network namespace, and the agent as a program between them.

The law: tests wait for the state of the kernel; the agent ends with its world.
"""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import trio

from sidecar.kubernetes.config import load_cluster
from sidecar.kubernetes.http import ApiClient
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.networks import Network
from tests.kit.ports import free_ports
from tests.kit.processes import end_process
from tests.kit.wholeip_objects import WHOLE, pod_manifest, slice_manifest
from tests.wholeip.scene.place import place
from wholeip.kernel.nft import Nft
from wholeip.mappings.pods import Proof
from wholeip.mappings.services import LABEL
from wholeip.rules_command import read_state
from wholeip.ruleset.ruleset import Ruleset, make_ruleset
from wholeip.settings import ClusterSettings

NODE: Final = "node-1"
SERVICES, NODES = "/api/v1/namespaces/default/services", "/api/v1/nodes"
PODS: Final = "/api/v1/namespaces/default/pods"
SLICES: Final = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
MERGE: Final = "application/merge-patch+json"
PATIENCE: Final = 90.0
PATHS: Final = """
link set lo up
link add out type veth peer name nowhere
addr add 198.51.100.1/24 dev out
link set out up
route add default dev out
"""
"""The API server derives its own address from the default route."""
THEIRS: Final = next(iter(WHOLE))


@dataclass
class World:
    """An API server and a kernel in one network, and an agent that tests start and end."""

    server: ApiServer
    folder: Path
    network: Network
    admin: int
    agent: subprocess.Popen[bytes] | None = None
    proof: Proof = Proof.REFERENCED
    """--endpoints of the agent."""
    held: dict[str, str] = field(default_factory=dict)
    """The created objects by path, so that a test can remove all of them."""

    def start_agent(self, *flags: str) -> None:
        self.end_agent()
        command = [sys.executable, "-m", "wholeip", "run", "--kubeconfig", str(self.server.kubeconfig)]
        command += ["--node-name", NODE, "--admin", f"127.0.0.1:{self.admin}", "--endpoints", self.proof, *flags]
        with (self.folder / "agent.log").open("ab") as log:
            self.agent = subprocess.Popen(command, stderr=log)

    def end_agent(self) -> None:
        """SIGKILL."""
        end_process(self.agent)
        self.agent = None

    @property
    def log(self) -> str:
        return (self.folder / "agent.log").read_text()

    def put(self, collection: str, manifest: Mapping[str, Any]) -> None:
        """Create or change an object; a Service's status has a path of its own."""
        path = f"{collection}/{manifest['metadata']['name']}"
        status = manifest.get("status")
        if path in self.held:
            self.server.request("PATCH", path, manifest, content_type=MERGE)
        else:
            self.server.request("POST", collection, manifest)
            self.held[path] = collection
        if status is not None:
            self.server.request("PATCH", f"{path}/status", {"status": status}, content_type=MERGE)

    def put_service(self, name: str, *ips: str, ports: Any = ({"port": 65535},), whole: bool = True) -> None:
        metadata = {"name": name, "labels": {LABEL: "cozy-proxy"}, "annotations": WHOLE if whole else {THEIRS: None}}
        spec = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": list(ports)}
        status = {"loadBalancer": {"ingress": [{"ip": one} for one in ips]}}
        self.put(SERVICES, {"metadata": metadata, "spec": spec, "status": status})

    def put_slice(self, owner: str, *pods: tuple[str, Mapping[str, bool]], family: str = "IPv4", **more: Any) -> None:
        self.put(SLICES, slice_manifest(owner, *pods, family=family, node=NODE, **more))

    def put_pod(self, name: str, *addresses: str, **more: Any) -> None:
        """A Pod with these addresses, as its kubelet reports them."""
        container = {"name": "vm", "image": "registry.example.org/vm"}
        manifest = pod_manifest(name, *addresses, **more)
        self.put(PODS, manifest | {"spec": manifest["spec"] | {"nodeName": NODE, "containers": [container]}})

    def delete(self, path: str) -> None:
        if self.held.pop(path, None):
            # A Pod on a node would wait for its kubelet.
            self.server.request("DELETE", f"{path}?gracePeriodSeconds=0")

    def present(self) -> Ruleset | None:
        return trio.run(Nft().read_ruleset)

    def expected(self) -> Ruleset:
        """The ruleset for the present objects, without earlier choices."""
        return trio.run(self._expected)

    async def _expected(self) -> Ruleset:
        where = ClusterSettings(node_name=NODE, kubeconfig=str(self.server.kubeconfig), endpoints=self.proof)
        async with ApiClient(load_cluster(kubeconfig=where.kubeconfig)) as client:
            state = await read_state(client, where)
        return make_ruleset(state.plan().mappings, cluster=state.networks)

    def until(self, expected: Ruleset | None) -> None:
        """Wait until the kernel has this ruleset."""
        deadline = time.monotonic() + PATIENCE
        while (found := self.present()) != expected:
            assert self.agent is None or self.agent.poll() is None, self.log
            assert time.monotonic() < deadline, f"the kernel has {found}; {self.log[-3000:]}"
            time.sleep(0.02)

    def until_in_step(self) -> None:
        self.until(self.expected())

    def until_ready(self) -> str:
        """Wait until the agent is ready. Returns its response."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self.ask("/readyz")
            except (OSError, http.client.HTTPException):
                assert time.monotonic() < deadline, self.log[-3000:]
                time.sleep(0.02)

    def ask(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=30) as response:
            return str(response.read().decode())

    def wholes(self) -> dict[str, str]:
        present = self.present()
        return {} if present is None else {**present.elements["whole_v4"], **present.elements["whole_v6"]}


@contextmanager
def running_world(folder: Path, *, version: str = ApiServer.version) -> Iterator[World]:
    """The world without an agent; `version` as `running_apiserver` takes it.

    Processes started inside `world.network.entered()` are in its network.
    """
    with ExitStack() as stack:
        made = stack.enter_context(place())
        made.ip(PATHS)
        made.sysctl(**{"ipv4/ip_forward": 1, "ipv6/conf/all/forwarding": 1})
        network = Network(made.process)
        with network.entered():
            server = stack.enter_context(running_apiserver(folder, version=version))
            world = World(server, folder, network, free_ports(1)[0])
            stack.callback(world.end_agent)
            world.put(NODES, {"metadata": {"name": NODE}, "spec": {"podCIDRs": ["10.0.0.0/24"]}})
        yield world
