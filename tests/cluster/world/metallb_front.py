"""A proxy in front of the cluster that adds the PROXY header, in the ways in which users of MetalLB have one.

The law: MetalLB adds no header, so the proxy does. Visitors dial one address, the proxy dials another or the same one.
It is in a network of its own, as the balancer of the default scene, and has its name.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.cluster.addresses import Addresses
from tests.cluster.nodes.configs import UPLINK
from tests.cluster.stage import Stage
from tests.cluster.steps.balancer import BALANCER, CONTROLLER, SPACE, format_haproxy
from tests.cluster.steps.outside import Outside, configure, inside, pid_of, start_outside
from tests.cluster.world.metallb import parse_neighbours
from tests.kit.programs import program

PORTS: Final = (80, 443)


@dataclass(frozen=True)
class Front:
    """Where the proxy takes connections, and where it opens them."""

    owns_public: bool
    """Whether it has the public address; otherwise it intercepts what visitors send there, as a router on their way."""
    targets: Sequence[str]
    ports: Mapping[int, int]
    """The port of the targets by its own port."""


def with_own_address(target: str) -> Front:
    """It has the public address, and dials the Service's other address."""
    return Front(True, [target], {port: port for port in PORTS})


def in_the_way(stage: Stage) -> Front:
    """Visitors dial the Service's address; a router on their way adds the header, and dials the same address."""
    return Front(False, [stage.at.in_url(stage.at.public)], {port: port for port in PORTS})


def by_node_ports(stage: Stage) -> Front:
    """It has the Service's address, and dials node ports."""
    ports = stage.get("service", CONTROLLER, "-n", SPACE)["spec"]["ports"]
    nodes = [stage.at.in_url(stage.at.node(node.place.number)) for node in stage.nodes]
    return Front(True, nodes, {one["port"]: one["nodePort"] for one in ports})


def start_front(stage: Stage, front: Front) -> None:
    """Start it in place of the former one."""
    stop_front(stage)
    config = stage.folder / "front.cfg"
    config.write_text(format_haproxy(front.ports, front.targets), encoding="utf-8")
    at = stage.at
    own = [(at, one) for one in (at.balancer, at.visitor, *([at.public] if front.owns_public else ()))]
    start_outside(stage, Outside(BALANCER, own), program("haproxy"), "-db", "-f", str(config))
    if at.family == 6:  # the family
        # Otherwise the proxy's own connections may have the visitors' address, and be intercepted.
        deprecated = f"addr change {at.visitor}/{at.length} dev {BALANCER} preferred_lft 0"
        configure(pid_of(stage, BALANCER), deprecated)
    for node in stage.nodes:
        # Its device is a new one; an announcement of its addresses would have this effect.
        node.run(program("ip"), "neigh", "flush", "dev", UPLINK)
    if not front.owns_public:
        rules = format_interception(at)
        subprocess.run(inside(stage, BALANCER, program("nft"), "-f", "-"), input=rules, text=True, check=True)


def stop_front(stage: Stage) -> None:
    """End it, with its network."""
    if BALANCER in stage.node.processes:
        stage.node.kill(BALANCER)
        # The kernel removes a network some time after its last process.
        stage.eventually("the end of its device", lambda: not has_port(stage), seconds=60)


def has_port(stage: Stage) -> bool:
    """Whether its end is still on the link."""
    words = ["nsenter", f"--target={stage.cluster.link.pid}", "--net", program("ip"), "link", "show"]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return f" {BALANCER}-port@" in listed


def format_interception(at: Addresses) -> str:
    """A ruleset for `nft -f`: connections of visitors to the public address are the proxy's."""
    family, ports = ("ip6" if at.family == 6 else "ip"), ", ".join(map(str, PORTS))  # the family
    match = f"{family} saddr {at.visitor} {family} daddr {at.public} tcp dport {{ {ports} }}"
    return (
        f"table {family} front {{\n  chain output {{\n    type nat hook output priority -100;\n"
        f"    {match} dnat to {at.balancer}\n  }}\n}}\n"
    )


def neighbour(stage: Stage, address: str) -> str:
    """The hardware address that answers for an address on the link now; empty if nobody does."""
    subprocess.run(inside(stage, BALANCER, program("ip"), "neigh", "flush", "to", address), check=True)
    dial = inside(
        stage, BALANCER, "curl", "-s", "--max-time", "2", "-o", "/dev/null", f"http://{stage.at.in_url(address)}/"
    )
    subprocess.run(dial, check=False, capture_output=True)
    listed = inside(stage, BALANCER, program("ip"), "-j", "neigh", "show", "to", address)
    return parse_neighbours(subprocess.run(listed, check=True, capture_output=True, text=True).stdout, address)
