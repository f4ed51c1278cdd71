"""A load balancer outside of the node, as a cloud's: it ends connections, and dials the node with the PROXY header.

The law: it has the address of the controller's Service, and reaches pods by node ports alone. It routes a second
address to the node instead, with the packets as they are: a balancer that passes through. Visitors are in its network.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any, Final

from tests.cluster.outside import Outside, configure, inside, pid_of, start_outside
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.texts import NODE_ADDRESS, PUBLIC_ADDRESS
from tests.kit.programs import program

EDGE: Final = "198.18.10.1"
"""The node's address on the link, which the node's masquerading gives to the connections of pods."""
VISITOR: Final = "198.18.10.3"
PASSED_ADDRESS: Final = "198.18.7.101"
BALANCER: Final = Outside("balancer", EDGE, ["198.18.10.2", VISITOR])
CONTROLLER: Final = "ingress-nginx-controller"
PASSED: Final = "passed"
ADDRESSES: Final = {CONTROLLER: PUBLIC_ADDRESS, PASSED: PASSED_ADDRESS}
"""The addresses of Services of type LoadBalancer."""
SPACE: Final = "ingress-nginx"

_SERVICE: Final[Mapping[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Service",
    # As MetalLB marks it, whose balancers pass through.
    "metadata": {"name": PASSED, "namespace": SPACE, "annotations": {"metallb.io/ip-allocated-from-pool": "any"}},
    "spec": {"type": "LoadBalancer", "selector": {"app": "plain"}, "ports": [{"name": "http", "port": 80}]},
}


def format_haproxy(node_ports: Mapping[int, int]) -> str:
    """HAProxy's configuration: each port with its node port."""
    listeners = [
        f"listen port{port}\n  bind :{port}\n  server node {NODE_ADDRESS}:{node_port} send-proxy\n"
        for port, node_port in node_ports.items()
    ]
    defaults = "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n"
    return "".join([defaults, *listeners])


def start_balancer(stage: Stage) -> None:
    """Start it, the routes in both directions, and the Service whose balancer passes through."""
    ports = stage.get("service", CONTROLLER, "-n", SPACE)["spec"]["ports"]
    config = stage.folder / "haproxy.cfg"
    config.write_text(format_haproxy({one["port"]: one["nodePort"] for one in ports}), encoding="utf-8")
    start_outside(stage, BALANCER, program("haproxy"), "-db", "-f", str(config))
    there = pid_of(stage, BALANCER)
    configure(there, f"addr add {PUBLIC_ADDRESS}/32 dev lo", f"route add default via {EDGE}")
    configure(stage.node.pid, f"route add {PUBLIC_ADDRESS} via {BALANCER.addresses[0]}")
    stage.apply(_SERVICE)
    write_status(stage, PASSED)


def stop_balancer(stage: Stage) -> None:
    """End it, with its network and the Service."""
    stage.node.kill(BALANCER.name)
    stage.kubectl("delete", "service", PASSED, "-n", SPACE)


def write_status(stage: Stage, service: str) -> None:
    """Write a Service's status as its provider does: PUT, with the mode VIP."""
    found = stage.get("service", service, "-n", SPACE)
    found["status"] = {"loadBalancer": {"ingress": [{"ip": ADDRESSES[service], "ipMode": "VIP"}]}}
    stage.kubectl("replace", "--subresource=status", "-f", "-", given=json.dumps(found))


def mode_of(stage: Stage, service: str) -> str:
    """The ipMode of its status."""
    (entry,) = stage.get("service", service, "-n", SPACE)["status"]["loadBalancer"]["ingress"]
    return str(entry["ipMode"])


def visit(stage: Stage, host: str, address: str = PUBLIC_ADDRESS) -> str:
    """A page that a visitor outside gets; empty for none."""
    words = ["curl", "-sS", "--max-time", "3", "--interface", VISITOR, "--resolve", f"{host}:80:{address}"]
    command = inside(stage, BALANCER, *words, f"http://{host}/")
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def expect_visitors(stage: Stage, host: str) -> None:
    """Visitors are served at the controller's address, over the balancer."""
    page = visit(stage, host)
    if page != f"hello from {host}":
        raise StepFailed(f"a visitor outside got {page!r} from {host}")
