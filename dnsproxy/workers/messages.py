"""The messages between the parent, its spawner and its workers, and their frames on a stream socket.

The law: all processes run the same code, because a worker is a fork, so there is no version to agree on. A frame is
four octets of length and a MessagePack array. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.answers.counters import Counters
from dnsproxy.dns.names import Reach
from dnsproxy.forward.upstream_report import UpstreamReport
from dnsproxy.replace.balancers import Balancers
from dnsproxy.replace.verdicts import LeadsTo, Led
from dnsproxy.tap.filters import TapFilter
from dnsproxy.tap.seen import Seen

_LENGTH: Final = struct.Struct("!I")

Row = tuple[str, Reach, tuple[str, ...], bool, str, Claimed]
"""The fields of a Host."""


class Begin(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """How to make a table: the first message of a feed. A later one begins with an empty table again."""

    ttl: int
    never: tuple[str, ...]


class HostRows(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Changed hosts of the next version; they show with its Publish."""

    rows: list[Row]


class Publish(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The end of a version: show it at once. None: as in the version before."""

    version: int
    closed: tuple[str, ...] | None = None
    unready: frozenset[str] | None = None
    balancers: Balancers | None = None


class Spawn(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """For the spawner: fork a worker. With its descriptors: its control socket, TCP sockets, UDP sockets."""

    worker: int
    """The number of its life; it is never used twice."""
    place: int
    """Which of the N workers it is, from 1 on."""
    streams: int
    datagrams: int


class Kill(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """For the spawner: end a worker with SIGKILL if it is alive."""

    worker: int


class Spawned(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """From the spawner: the process of a worker."""

    worker: int
    process: int


class Ended(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """From the spawner: a worker's process has ended; the status as of waitstatus_to_exitcode: -9 is SIGKILL."""

    worker: int
    status: int


class Limits(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """For a worker, first of all: how many TCP connections it may have, in all and from one client."""

    connections: int
    per_client: int
    unread_since: float
    """Since when nothing may have read its sockets, on the clock of time.perf_counter()."""
    own: int
    """How many of its TCP and of its UDP sockets, which are the first ones, end with the server."""


class Zone(msgspec.Struct, array_like=True, frozen=True):
    """A ZoneUpstreams, with endpoints as texts."""

    zone: bytes
    upstreams: tuple[str, ...]
    excepted: tuple[bytes, ...]
    rotate: bool


class Forwarding(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """For a worker: a ForwardSettings, with endpoints as texts, and the text that answers probes."""

    upstreams: tuple[str, ...]
    outstanding: int
    per_client: int
    rotate: bool
    attempts: int
    use_tcp: bool
    source_ports: int
    detect_loops: bool
    zones: tuple[Zone, ...]
    forwards: str


class Zones(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """For a worker: the zone that the parent answers for, empty without one, and those whose NOTIFY it takes."""

    zone: bytes
    notified: tuple[bytes, ...]


class Told(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """For a worker: the answer to an Ask; None: hand the connection over."""

    ident: int
    message: bytes | None


class Watch(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """For a worker: pass on the queries that this filter wants; None: none."""

    wanted: TapFilter | None


class Drain(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """For a worker: accept no more connections, and report when all open queries are answered."""


class Shown(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """From a worker: it answers from this version."""

    version: int


class Drained(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """From a worker: see Drain."""


class Ask(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """From a worker: a query about a zone."""

    ident: int
    message: bytes
    client: str
    stream: bool
    """Whether it came over TCP."""


class Notified(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """From a worker: a NOTIFY that it answered."""

    message: bytes


class Hand(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """From a worker, with a descriptor: a connection to serve, and what was received on it."""

    received: bytes


class Watched(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """From a worker: queries that it answered, and how many it dropped since the last ones."""

    seen: list[Seen]
    dropped: int


class Beat(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """From a worker, regularly: it is alive, and its numbers since its start."""

    counters: Counters
    outstanding: int
    upstreams: list[UpstreamReport]
    led_counts: dict[LeadsTo, int]
    asked_names: int = 0
    """How many claimed names were asked lately."""
    led: list[Led] | None = None
    """The claimed names that lead elsewhere; None: as before."""


ForSpawner = Begin | HostRows | Publish | Spawn | Kill
FromSpawner = Spawned | Ended
ForWorker = Begin | HostRows | Publish | Limits | Forwarding | Zones | Told | Watch | Drain
FromWorker = Shown | Drained | Beat | Ask | Notified | Hand | Watched

FOR_SPAWNER: Final[msgspec.msgpack.Decoder[ForSpawner]] = msgspec.msgpack.Decoder(ForSpawner)
FROM_SPAWNER: Final[msgspec.msgpack.Decoder[FromSpawner]] = msgspec.msgpack.Decoder(FromSpawner)
FOR_WORKER: Final[msgspec.msgpack.Decoder[ForWorker]] = msgspec.msgpack.Decoder(ForWorker)
FROM_WORKER: Final[msgspec.msgpack.Decoder[FromWorker]] = msgspec.msgpack.Decoder(FromWorker)

_ENCODER: Final = msgspec.msgpack.Encoder()
M = TypeVar("M")


def frame(message: ForSpawner | FromSpawner | ForWorker | FromWorker) -> bytes:
    """The frame of a message."""
    body = _ENCODER.encode(message)
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Cuts received octets into frames."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, octets: bytes, decoder: msgspec.msgpack.Decoder[M]) -> Iterator[M]:
        """The messages that are whole now. Take all of them before the next call."""
        received = self._received
        received += octets
        position = 0
        while len(received) - position >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(received, position)
            end = position + _LENGTH.size + length
            if len(received) < end:
                break
            yield decoder.decode(memoryview(received)[position + _LENGTH.size : end].toreadonly())
            position = end
        del received[:position]
