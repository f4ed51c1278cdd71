"""The tools of a step: the node, its pods, and a way to report observations.

The law: a step with an unexpected observation raises StepFailed; every wait has a limit.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.cluster.addresses import Addresses
from tests.cluster.nodes.cluster import Cluster
from tests.cluster.nodes.node import Node
from tests.cluster.plan import Plan
from tests.kit.programs import program

PATIENCE: Final = 180.0
COREDNS_MAP: Final = "configmap/coredns"


class StepFailed(Exception):
    """A step observed something unexpected."""


@dataclass
class Stage:
    """The current state of the scene."""

    cluster: Cluster
    folder: Path
    """A folder for files of the steps."""
    checkout: Path
    """A copy of the project's sources, in which README's lines are played."""
    before: dict[str, Any] = field(default_factory=dict)
    """Values for later comparisons."""

    @property
    def node(self) -> Node:
        """The first node, where commands run."""
        return self.cluster.nodes[1]

    @property
    def nodes(self) -> list[Node]:
        return list(self.cluster.nodes.values())

    @property
    def plan(self) -> Plan:
        return self.cluster.plan

    @property
    def at(self) -> Addresses:
        """The addresses of the primary family."""
        return self.cluster.at[0]

    def public(self, **more: str) -> list[dict[str, str]]:
        """The entries of the load balancer's status: its address in each family."""
        return [{"ip": at.public, **more} for at in self.cluster.at]

    @property
    def edges(self) -> set[str]:
        """The addresses that masqueraded connections have outside."""
        return {self.at.node(node.place.number) for node in self.nodes}

    def say(self, text: str) -> None:
        """The observations of a step."""
        for line in text.rstrip().splitlines():
            sys.stdout.write(f"    {line}\n")
        sys.stdout.flush()

    def kubectl(self, *words: str, given: str | None = None) -> str:
        return self.node.kubectl(*words, given=given).stdout

    def get(self, *words: str) -> Any:
        """An object, or a list of them."""
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def client(self, *words: str, pod: str = "client") -> tuple[int, str]:
        """Run a command in a client's pod: exit status and output."""
        done = self.node.kubectl("exec", pod, "--", *words, check=False)
        return done.returncode, (done.stdout + done.stderr).strip()

    def curl(self, url: str, *more: str, pod: str = "client") -> tuple[int, str]:
        """A page, fetched by a client's pod; in the primary family, unless `more` has another."""
        words = ["-sS", f"-{self.at.family}", "--cacert", "/client/ca.crt", "--max-time", "8", *more]
        return self.client("curl", *words, url, pod=pod)

    def client_address(self, pod: str = "client") -> str:
        return str(self.get("pod", pod)["status"]["podIP"])

    def relay(self) -> Any:
        """The route Service of the class nginx."""
        return self.get("service", "relay-nginx", "-n", "switchback")

    def relay_address(self) -> str:
        return str(self.relay()["spec"]["clusterIP"])

    def corefile(self) -> str:
        return str(self.get(COREDNS_MAP, "-n", "kube-system")["data"]["Corefile"])

    def dig(self, name: str, *, server: str = "", record: str = "") -> list[str]:
        """The response in the node's own network, which reaches every Service too; addresses of the primary family."""
        asked = [f"@{server or self.at.dns}", "+short", "+tries=1", "+time=4", name, record or self.at.record]
        done = self.node.run(program("dig"), *asked, check=False)
        return done.stdout.split()

    def everywhere(self, name: str, address: str, *, record: str = "") -> float:
        """Wait until every CoreDNS answers this: one may hold another answer for its TTL. Returns the seconds."""

        def is_answered() -> bool:
            # The Service distributes questions to all.
            return all(self.dig(name, record=record) == [address] for _ in range(20))

        return self.eventually(f"{address} from every CoreDNS", is_answered, seconds=60)

    def rolled_out(self, *workloads: str, namespace: str = "switchback") -> None:
        """Wait until these run with their last applied settings, and the previous pods are gone."""
        for one in workloads:
            self.kubectl("rollout", "status", one, "-n", namespace, f"--timeout={PATIENCE:.0f}s")
        self.eventually(f"the end of old pods in {namespace}", lambda: not self.ending(namespace))

    def ending(self, namespace: str) -> list[str]:
        """The terminating pods: they still answer, with the settings of their start."""
        pods = self.get("pods", "-n", namespace)["items"]
        return [one["metadata"]["name"] for one in pods if "deletionTimestamp" in one["metadata"]]

    def eventually(self, what: str, condition: Callable[[], object], *, seconds: float = PATIENCE) -> float:
        """Wait for a condition. Returns the seconds that it took."""
        begun = time.monotonic()
        while not condition():
            if time.monotonic() - begun > seconds:
                raise StepFailed(f"not reached within {seconds:.0f} s: {what}")
            time.sleep(0.1)
        return time.monotonic() - begun

    def expect(self, what: str, *, saw: object, wanted: object) -> None:
        if saw != wanted:
            raise StepFailed(f"{what}: saw {saw!r}, expected {wanted!r}")

    def ingress(self, name: str, host: str, *, ingress_class: str | None = None) -> None:
        """Create a Service, and set its status as the load balancer's controller would."""
        backend = {"service": {"name": "any", "port": {"number": 80}}}
        spec: dict[str, Any] = {
            "rules": [{"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}],
            "tls": [{"hosts": [host]}],
        }
        if ingress_class:
            spec["ingressClassName"] = ingress_class
        self.apply({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name}, "spec": spec})

    def ingress_status(self, name: str, *entries: Mapping[str, str]) -> None:
        """Write an Ingress's status as its controller does."""
        self.patch_status("ingress", name, "-n", "default", entries=entries)

    def patch_status(self, *words: str, entries: Sequence[Mapping[str, str]]) -> None:
        """Write the entries of an object's load balancer status."""
        status = {"status": {"loadBalancer": {"ingress": entries}}}
        self.kubectl("patch", *words, "--subresource=status", "--type=merge", "-p", json.dumps(status))

    def apply(self, manifest: Mapping[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", given=json.dumps(manifest))
