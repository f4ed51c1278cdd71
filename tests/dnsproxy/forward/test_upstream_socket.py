"""One socket to an upstream: which flight waits under which ID, what a refusal costs, and what is reported."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest

from dnsproxy.datagrams.connected import Batches
from dnsproxy.datagrams.port import BATCH
from dnsproxy.dns.wire import random_ids
from dnsproxy.forward.flight import Flight, Health
from dnsproxy.forward.upstream_socket import UpstreamSocket
from sidecar.loop.poller import BROKEN, READABLE, Poller
from sidecar.sockets.listeners import bound_endpoint, listen_udp
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.forward.flights import Noted, flight, large_flight
from tests.kit import messages, upstream_replies
from tests.kit.faulty_upstream import refusing_upstream

LARGEST = {socket.AF_INET: 65_507, socket.AF_INET6: 65_527}


class World:
    """A socket to a plain socket, which is the server, and its recorded events."""

    def __init__(self, poller: Poller, at: Endpoint) -> None:
        self.poller = poller
        self.told = Noted()
        batches = Batches()
        family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_DGRAM)
        self.sock.setblocking(False)
        self.sock.connect((at.host, at.port))
        self.asking = UpstreamSocket(
            self.sock, endpoint=at, ids=random_ids(), health=Health(), batches=batches, receiver=self.told
        )
        poller.add(self.sock.fileno(), self.asking.on_event, edge=False)

    def send(self, *flights: Flight) -> list[Flight]:
        """Post and flush; returns the refused flights."""
        for one in flights:
            self.asking.post(one)
        return self.asking.flush()

    def close(self) -> None:
        self.poller.remove(self.sock.fileno())
        self.sock.close()


class Served(World):
    """A world with a server."""

    def __init__(self, poller: Poller, server: socket.socket) -> None:
        super().__init__(poller, bound_endpoint(server))
        self.server = server

    def asked(self, count: int) -> list[bytes]:
        """The next queries that reached the server."""
        return [self.server.recv(65_535) for _ in range(count)]

    def reply(self, *replies: bytes) -> None:
        for reply in replies:
            self.server.sendto(reply, self.sock.getsockname())


@pytest.fixture(params=[pytest.param("127.0.0.1", id="IPv4"), pytest.param("::1", id="IPv6")])
def world(request: pytest.FixtureRequest) -> Iterator[Served]:
    with Poller() as poller, listen_udp(Endpoint(request.param, 0), flag="test") as server:
        server.settimeout(30)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        made = Served(poller, server)
        yield made
        made.close()


@pytest.fixture(params=[pytest.param("127.0.0.1", id="IPv4"), pytest.param("::1", id="IPv6")])
def refused(request: pytest.FixtureRequest) -> Iterator[World]:
    """A world whose server refuses every datagram."""
    with Poller() as poller, refusing_upstream(request.param) as endpoint:
        made = World(poller, endpoint)
        yield made
        made.close()


def test_ids_are_two_octets_and_evenly_spread() -> None:
    """Chi-square over the 256 values of each octet: 99.9 % of fair sources stay below 330."""
    ids = list(islice(random_ids(), 100_000))
    assert {len(message_id) for message_id in ids} == {2}
    for octet in range(2):
        counts = Counter(message_id[octet] for message_id in ids)
        expected = len(ids) / 256
        assert sum((counts[value] - expected) ** 2 / expected for value in range(256)) < 400


def test_no_two_runs_give_the_same_ids() -> None:
    assert list(islice(random_ids(), 100)) != list(islice(random_ids(), 100))


# --- what leaves -----------------------------------------------------------------------------------------------------


def test_a_query_leaves_with_the_flush_and_unchanged_but_for_its_id(world: Served) -> None:
    waiting = flight()
    world.asking.post(waiting)
    world.server.setblocking(False)
    with pytest.raises(BlockingIOError):
        world.asked(1)
    assert world.asking.flush() == []
    (asked,) = world.asked(1)
    assert asked[2:] == waiting.query.message[2:]
    assert world.asking.waiting == {asked[:2]: waiting}
    assert waiting.attempts == ((world.asking, asked[:2]),)


def test_a_flush_with_nothing_posted_sends_nothing(world: Served) -> None:
    assert world.asking.flush() == []
    world.send(flight())
    assert world.asking.flush() == []
    assert len(world.asked(1)) == 1


@pytest.mark.parametrize("count", [2, BATCH, BATCH + 1, 2 * BATCH + 5])
def test_what_was_posted_leaves_in_order_each_under_an_id_of_its_own(world: Served, count: int) -> None:
    flights = [flight(messages.query(f"h{number}.example.net")) for number in range(count)]
    assert world.send(*flights) == []
    asked = world.asked(count)
    assert [message[2:] for message in asked] == [one.key for one in flights]
    assert len({message[:2] for message in asked}) == count
    assert [world.asking.waiting[message[:2]] for message in asked] == flights
    assert world.asking.uses == count


def test_an_id_that_still_waits_is_not_used_again(world: Served) -> None:
    world.asking._ids = iter([b"aa", b"aa", b"aa", b"bb"])
    world.send(flight(), flight())
    assert [asked[:2] for asked in world.asked(2)] == [b"aa", b"bb"]
    assert len(world.asking.waiting) == 2


def test_a_flight_that_leaves_twice_from_one_port_waits_under_two_ids(world: Served) -> None:
    again = flight()
    world.send(again)
    world.send(again)
    first, second = world.asked(2)
    assert first[:2] != second[:2]
    assert world.asking.waiting == {first[:2]: again, second[:2]: again}
    again.forget()
    assert not world.asking.waiting


@pytest.mark.parametrize("places", [[0], [4], [9], [0, 1], [3, 8, 9]], ids=str)
def test_a_datagram_that_the_kernel_refuses_costs_only_its_own_flight(world: Served, places: list[int]) -> None:
    flights = [large_flight() if number in places else flight() for number in range(10)]
    assert world.send(*flights) == [flights[number] for number in places]
    left = [one for number, one in enumerate(flights) if number not in places]
    assert [world.asking.waiting[message[:2]] for message in world.asked(len(left))] == left
    assert len(world.asking.waiting) == len(left)


def test_a_batch_that_the_kernel_refuses_whole_is_given_back_whole(world: Served) -> None:
    flights = [large_flight() for _ in range(3)]
    assert world.send(*flights) == flights
    assert not world.asking.waiting


def test_a_lone_datagram_that_the_kernel_refuses_waits_for_nothing(world: Served) -> None:
    alone = large_flight()
    assert world.send(alone) == [alone]
    assert not world.asking.waiting
    assert not alone.waits()


@pytest.mark.parametrize("count", [1, 2, 10])
def test_the_refusal_of_an_earlier_datagram_does_not_keep_the_next_from_leaving(refused: World, count: int) -> None:
    """The kernel reports it to the next call, whatever that call sends (udp(7))."""
    assert refused.send(flight()) == []
    for _ in range(3):
        assert refused.send(*[flight() for _ in range(count)]) == []
    assert len(refused.asking.waiting) == 1 + 3 * count


# --- what comes ------------------------------------------------------------------------------------------------------


def test_a_reply_is_handed_over_and_a_stranger_is_not_heard(world: Served) -> None:
    world.send(flight())
    (asked,) = world.asked(1)
    with socket.socket(world.server.family, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"forged", world.sock.getsockname())
    world.reply(upstream_replies.right(asked))
    world.poller.dispatch()
    world.poller.dispatch()
    assert world.told.replies == [upstream_replies.right(asked)]
    assert not world.told.refused


def test_the_largest_datagram_arrives_whole(world: Served) -> None:
    world.send(flight())
    (asked,) = world.asked(1)
    largest = upstream_replies.sized(asked, LARGEST[world.server.family])
    world.reply(largest)
    world.poller.dispatch()
    assert world.told.replies == [largest]


def test_an_empty_datagram_is_one_that_came(world: Served) -> None:
    world.reply(b"", b"a", b"")
    world.poller.dispatch()
    assert world.told.replies == [b"", b"a", b""]


def test_replies_that_wait_come_in_batches_so_that_other_sockets_get_their_turn(world: Served) -> None:
    world.reply(*[b"%d" % number for number in range(BATCH + 3)])
    world.poller.dispatch()
    assert world.told.batches == [BATCH]
    world.poller.dispatch()
    assert world.told.batches == [BATCH, 3]
    assert world.told.replies == [b"%d" % number for number in range(BATCH + 3)]


def test_an_event_without_a_datagram_means_nothing(world: Served) -> None:
    world.asking.on_event(READABLE)
    world.asking.on_event(READABLE | BROKEN)
    assert (world.told.replies, world.told.refused) == ([], [])


def test_a_refusal_is_reported_and_the_socket_goes_on(refused: World) -> None:
    for turn in range(1, 4):
        refused.send(flight())
        refused.poller.dispatch()
        assert refused.told.refused == [refused.asking] * turn
    refused.poller.dispatch()
    assert len(refused.told.refused) == 3


def test_a_queued_reply_is_reported_before_a_refusal(world: Served) -> None:
    """A server that answers and then ends must not lose its last answers."""
    world.send(flight())
    (asked,) = world.asked(1)
    world.reply(upstream_replies.right(asked))
    world.server.close()
    world.send(flight())
    world.poller.dispatch()
    world.poller.dispatch()
    assert world.told.replies == [upstream_replies.right(asked)]
    assert world.told.refused == [world.asking]
