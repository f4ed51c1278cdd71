"""The relays that are measured side by side, ours among them.

The law: a row a relay; what is not installed is named and left out, never replaced.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.limit.build import COMPILER, LIMIT, limit_program
from tests.bench.relay import configs
from tests.bench.relay.configs import Setup, Site
from tests.bench.relay.workloads import Kind, Workload
from tests.kit.programs import find_program, peers_cache

OURS: Final = "ours"
HAPROXY: Final = "haproxy"
HAPROXY_SPLICE: Final = "haproxy, always splice"
HAPROXY_PIPES: Final = "the same, 1 MB pipes"
NGINX: Final = "nginx stream"
GO: Final = "go io.Copy"
DIRECT: Final = "no relay"

GO_SOURCE: Final = Path(__file__).with_name("go")
_EVERY: Final = frozenset(Kind)


@dataclass(frozen=True, slots=True)
class Peer:
    """A way to run a program as a relay."""

    label: str
    program: str
    setup: Callable[[Site], Setup] | None
    """None for what is measured without a relay."""
    kinds: frozenset[Kind] = _EVERY
    most_processes: int = 2


def ours_with(label: str, program: str) -> Peer:
    """Ours, with another Python: only where that matters most, and what the kernel does matters least."""
    return Peer(label, program, configs.setup_ours, frozenset({Kind.REQUESTS}), most_processes=1)


PEERS: Final = (
    Peer(OURS, "python", configs.setup_ours),
    Peer(HAPROXY, "haproxy", configs.setup_haproxy),
    Peer(HAPROXY_SPLICE, "haproxy", configs.setup_haproxy_splice, frozenset({Kind.BULK})),
    Peer(HAPROXY_PIPES, "haproxy", configs.setup_haproxy_pipes, frozenset({Kind.BULK})),
    Peer(NGINX, "nginx", configs.setup_nginx, most_processes=1),
    Peer(GO, "go-relay", configs.setup_go),
    Peer(LIMIT, COMPILER, configs.setup_limit, frozenset({Kind.REQUESTS}), most_processes=1),
    Peer(DIRECT, "nginx", None, frozenset({Kind.LATENCY})),
)


def find_peer(peer: Peer) -> str | None:
    """The path of its program; None where it is not installed, or not whole."""
    if peer.label == OURS:
        return sys.executable
    if peer.setup is configs.setup_ours:
        return peer.program
    if peer.label == LIMIT:
        return limit_program("relay")
    if peer.label == GO:
        built = peers_cache() / f"go-relay-v{go_version(GO_SOURCE)}" / "go-relay"
        return str(built) if built.exists() else None
    if peer.label == NGINX and not configs.STREAM_MODULE.exists():
        return None
    return find_program(peer.program)


def go_version(source: Path) -> str:
    """What scripts/peers.sh calls a build of the Go relay by: its source, so that an old build is never measured."""
    octets = b"".join((source / name).read_bytes() for name in ("go.mod", "main.go"))
    return hashlib.sha256(octets).hexdigest()[:12]


def missing_peers() -> list[str]:
    """The labels of relays that are not installed."""
    return [peer.label for peer in PEERS if find_peer(peer) is None]


def peers_for(workload: Workload, relays: Collection[str] = (), *, more: Sequence[Peer] = ()) -> list[Peer]:
    """The relays that are installed and measured under a workload, ours first; of `relays` alone if any are named.

    `more` are ours with other Pythons, measured where ours is.
    """
    peers = [peer for peer in PEERS if not relays or peer.label in relays]
    ours = [place for place, peer in enumerate(peers, 1) if peer.label == OURS]
    if ours:
        peers[ours[0] : ours[0]] = more
    return [
        peer
        for peer in peers
        if workload.kind in peer.kinds and workload.processes <= peer.most_processes and find_peer(peer) is not None
    ]
