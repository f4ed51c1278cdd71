"""A load balancer outside of the nodes, as a cloud's: it ends connections, and dials nodes with the PROXY header.

The law: it has the address of the controller's Service, and reaches pods by node ports alone. It routes a second
address to a node instead, with the packets as they are: a balancer that passes through. Visitors are in its network.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from tests.cluster.nodes.link import add_routes
from tests.cluster.plan import BRIDGE
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.outside import Outside, inside, pid_of, start_outside
from tests.kit.programs import program

BALANCER: Final = "balancer"
CONTROLLER: Final = "ingress-nginx-controller"
PASSED: Final = "passed"
SPACE: Final = "ingress-nginx"

_SERVICE: Final[Mapping[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Service",
    # As MetalLB marks it, whose balancers pass through.
    "metadata": {"name": PASSED, "namespace": SPACE, "annotations": {"metallb.io/ip-allocated-from-pool": "any"}},
    "spec": {
        "type": "LoadBalancer",
        "ipFamilyPolicy": "PreferDualStack",
        "selector": {"app": "plain"},
        "ports": [{"name": "http", "port": 80}],
    },
}


def entries(stage: Stage, service: str) -> list[dict[str, str]]:
    """What the provider writes into the status of a Service of type LoadBalancer."""
    if service == CONTROLLER:
        return stage.public(ipMode="VIP")
    return [{"ip": at.passed, "ipMode": "VIP"} for at in stage.cluster.at]


def format_haproxy(
    node_ports: Mapping[int, int], nodes: Sequence[str], *, header: str = "send-proxy", plain: Collection[int] = ()
) -> str:
    """HAProxy's configuration: each port with its node port on each node; a node that refuses is not asked again.

    `plain`: the ports without the header.
    """
    listeners = []
    for port, node_port in node_ports.items():
        sent = "" if port in plain else f" {header} check-send-proxy"
        servers = [
            f"  server node{number} {node}:{node_port}{sent} check inter 1s fall 2\n"
            for number, node in enumerate(nodes, 1)
        ]
        listeners.append(f"listen port{port}\n  bind :{port}\n  bind :::{port} v6only\n{''.join(servers)}")
    defaults = "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n"
    return "".join([defaults, *listeners])


def start_balancer(stage: Stage) -> None:
    """Start it, and the Service whose balancer passes through."""
    ports = stage.get("service", CONTROLLER, "-n", SPACE)["spec"]["ports"]
    config = stage.folder / "haproxy.cfg"
    nodes = [stage.at.in_url(stage.at.node(node.place.number)) for node in stage.nodes]
    config.write_text(format_haproxy({one["port"]: one["nodePort"] for one in ports}, nodes), encoding="utf-8")
    own = [(at, address) for at in stage.cluster.at for address in (at.balancer, at.visitor, at.public)]
    start_outside(stage, Outside(BALANCER, own), program("haproxy"), "-db", "-f", str(config))
    there = pid_of(stage, BALANCER)
    for at in stage.cluster.at:
        # As a cloud routes them, for nodes that do not masquerade. Cilium's only node has any part of the range.
        pods = [(at.pods_of(node.place.number), at.node(node.place.number)) for node in stage.nodes]
        if stage.plan.cni != BRIDGE:
            pods = [(at.pods, at.node(1))]
        add_routes(there, [*pods, (f"{at.passed}/{at.host_length}", at.node(1))])
    stage.apply(_SERVICE)
    write_status(stage, PASSED)


def stop_balancer(stage: Stage) -> None:
    """End it, with its network and the Service."""
    stage.node.kill(BALANCER)
    stage.kubectl("delete", "service", PASSED, "-n", SPACE)


def write_status(stage: Stage, service: str) -> None:
    """Write a Service's status as its provider does: PUT, with the mode VIP."""
    found = stage.get("service", service, "-n", SPACE)
    found["status"] = {"loadBalancer": {"ingress": entries(stage, service)}}
    stage.kubectl("replace", "--subresource=status", "-f", "-", given=json.dumps(found))


def mode_of(stage: Stage, service: str) -> str:
    """The ipMode of its status, the same in each family."""
    entries = stage.get("service", service, "-n", SPACE)["status"]["loadBalancer"]["ingress"]
    (mode,) = {str(one["ipMode"]) for one in entries}
    return mode


def visit(stage: Stage, host: str, address: str = "") -> str:
    """A page that a visitor outside gets, at the balancer's address unless another is given; empty for none."""
    resolved = f"{host}:80:{stage.at.in_url(address or stage.at.public)}"
    words = ["curl", "-sS", "--max-time", "3", "--interface", stage.at.visitor, "--resolve", resolved]
    command = inside(stage, BALANCER, *words, f"http://{host}/")
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def expect_visitors(stage: Stage, host: str) -> None:
    """Visitors are served at the controller's address, over the balancer."""
    page = visit(stage, host)
    if page != f"hello from {host}":
        raise StepFailed(f"a visitor outside got {page!r} from {host}")
