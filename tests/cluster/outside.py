"""A network outside of the node, with one program in it and one link to the node.

The law: it exists as long as its program; its end removes the link, and the node's routes over it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.control_groups import elsewhere
from tests.cluster.node import children_of
from tests.cluster.stage import Stage
from tests.kit.programs import program


@dataclass(frozen=True)
class Outside:
    """What to call it, and its addresses."""

    name: str
    """Of its program among the node's, and of the link's device there; ten characters at most."""
    edge: str
    """The node's address on the link, of a network of 256 addresses."""
    addresses: Sequence[str]
    """Its own addresses on the link; the first is the source of its packets."""


def start_outside(stage: Stage, one: Outside, *command: str) -> None:
    """Start a program in a network of its own, and link it to the node."""
    # Without a name as from `ip netns add`, whose mounts would keep the networks of ended pods alive.
    program_there = subprocess.Popen(stage.node.inside("unshare", "--net", *elsewhere(*command)))
    stage.node.processes[one.name] = program_there
    stage.eventually(
        "a network outside", lambda: _network_of(pid_of(stage, one)) not in {"", _network_of(stage.node.pid)}
    )
    there, edge = pid_of(stage, one), f"{one.name}-edge"
    configure(stage.node.pid, f"link add {edge} type veth peer name {one.name} netns {there}")
    configure(stage.node.pid, f"addr add {one.edge}/24 dev {edge}", f"link set {edge} up")
    configure(there, "link set lo up", *(f"addr add {address}/24 dev {one.name}" for address in one.addresses))
    configure(there, f"link set {one.name} up")


def configure(pid: int, *commands: str) -> None:
    """Run commands of `ip` in the network of a process."""
    for words in commands:
        subprocess.run(["nsenter", f"--target={pid}", "--net", program("ip"), *words.split()], check=True)


def pid_of(stage: Stage, one: Outside) -> int:
    """The process that holds the network; 0 while there is none."""
    return next(iter(children_of(stage.node.processes[one.name].pid)), 0)


def inside(stage: Stage, one: Outside, *words: str) -> list[str]:
    """The command line that runs a command there."""
    return ["nsenter", f"--target={pid_of(stage, one)}", "--net", *elsewhere(*words)]


def _network_of(pid: int) -> str:
    """The identity of a process's network; empty for no process."""
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    return ""
