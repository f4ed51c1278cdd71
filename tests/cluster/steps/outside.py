"""A network outside of the nodes, with one program in it and one device on the nodes' link.

The law: it exists as long as its program; its end removes the device.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from tests.cluster.addresses import Addresses
from tests.cluster.nodes.control_groups import elsewhere
from tests.cluster.nodes.link import add_addresses, configure
from tests.cluster.nodes.namespaces import children_of, network_of
from tests.cluster.stage import Stage

__all__ = ["Outside", "configure", "inside", "pid_of", "start_outside"]

# A server cannot listen on an address that its network gets later, and a health check would fail at first.
_WHEN_IT_HAS_ITS_ADDRESS = 'until ip addr | grep -q " $1/"; do sleep 0.1; done; shift; exec "$@"'


@dataclass(frozen=True)
class Outside:
    """What to call it, and its addresses."""

    name: str
    """Of its program among the node's, and of its device on the link; ten characters at most."""
    addresses: Sequence[tuple[Addresses, str]]
    """Its own, each with its family's plan; the first is the source of its packets."""


def start_outside(stage: Stage, one: Outside, *command: str) -> None:
    """Start a program in a network of its own, and attach it to the link."""
    # Without a name as from `ip netns add`, whose mounts would keep the networks of ended pods alive.
    waiting = ["sh", "-c", _WHEN_IT_HAS_ITS_ADDRESS, "sh", one.addresses[-1][1], *command]
    program_there = subprocess.Popen(stage.node.inside("unshare", "--net", *elsewhere(*waiting)))
    stage.node.processes[one.name] = program_there
    stage.eventually(
        "a network outside", lambda: network_of(pid_of(stage, one.name)) not in {"", network_of(stage.node.pid)}
    )
    there = pid_of(stage, one.name)
    stage.cluster.link.attach(there, one.name, port=f"{one.name}-port")
    add_addresses(there, one.name, one.addresses)


def pid_of(stage: Stage, name: str) -> int:
    """The process that holds the network; 0 while there is none."""
    return next(iter(children_of(stage.node.processes[name].pid)), 0)


def inside(stage: Stage, name: str, *words: str) -> list[str]:
    """The command line that runs a command there."""
    return ["nsenter", f"--target={pid_of(stage, name)}", "--net", *elsewhere(*words)]
