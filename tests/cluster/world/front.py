"""A load balancer in front of one of the world's controllers: it sends the PROXY header in version 2.

The law: as steps/balancer.py, with one network of its own for each controller, which visitors share.
"""

from __future__ import annotations

import subprocess

from tests.cluster.stage import Stage
from tests.cluster.steps.balancer import format_haproxy
from tests.cluster.steps.outside import Outside, inside, start_outside
from tests.kit.programs import program


def start_front(stage: Stage, controller: str, *, namespace: str, service: str) -> None:
    """Start it for a Service of type LoadBalancer, and write the Service's status as a cloud does."""
    ports = stage.get("service", service, "-n", namespace)["spec"]["ports"]
    nodes = [stage.at.in_url(stage.at.node(node.place.number)) for node in stage.nodes]
    config = stage.folder / f"{controller}.cfg"
    text = format_haproxy({one["port"]: one["nodePort"] for one in ports}, nodes, header="send-proxy-v2")
    config.write_text(text, encoding="utf-8")
    own = [(at, at.of(controller)) for at in stage.cluster.at]
    start_outside(stage, Outside(controller, own), program("haproxy"), "-db", "-f", str(config))
    entry = {"ip": stage.at.of(controller), "ipMode": "VIP"}
    stage.patch_status("service", service, "-n", namespace, entry=entry)


def visit_front(stage: Stage, controller: str, url: str) -> str:
    """A page that a visitor outside gets by the public DNS's address; empty for none."""
    host = url.partition("://")[2].partition("/")[0]
    address = stage.at.in_url(stage.at.of(controller))
    resolved = [word for port in (80, 443) for word in ("--resolve", f"{host}:{port}:{address}")]
    words = ["curl", "-sS", "--max-time", "4", "--cacert", f"{stage.folder}/tls.crt", *resolved, url]
    done = subprocess.run(inside(stage, controller, *words), capture_output=True, text=True, check=False)
    return done.stdout.strip()
