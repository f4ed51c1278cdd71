"""The servers that are measured side by side, ours among them, and which workloads each can do.

The law: a row a server; what is not installed is named and left out, never replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.dns import configs
from tests.bench.dns.configs import Setup, Site
from tests.bench.limit.build import COMPILER, LIMIT, limit_program
from tests.kit.programs import find_program

OURS: Final = "ours"
NSD: Final = "nsd"
DNSMASQ: Final = "dnsmasq"
UNBOUND: Final = "unbound"
COREDNS_HOSTS: Final = "coredns hosts"
COREDNS_FILE: Final = "coredns file"
COREDNS_REWRITE: Final = "coredns rewrite"
COREDNS_FORWARD: Final = "coredns forward"

_TWO: Final = frozenset(("two",))
_LIMIT: Final = frozenset(("table", "edns", "100k"))
_REST: Final = frozenset(("rest-1000", "rest-100"))
_TABLES: Final = frozenset(("table", "edns", "case", "wildcard", "100k")) | _REST


@dataclass(frozen=True, slots=True)
class Peer:
    """A way to run a program as a server."""

    label: str
    program: str
    setup: Callable[[Site], Setup]
    workloads: Collection[str]
    address: str | None = None
    """What it answers for every name, where that is not the zone's address."""
    workers: int = 1
    """How many processes or threads answer; several of them have every processor, and share them with the load."""
    watched: bool = False
    """Whether a listener reads its queries."""


def ours_with(label: str, program: str) -> Peer:
    """Ours, with another Python."""
    return Peer(label, program, configs.setup_ours, _TABLES | {"forward"})


PEERS: Final = (
    Peer(OURS, "python", configs.setup_ours, _TABLES | {"forward"}),
    Peer(NSD, "nsd", configs.setup_nsd, _TABLES),
    Peer(DNSMASQ, "dnsmasq", configs.setup_dnsmasq, _TABLES | {"forward"}),
    Peer(UNBOUND, "unbound", configs.setup_unbound, _TABLES | {"forward"}),
    Peer(COREDNS_HOSTS, "coredns", configs.setup_coredns_hosts, _TABLES - {"wildcard"}),
    Peer(COREDNS_FILE, "coredns", configs.setup_coredns_file, {"wildcard"}),
    Peer(COREDNS_REWRITE, "coredns", configs.setup_coredns_rewrite, {"table"}, configs.REWRITE_ADDRESS),
    Peer(COREDNS_FORWARD, "coredns", configs.setup_coredns_forward, {"forward"}),
    Peer(LIMIT, COMPILER, configs.setup_limit, _LIMIT),
    Peer(OURS, "python", configs.setup_ours, {"tap"}, watched=True),
    Peer(OURS, "python", configs.setup_ours, _TWO, workers=2),
    Peer(NSD, "nsd", configs.setup_nsd, _TWO, workers=2),
    Peer(UNBOUND, "unbound", configs.setup_unbound, _TWO, workers=2),
    Peer(COREDNS_HOSTS, "coredns", configs.setup_coredns_hosts, _TWO, workers=2),
)

UPSTREAM: Final = Peer("upstream", "nsd", configs.setup_nsd, ())
"""What the forwarding servers ask; it is not measured."""


def find_peer(peer: Peer) -> str | None:
    """The path of its program; None where it is not installed."""
    if peer.label == OURS:
        return sys.executable
    if peer.label == LIMIT:
        return limit_program("answers")
    return peer.program if peer.setup is configs.setup_ours else find_program(peer.program)


def missing_programs() -> list[str]:
    """The programs of peers that are not installed, each once."""
    return sorted({peer.program for peer in PEERS if find_peer(peer) is None})


def peers_for(workload: str, *, servers: Collection[str] = (), more: Sequence[Peer] = ()) -> list[Peer]:
    """The servers that are installed and can do a workload, ours first; of `servers` alone if any are named.

    `more` are ours with other Pythons, measured whatever is named.
    """
    chosen = [peer for peer in PEERS if not servers or peer.label in servers]
    ours = sum(peer.label == OURS for peer in chosen[:1])
    peers = (*chosen[:ours], *more, *chosen[ours:])
    return [peer for peer in peers if workload in peer.workloads and find_peer(peer) is not None]
