"""The books of a forwarder after each of many random steps: what waits, what was posted, and what has ended."""

from __future__ import annotations

import contextlib
import random
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.answers.counters import Counters
from dnsproxy.answers.decide import Forward
from dnsproxy.datagrams.port import Sender
from dnsproxy.forward import source_ports
from dnsproxy.forward.deadlines import TICK
from dnsproxy.forward.flight import Flight
from dnsproxy.forward.forwarder import Forwarder
from dnsproxy.forward.settings import ForwardSettings, TcpEndpoint
from dnsproxy.tap.hub import Tap
from sidecar.loop.poller import Poller
from sidecar.sockets.listeners import bound_endpoint, listen_udp
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.forward.flights import NotedPort
from tests.kit import upstream_replies as upstream
from tests.kit.messages import opt_record, query, scanned


def _question(message: bytes) -> bytes:
    return message[12 : message.index(0, 12) + 5].lower()


class Books:
    """A forwarder to plain sockets, and what is known of each client."""

    def __init__(self, poller: Poller, chance: random.Random, settings: ForwardSettings) -> None:
        self.chance = chance
        self.settings = settings
        self.servers: list[socket.socket] = []
        self.asked: list[tuple[socket.socket, bytes, tuple[str, int]]] = []
        """Queries without a reply yet, and some that have one."""
        self.poller = poller
        self.counters = Counters()
        self.ports = [NotedPort(), NotedPort()]
        self.owed: Counter[tuple[int, Sender, bytes]] = Counter()
        """Replies that clients have not got."""
        self.live: dict[int, Flight] = {}
        self.ended, self.seconds = 0, 0.0
        self.forwarder = Forwarder(settings=self.settings, poller=poller, counters=self.counters, tap=Tap())

        ask_first = self.forwarder._attempts.ask_first

        def ask(flight: Flight) -> None:
            self.live[id(flight)] = flight
            ask_first(flight)

        self.forwarder._attempts.ask_first = ask  # type: ignore[method-assign]

    def start_batch(self) -> None:
        for _ in range(self.chance.choice((1, 1, 5, 40))):
            name = f"{self.chance.choice('abcdefghijklmnop')}{self.chance.randint(0, 3)}.Example.net"
            additional = (opt_record(1232),) if self.chance.random() < 0.3 else ()
            message = query(name, ident=self.chance.randint(0, 3), additional=additional)
            if self.chance.random() < 0.03:
                message = query("", 2, ident=1)
            index = self.chance.randrange(2)
            host = f"192.0.2.{self.chance.randint(1, 3)}"
            sender: Sender = ((host, 5353), (), host)
            recipient = (self.ports[index], sender, message[:2])
            flight = self.flights.get(message[2:])
            again = flight is not None and flight.has(recipient)
            query_ = scanned(message)
            forward = Forward(query_, shields=query_.name[1:2] in b"ab")
            reply = self.forwarder.start(forward, self.ports[index], sender)
            if reply is None and not again:
                self.owed[index, sender, message[:2] + _question(message)] += 1
        self.forwarder.flush()

    @property
    def flights(self) -> dict[bytes, Flight]:
        return self.forwarder._completion.flights

    def serve(self) -> None:
        for server in self.servers:
            with contextlib.suppress(BlockingIOError):
                while True:
                    message, source = server.recvfrom(4096)
                    self.asked.append((server, message, source))
        self.chance.shuffle(self.asked)
        for _ in range(min(len(self.asked), self.chance.choice((1, 10, 50)))):
            server, message, source = self.asked.pop()
            if server.fileno() < 0:
                continue
            kind = self.chance.randrange(12)
            replies = {
                0: [],
                1: [upstream.header_only(message, self.chance.choice((1, 2, 4, 5)))],
                2: [upstream.sized(message, 513)],
                3: [upstream.right(message[:12] + message[12:].replace(b"E", b"e"))],
                4: [upstream.right(message[:12] + b"\1z" + message[12:])],
                5: [upstream.right(message), upstream.right(message)],
                6: [upstream.right(message, rcode=3, answers=0)],
                7: [message, b"", message[:2]],
                8: [bytes(2) + upstream.right(message)[2:]],
            }.get(kind, [upstream.right(message)])
            for reply in replies:
                with contextlib.suppress(OSError):
                    server.sendto(reply, source)
            if kind == 8 or self.chance.random() < 0.1:
                self.asked.insert(0, (server, message, source))
        if self.chance.random() < 0.7:
            while self.poller.dispatch():
                self.forwarder.flush()

    def replace(self) -> None:
        while len(self.servers) > 4:
            self.servers.pop(0).close()
        server = listen_udp(Endpoint("127.0.0.1", 0), flag="test")
        server.setblocking(False)
        self.servers.append(server)
        if self.chance.random() < 0.3 and len(self.servers) > 1:
            # It refuses from now on.
            self.servers.pop(0).close()
        endpoints = [bound_endpoint(one) for one in self.servers]
        endpoints += [Endpoint("127.0.0.1", 9), Endpoint("127.0.0.1", 10)][: self.chance.randint(0, 2)]
        if self.chance.random() < 0.3:
            endpoints.append(TcpEndpoint("127.0.0.1", 9))
        self.chance.shuffle(endpoints)
        chosen = endpoints[: self.chance.randint(0 if self.chance.random() < 0.1 else 1, 5)]
        self.settings = replace(self.settings, upstreams=tuple(chosen), rotate=self.chance.random() < 0.5)
        self.forwarder.upstreams.replace(self.settings)

    def check(self) -> None:
        forwarder, now = self.forwarder, trio.current_time()
        for identity, one in list(self.live.items()):
            if one.done:
                self.ended += 1
                self.seconds += now - one.started
                del self.live[identity]
        assert list(self.live.values()) == list(self.flights.values())
        assert sum(self.counters.forward_seconds.counts) == self.ended
        assert self.counters.forward_seconds.total == pytest.approx(self.seconds)
        assert not forwarder._completion.now
        assert not forwarder._completion._started
        assert not forwarder._completion._answered
        assert not forwarder._attempts._posted
        for used in forwarder.upstreams.used + forwarder.upstreams._replaced:
            assert used.ports.posting is None
            for sock in used.ports._sockets + used.ports._retired:
                assert not sock._outbox
                assert all(flight.key in self.flights for flight in sock.waiting.values())
        assert len(forwarder) == sum(flight.waiters for flight in self.flights.values())
        for index, port in enumerate(self.ports):
            for message, sender in port.posted:
                # In lower case: a server may restore the case of the question.
                key = index, sender, message[:2] + _question(message)
                assert message[2] & 0x80
                assert self.owed[key] > 0, "a reply without a waiting client"
                self.owed[key] -= 1
            port.posted.clear()


