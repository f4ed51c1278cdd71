"""What a DatagramServer forwards, while the table, the zones and the age of what arrives change: as decide says."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final, cast

import pytest

from dnsproxy.answers import quick_forwards
from dnsproxy.answers.decide import Forward, decide
from dnsproxy.answers.table import Host
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.datagrams.port import BATCH, Sender
from dnsproxy.dns.names import Reach
from dnsproxy.dns.wire import Query
from dnsproxy.forward.forwarder import Forwarder
from dnsproxy.server.datagram_server import DatagramServer
from dnsproxy.server.responder import Responder
from dnsproxy.server.stale import STALE
from dnsproxy.server.zone_service import ZoneService
from tests.kit.messages import AAAA, HTTPS, MX, RD, TXT, A, opt_record, query
from tests.kit.strategies import case_of

NAMES: Final = ("one", "app.one", "x.app.one", "app.two", "a.b.app.one", "two", "x.one")
SERVICES: Final = ("default/web", "default/api", "")
ZONE: Final = b"\3two\0"


class Waiting:
    """A port with one batch of datagrams, and the bodies of its replies."""

    socket: socket.socket
    send_errors = 0

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.old = 0.0
        self.replies: list[tuple[bytes, bytes | None]] = []
        self._taken: list[bytes] = []

    def receive(self, limit: int = BATCH) -> list[bytes]:
        self._taken, self.messages = self.messages[:limit], self.messages[limit:]
        return [message[2:] for message in self._taken]

    def age(self) -> float:
        return self.old

    def message(self, position: int) -> bytes:
        return self._taken[position]

    def send(self, bodies: Sequence[bytes | None]) -> None:
        self.replies += zip(self._taken, bodies, strict=True)

    def sender(self, position: int) -> Sender:
        return ("192.0.2.9", 5353 + position), (), "192.0.2.9"

    def post(self, message: bytes, sender: Sender) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        raise NotImplementedError

    def host(self, sender: Sender) -> str:
        del sender
        return "192.0.2.9"

    def source_port(self, sender: Sender) -> int:
        return int(sender[0][1])


class NotedForwarder:
    """A forwarder that only records what it gets."""

    def __init__(self) -> None:
        self.started: list[Forward] = []

    def start(self, forward: Forward, port: Waiting, sender: Sender) -> bytes | None:
        del port, sender
        self.started.append(forward)
        return None

    def flush(self) -> None:
        pass


class Zones:
    """Zones that have one name and all below it."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def concerns(self, message: bytes, outcome: object) -> Query | None:
        del message
        return outcome.query if isinstance(outcome, Forward) and outcome.query.name.endswith(ZONE) else None

    def answer_datagram(self, query: Query, *, client: str, reply: Callable[[bytes], None]) -> None:
        del client, reply
        self.asked.append(query.message)


class World:
    """A server whose table, zones and delays a test changes."""

    def __init__(self) -> None:
        self.writer = TableWriter(ttl=5, never=("never.one",))
        self.responder = Responder()
        self.port = Waiting()
        self.forwarder = NotedForwarder()
        self.zones = Zones()
        self.server = DatagramServer(
            self.responder, self.port, cast("Forwarder", self.forwarder), unread_since=time.perf_counter()
        )

    def ask(self, messages: list[bytes], *, stale: bool = False) -> None:
        """Ask a batch; every query of it must get what decide says."""
        table, counters = self.responder.table, self.responder.counters
        self.port.messages, self.port.replies = list(messages), []
        self.forwarder.started, self.zones.asked = [], []
        failures, dropped = counters.failures, counters.forward_stale
        if stale:
            self.port.old = 10 * STALE
            self.server._emptied = time.perf_counter() - 10 * STALE
        else:
            self.port.old, self.server._emptied = 0.0, time.perf_counter()
        while self.port.messages:
            self.server.handle(0)
        decided = [decide(message, table, stream=False) for message in messages]
        forwarded = [one for one in decided if isinstance(one, Forward)]
        own = [one for one in forwarded if one.query.name.endswith(ZONE)] if self.responder.zones is not None else []
        assert [forward.query.message for forward in own] == self.zones.asked
        left = [one for one in forwarded if one not in own]
        assert self.forwarder.started == ([] if stale else left)
        assert counters.forward_stale - dropped == (len(left) if stale else 0)
        assert counters.failures == failures
        for (message, body), outcome in zip(self.port.replies, decided, strict=True):
            octets = None if isinstance(outcome, Forward) else outcome.message  # type: ignore[union-attr]
            assert (None if body is None else message[:2] + body) == octets


LABELS: Final = (b"app", b"x", b"a", b"b", b"never", b"one", b"two", b"q", b"closed")
TYPES: Final = (A, A, A, A, AAAA, MX, TXT, HTTPS)
ADDITIONAL: Final = ((), (), (), (opt_record(1232),), (opt_record(1232, version=1),))


def a_query(chance: random.Random) -> bytes:
    labels = [chance.choice(LABELS) for _ in range(chance.randint(0, 2))] + [chance.choice((b"one", b"two", b"x"))]
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    cased = case_of(name, chance.choice((0, 0, chance.getrandbits(20))))
    flags = chance.choice((RD, RD, RD, 0x120))
    return query(cased, chance.choice(TYPES), additional=chance.choice(ADDITIONAL), flags=flags)


def a_host(chance: random.Random) -> Host:
    reach = chance.choice(list(Reach))
    addresses = chance.choice(((), ("192.0.2.1",), ("192.0.2.2", "2001:db8::2")))
    barred = reach is Reach.NAME and not addresses and chance.random() < 1 / 2
    hostname = ("*." if reach is not Reach.NAME else "") + chance.choice(NAMES)
    return Host(hostname, reach, addresses, barred=barred, service=chance.choice(SERVICES))


def change(world: World, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 3)):
        world.writer.put(a_host(chance))
    if chance.random() < 1 / 4:
        world.writer.close(chance.sample(("one", "app.one", "two", "closed.one"), chance.randint(0, 2)))
    if chance.random() < 1 / 4:
        world.writer.forward(frozenset(chance.sample(SERVICES[:2], chance.randint(0, 2))))
    world.responder.table = world.writer.publish()


@pytest.mark.parametrize("seed", range(10))
def test_every_query_gets_what_decide_says_whatever_was_asked_or_changed_before(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick_forwards, "EVERY", 1)
    chance = random.Random(seed)  # noqa: S311  # the same steps in every run
    world = World()
    for _ in range(200):
        change(world, chance)
        for _ in range(4):
            world.responder.zones = cast("ZoneService", world.zones) if chance.random() < 1 / 4 else None
            world.ask([a_query(chance) for _ in range(chance.choice((1, 20, 60)))])
        if chance.random() < 1 / 4:
            world.ask([a_query(chance) for _ in range(5)], stale=True)
