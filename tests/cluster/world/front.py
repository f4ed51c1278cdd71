"""A load balancer in front of one of the world's controllers: it sends the PROXY header in version 2.

The law: as steps/balancer.py, with one network of its own for each controller, which visitors share.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from typing import Final

from tests.cluster.nodes.configs import UPLINK
from tests.cluster.stage import Stage
from tests.cluster.steps.balancer import format_haproxy
from tests.cluster.steps.outside import Outside, inside, start_outside
from tests.cluster.world.controller import Controller
from tests.kit.programs import program

WEB: Final = (80, 443)


def start_front(stage: Stage, one: Controller, *, plain: Collection[int] = ()) -> None:
    """Start it, in place of a former one, for a Service of type LoadBalancer, and write its status as a cloud does.

    `plain`: the ports on which it sends no header.
    """
    if one.name in stage.node.processes:
        stage.node.kill(one.name)
    ports = stage.get("service", one.service, "-n", one.namespace)["spec"]["ports"]
    nodes = [stage.at.in_url(stage.at.node(node.place.number)) for node in stage.nodes]
    config = stage.folder / f"{one.name}.cfg"
    node_ports = {one["port"]: one["nodePort"] for one in ports if one["port"] in WEB}
    config.write_text(format_haproxy(node_ports, nodes, header="send-proxy-v2", plain=plain), encoding="utf-8")
    own = [(at, at.of(one.name)) for at in stage.cluster.at]
    start_outside(stage, Outside(one.name, own), program("haproxy"), "-db", "-f", str(config))
    entries = [{"ip": address, "ipMode": "VIP"} for _, address in own]
    stage.patch_status("service", one.service, "-n", one.namespace, entries=entries)


def turn_front(stage: Stage, one: Controller, *, plain: Collection[int]) -> None:
    """Start it again, with the header on other ports."""
    start_front(stage, one, plain=plain)
    for node in stage.nodes:
        # Its device is a new one; an announcement of its addresses would have this effect.
        node.run(program("ip"), "neigh", "flush", "dev", UPLINK)


def visit_front(stage: Stage, one: Controller, url: str) -> str:
    """A page that a visitor outside gets by the public DNS's address; empty for none."""
    host = url.partition("://")[2].partition("/")[0]
    address = stage.at.in_url(stage.at.of(one.name))
    resolved = [word for port in WEB for word in ("--resolve", f"{host}:{port}:{address}")]
    words = ["curl", "-sS", "--max-time", "4", "--cacert", f"{stage.folder}/tls.crt", *resolved, url]
    done = subprocess.run(inside(stage, one.name, *words), capture_output=True, text=True, check=False)
    return done.stdout.strip()