@contextlib.contextmanager
def books(chance: random.Random, settings: ForwardSettings) -> Iterator[Books]:
    with Poller() as poller:
        made = Books(poller, chance, settings)
        with made.forwarder:
            try:
                yield made
            finally:
                for server in made.servers:
                    server.close()


@pytest.mark.parametrize("seed", range(12))
async def test_the_books_are_right_after_each_step(
    seed: int, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_ports, "_USES", 64)
    chance = random.Random(seed)  # noqa: S311  # the same steps in every run
    settings = ForwardSettings(
        (), detect_loops=False, outstanding=200, per_client=90, source_ports=chance.choice((2, 16, 4096))
    )
    with books(chance, settings) as made:
        async with trio.open_nursery() as nursery:
            made.forwarder._attempts.nursery = nursery
            nursery.start_soon(made.forwarder.upstreams.run, made.forwarder.loops)
            await trio.lowlevel.checkpoint()
            made.replace()
            for _ in range(400):
                step = chance.randrange(20)
                if step < 8:
                    made.start_batch()
                elif step < 16:
                    made.serve()
                elif step == 16:
                    made.replace()
                else:
                    mock_clock.jump(chance.choice((TICK, 0.2, 0.6)))
                    await made.forwarder._sweep(trio.current_time())
                made.check()
                for _ in range(3):
                    await trio.lowlevel.checkpoint()
                made.check()
            for _ in range(60):
                mock_clock.jump(TICK)
                await made.forwarder._sweep(trio.current_time())
                while made.poller.dispatch():
                    made.forwarder.flush()
                made.check()
            assert not made.flights
            assert not any(made.owed.values())
            assert made.ended > 300
            assert not sum(one.ports.waiting for one in made.forwarder.upstreams.used)
            nursery.cancel_scope.cancel()


async def test_an_outbox_leaves_also_after_a_query_that_was_not_posted() -> None:
    chance = random.Random(1)  # noqa: S311  # as above
    with books(chance, ForwardSettings((), detect_loops=False)) as made:
        made.settings = replace(made.settings, upstreams=(Endpoint("127.0.0.1", 9),))
        made.forwarder.upstreams.replace(made.settings)
        ports = made.forwarder.upstreams.used[0].ports
        ids, ports._ids = ports._ids, iter(())
        sender: Sender = (("192.0.2.1", 5353), (), "192.0.2.1")
        with pytest.raises(StopIteration):
            made.forwarder.start(Forward(scanned(query("a.example.net")), shields=False), made.ports[0], sender)
        ports._ids = ids
        made.forwarder.flush()
        assert ports.posting is None
        made.forwarder.start(Forward(scanned(query("b.example.net")), shields=False), made.ports[0], sender)
        made.forwarder.flush()
        assert ports.posting is None
