"""The contract of a datagram port, tested on every port: who gets which reply, from where, whatever fails."""

from __future__ import annotations

import itertools
import select
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsproxy.datagrams import port as port_module
from dnsproxy.datagrams.batch import BatchPort
from dnsproxy.datagrams.open import open_port
from dnsproxy.datagrams.port import BATCH, ID, MESSAGE, DatagramPort, Sender, keep_arrival_times, refuse_more
from sidecar.sockets.listeners import listen_udp
from sidecar.values.endpoints import Endpoint
from tests.kit.single_port import SinglePort

Port = Callable[[socket.socket], DatagramPort]

on_every_port = pytest.mark.parametrize(
    "make_port", [pytest.param(SinglePort, id="single"), pytest.param(BatchPort, id="batch")]
)
on_both_families = pytest.mark.parametrize(
    "host", [pytest.param("127.0.0.1", id="IPv4"), pytest.param("::1", id="IPv6")]
)
TOO_LARGE = bytes(65_536)
"""Too large for a datagram: the kernel refuses it with EMSGSIZE."""


class World:
    """A port and its clients, closed at the end."""

    def __init__(self, make_port: Port, host: str) -> None:
        self._stack = ExitStack()
        self._ids = itertools.count(0xFF00)
        self._socket = self._stack.enter_context(listen_udp(Endpoint(host, 0), flag="test"))
        self.number = self._socket.getsockname()[1]
        self.host = host
        self.port = make_port(self._socket)

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def client(self, to: str | None = None, *, at: str | None = None) -> Client:
        """A client that asks one of our addresses; not connected, so that it sees the source of the reply."""
        host = to or self.host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = self._stack.enter_context(socket.socket(family, socket.SOCK_DGRAM))
        sock.settimeout(30)
        if at is not None:
            sock.bind((at, 0))
        return Client(sock, (host, self.number), self._ids)

    def receive(self, count: int) -> list[bytes]:
        """The bodies of this many datagrams; checks the batch of each call."""
        received: list[bytes] = []
        while len(received) < count:
            assert select.select([self._socket], [], [], 5)[0], f"{len(received)} of {count} came"
            batch = self.port.receive()
            assert len(batch) <= BATCH
            received += batch
        return received


class Client:
    """Sends a query with an ID that no other query has."""

    def __init__(self, sock: socket.socket, to: tuple[str, int], ids: Iterator[int]) -> None:
        self._socket = sock
        self._to = to
        self._ids = ids
        self.asked: list[bytes] = []
        self.answered: list[bytes] = []
        """IDs, in the order in which they were sent and received."""

    def send(self, body: bytes) -> None:
        self.asked.append(next(self._ids).to_bytes(3, "big")[-ID:])
        self.send_octets(self.asked[-1] + body)

    def send_octets(self, octets: bytes) -> None:
        self._socket.sendto(octets, self._to)

    def receive(self) -> tuple[bytes, str]:
        """The body of a reply, and its source host."""
        message, source = self._socket.recvfrom(65_535)
        assert source[1] == self._to[1]
        assert message[:ID] in self.asked
        self.answered.append(message[:ID])
        return message[ID:], source[0]

    @property
    def number(self) -> int:
        """The port that it sends from."""
        return int(self._socket.getsockname()[1])

    def has_nothing(self) -> bool:
        self._socket.setblocking(False)
        try:
            self._socket.recvfrom(65_535)
        except BlockingIOError:
            return True
        finally:
            self._socket.settimeout(30)
        return False


@pytest.fixture
def world(make_port: Port, host: str) -> Iterator[World]:
    with World(make_port, host) as made:
        yield made


@on_every_port
@on_both_families
class TestBatches:
    def test_nothing_waits_and_nothing_is_given(self, world: World) -> None:
        assert world.port.receive() == []
        world.port.send([])

    def test_each_sender_gets_its_own_reply(self, world: World) -> None:
        clients = [world.client() for _ in range(10)]
        for number, client in enumerate(clients):
            client.send(b"query %d" % number)
        assert world.receive(10) == [b"query %d" % number for number in range(10)]
        world.port.send([b"reply %d" % number for number in range(10)])
        assert [client.receive()[0] for client in clients] == [b"reply %d" % number for number in range(10)]

    def test_more_than_a_batch_comes_in_batches_and_in_order(self, world: World) -> None:
        client = world.client()
        for number in range(BATCH * 2 + 5):
            client.send(b"%d" % number)
        sizes = []
        for _ in range(3):
            bodies = world.port.receive()
            sizes.append(len(bodies))
            world.port.send(bodies)
        assert sizes == [BATCH, BATCH, 5]
        assert [int(client.receive()[0]) for _ in range(BATCH * 2 + 5)] == list(range(BATCH * 2 + 5))
        assert client.answered == client.asked

    def test_no_more_than_asked_for_is_taken_and_the_rest_stays(self, world: World) -> None:
        client = world.client()
        for number in range(5):
            client.send(b"%d" % number)
        assert [world.port.receive(1), world.port.receive(2)] == [[b"0"], [b"1", b"2"]]
        world.port.send([b"1", b"2"])
        assert world.port.receive() == [b"3", b"4"]

    def test_the_age_of_a_datagram_counts_from_its_arrival(self, world: World) -> None:
        assert world.port.age() == 0.0
        keep_arrival_times(world.port.socket)
        client = world.client()
        sent = []
        for _ in range(3):
            sent.append(time.time())
            client.send(b"query")
        for earliest, latest in pairwise([*sent, time.time()]):
            assert world.port.receive(1) == [b"query"]
            # The age counts to a moment between these two, which may be far apart on a busy machine.
            before, age, after = time.time(), world.port.age(), time.time()
            assert before - latest - 0.001 <= age <= after - earliest + 0.001

    def test_a_kernel_that_keeps_no_times_knows_no_age(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(port_module, "_SIOCGSTAMPNS", 0xFFFF)
        keep_arrival_times(world.port.socket)
        world.client().send(b"query")
        assert (world.receive(1), world.port.age()) == ([b"query"], 0.0)

    def test_a_message_of_the_batch_can_be_had_whole(self, world: World) -> None:
        client = world.client()
        for bodies in ([b"a long query", b"b", b""], [b"c"]):
            for body in bodies:
                client.send(body)
            assert world.receive(len(bodies)) == bodies
            asked = zip(client.asked[-len(bodies) :], bodies, strict=True)
            assert [world.port.message(position) for position in range(len(bodies))] == [
                message_id + body for message_id, body in asked
            ]

    @pytest.mark.parametrize(
        "answered",
        [
            pytest.param([], id="none"),
            pytest.param([0], id="the first"),
            pytest.param([9], id="the last"),
            pytest.param([1, 2, 5, 8], id="some"),
            pytest.param(range(10), id="all"),
        ],
    )
    def test_a_gap_in_the_replies_answers_nothing(self, world: World, answered: Iterable[int]) -> None:
        clients = [world.client() for _ in range(10)]
        for client in clients:
            client.send(b"query")
        world.receive(10)
        world.port.send([b"reply %d" % number if number in answered else None for number in range(10)])
        for number, client in enumerate(clients):
            if number in answered:
                assert client.receive()[0] == b"reply %d" % number
            else:
                assert client.has_nothing()

    def test_gaps_of_one_batch_do_not_move_the_replies_of_the_next(self, world: World) -> None:
        first, second = world.client(), world.client()
        for replies in ([None, b"b"], [b"a", b"b"], [b"a", None], [b"a", b"b"]):
            first.send(b"1")
            second.send(b"2")
            world.receive(2)
            world.port.send(replies)
            assert [client.receive()[0] for client, reply in zip((first, second), replies, strict=True) if reply] == [
                reply for reply in replies if reply
            ]
        assert first.has_nothing()
        assert second.has_nothing()
        assert first.answered == first.asked[1:]
        assert second.answered == [second.asked[turn] for turn in (0, 1, 3)]


@on_every_port
@on_both_families
class TestSizes:
    def test_an_empty_body_is_given_and_can_be_answered(self, world: World) -> None:
        client = world.client()
        client.send(b"")
        client.send(b"a")
        assert world.receive(2) == [b"", b"a"]
        world.port.send([b"", b"b"])
        assert [client.receive()[0], client.receive()[0]] == [b"", b"b"]
        assert world.port.send_errors == 0

    def test_a_datagram_without_a_whole_id_has_an_empty_body(self, world: World) -> None:
        client = world.client()
        client.send(b"a long query")
        world.receive(1)
        for octets in (b"", b"a"):
            client.send_octets(octets)
        client.send(b"query")
        assert world.receive(3) == [b"", b"", b"query"]
        assert [world.port.message(position) for position in range(2)] == [b"", b"a"]
        world.port.send([None, None, b"reply"])
        assert client.receive()[0] == b"reply"
        assert client.answered == client.asked[1:]

    @pytest.mark.parametrize("size", [MESSAGE - 1, MESSAGE, MESSAGE + 1, 65_000])
    def test_what_is_longer_than_a_message_arrives_cut(self, world: World, size: int) -> None:
        client = world.client()
        client.send(b"a" * (size - ID))
        client.send(b"next")
        assert world.receive(2) == [b"a" * (min(size, MESSAGE) - ID), b"next"]
        assert len(world.port.message(0)) == min(size, MESSAGE)

    @pytest.mark.parametrize("size", [MESSAGE, MESSAGE + 1, 60_000])
    def test_a_reply_may_be_longer_than_a_query(self, world: World, size: int) -> None:
        client, other = world.client(), world.client()
        client.send(b"query")
        other.send(b"query")
        world.receive(2)
        world.port.send([b"a" * size, b"short"])
        assert client.receive()[0] == b"a" * size
        assert other.receive()[0] == b"short"

    def test_a_batch_of_the_longest_replies_is_sent(self, world: World) -> None:
        clients = [world.client() for _ in range(8)]
        for client in clients:
            client.send(b"query")
        world.receive(8)
        world.port.send([b"%d" % number * 60_000 for number in range(8)])
        assert [client.receive()[0] for client in clients] == [b"%d" % number * 60_000 for number in range(8)]


@on_every_port
@on_both_families
class TestLateReplies:
    def test_a_reply_reaches_its_sender_after_the_next_batch(self, world: World) -> None:
        first, second = world.client(), world.client()
        first.send(b"slow")
        world.receive(1)
        sender = world.port.sender(0)
        world.port.send([None])
        second.send(b"fast")
        world.receive(1)
        world.port.send([b"fast reply"])
        world.port.post(first.asked[0] + b"slow reply", sender)
        world.port.flush()
        assert (first.receive()[0], second.receive()[0]) == (b"slow reply", b"fast reply")

    def test_senders_of_a_whole_batch_are_kept_apart(self, world: World) -> None:
        clients = [world.client() for _ in range(BATCH)]
        for client in clients:
            client.send(b"query")
        world.receive(BATCH)
        senders = [world.port.sender(position) for position in range(BATCH)]
        world.port.send([None] * BATCH)
        for position in reversed(range(BATCH)):
            world.port.post(clients[position].asked[0] + b"%d" % position, senders[position])
        world.port.flush()
        assert [int(client.receive()[0]) for client in clients] == list(range(BATCH))

    def test_a_long_late_reply_leaves_no_trace_in_a_short_one(self, world: World) -> None:
        client = world.client()
        client.send(b"query")
        world.receive(1)
        sender = world.port.sender(0)
        world.port.post(client.asked[0] + b"a" * 5000, sender)
        world.port.flush()
        world.port.post(client.asked[0] + b"b", sender)
        world.port.flush()
        assert [client.receive()[0], client.receive()[0]] == [b"a" * 5000, b"b"]

    def test_a_late_reply_that_is_refused_is_counted(self, world: World) -> None:
        client = world.client()
        client.send(b"query")
        world.receive(1)
        sender = world.port.sender(0)
        world.port.post(bytes(65_530), sender)
        world.port.flush()
        assert world.port.send_errors == 1
        world.port.post(client.asked[0] + b"reply", sender)
        world.port.flush()
        assert client.receive()[0] == b"reply"

    def test_what_was_posted_leaves_with_the_flush_and_once(self, world: World) -> None:
        client = world.client()
        client.send(b"query")
        world.receive(1)
        sender = world.port.sender(0)
        world.port.flush()
        assert client.has_nothing()
        for number in range(2 * BATCH + 5):
            world.port.post(client.asked[0] + b"%d" % number, sender)
        world.port.flush()
        world.port.flush()
        assert [int(client.receive()[0]) for _ in range(2 * BATCH + 5)] == list(range(2 * BATCH + 5))
        assert client.has_nothing()

    def test_a_batch_that_is_answered_does_not_touch_what_was_posted(self, world: World) -> None:
        first, second = world.client(), world.client()
        first.send(b"slow")
        world.receive(1)
        world.port.post(first.asked[0] + b"slow reply", world.port.sender(0))
        second.send(b"fast")
        world.receive(1)
        world.port.send([b"fast reply"])
        world.port.flush()
        assert (first.receive()[0], second.receive()[0]) == (b"slow reply", b"fast reply")


@on_every_port
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::"])
class TestSenders:
    def test_a_sender_is_known_by_the_port_that_it_sent_from(self, world: World) -> None:
        clients = [world.client("::1" if world.host == "::" else None) for _ in range(5)]
        for client in clients:
            client.send(b"query")
        world.receive(5)
        found = [world.port.source_port(world.port.sender(position)) for position in range(5)]
        assert found == [client.number for client in clients]

    def test_senders_at_one_address_have_one_client_key_and_differ_otherwise(self, world: World) -> None:
        clients = [world.client("::1" if world.host == "::" else None) for _ in range(3)]
        for client in (*clients, clients[0]):
            client.send(b"query")
        world.receive(4)
        senders = [world.port.sender(position) for position in range(4)]
        assert len({client for _, _, client in senders}) == 1
        assert senders[0] == senders[3]
        assert len(set(senders)) == 3, "the clients that wait for one reply are kept in a dict"


@on_every_port
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_senders_at_different_addresses_have_different_client_keys(make_port: Port, host: str) -> None:
    with World(make_port, host) as world:
        for source in ("127.0.0.1", "127.0.0.2", "127.0.0.1"):
            world.client("127.0.0.1", at=source).send(b"query")
        world.receive(3)
        one, other, again = (world.port.sender(position)[2] for position in range(3))
        assert one == again != other


@on_every_port
@pytest.mark.parametrize(
    ("host", "asked", "source"),
    [
        pytest.param("0.0.0.0", "127.0.0.1", "127.0.0.1", id="IPv4"),
        pytest.param("0.0.0.0", "127.0.0.2", "127.0.0.2", id="IPv4, another address"),
        pytest.param("::", "::1", "::1", id="dual stack, IPv6"),
        pytest.param("::", "127.0.0.1", "127.0.0.1", id="dual stack, IPv4"),
        pytest.param("::", "127.0.0.2", "127.0.0.2", id="dual stack, IPv4, another address"),
    ],
)
class TestWildcardAddress:
    def test_a_reply_leaves_from_the_address_that_was_asked(self, world: World, asked: str, source: str) -> None:
        client = world.client(asked)
        client.send(b"query")
        world.receive(1)
        world.port.send([b"reply"])
        assert client.receive() == (b"reply", source)

    def test_a_late_reply_does_so_too(self, world: World, asked: str, source: str) -> None:
        client, other = world.client(asked), world.client("127.0.0.3")
        client.send(b"query")
        world.receive(1)
        sender = world.port.sender(0)
        other.send(b"query")
        world.receive(1)
        world.port.send([b"other"])
        world.port.post(client.asked[0] + b"reply", sender)
        world.port.flush()
        assert client.receive() == (b"reply", source)
        assert other.receive() == (b"other", "127.0.0.3")

    def test_replies_of_one_batch_leave_from_different_addresses(self, world: World, asked: str, source: str) -> None:
        clients = [world.client(asked), world.client("127.0.0.4"), world.client(asked), world.client("127.0.0.5")]
        for client in clients:
            client.send(b"query")
        world.receive(4)
        world.port.send([b"1", None, b"3", b"4"])
        assert [client.receive() for client in (clients[0], *clients[2:])] == [
            (b"1", source),
            (b"3", source),
            (b"4", "127.0.0.5"),
        ]


@on_every_port
class TestRefusals:
    @pytest.mark.parametrize("host", ["127.0.0.1"])
    @pytest.mark.parametrize("refused", [[0], [4], [9], [0, 1], [3, 4, 8, 9], list(range(10))], ids=str)
    def test_a_reply_that_the_kernel_refuses_does_not_stop_the_others(self, world: World, refused: list[int]) -> None:
        clients = [world.client() for _ in range(10)]
        for client in clients:
            client.send(b"query")
        world.receive(10)
        world.port.send([TOO_LARGE if number in refused else b"%d" % number for number in range(10)])
        assert world.port.send_errors == len(refused)
        for number, client in enumerate(clients):
            assert client.has_nothing() if number in refused else client.receive()[0] == b"%d" % number

    @pytest.mark.parametrize("host", ["127.0.0.1"])
    def test_a_client_that_has_left_disturbs_no_other(self, world: World) -> None:
        client, gone = world.client(), world.client()
        for _ in range(3):
            gone.send(b"query")
            client.send(b"query")
        world.receive(6)
        gone._socket.close()
        world.port.send([b"reply"] * 6)
        client.send(b"again")
        assert world.receive(1) == [b"again"]
        world.port.send([b"last"])
        assert [client.receive()[0] for _ in range(4)] == [b"reply"] * 3 + [b"last"]

    def test_a_destination_that_is_gone_is_counted(self, make_port: Port) -> None:
        # Over a Unix socket the kernel reports a missing receiver at once, as a router does for UDP.
        with unix_socket() as listening, unix_socket() as client:
            port = make_port(listening)
            with unix_socket() as gone:
                for sock in (gone, client, gone, gone, client):
                    sock.sendto(b"query", listening.getsockname())
                assert len(port.receive()) == 5
            port.send([b"1", b"2", b"3", b"4", b"5"])
            assert port.send_errors == 3
            assert [client.recv(10), client.recv(10)] == [b"qu2", b"qu5"]

    def test_a_full_buffer_loses_replies_counts_them_and_recovers(self, make_port: Port) -> None:
        with unix_socket() as listening, unix_socket() as client:
            port = make_port(listening)
            client.setblocking(False)
            asked = 0
            for _ in range(200):
                try:
                    client.sendto(b"id%d" % asked, listening.getsockname())
                    asked += 1
                except BlockingIOError:
                    break
            sent = 0
            while bodies := port.receive():
                # Three replies each: more than fit the queue of a client that does not read.
                for _ in range(3):
                    port.send(bodies)
                    sent += len(bodies)
            for _ in range(2000):
                if port.send_errors:
                    break
                port.send([])
                client.sendto(b"id and more", listening.getsockname())
                port.send(port.receive())
                sent += 1
            assert port.send_errors > 0
            taken = drain(client)
            assert len(taken) + port.send_errors == sent
            client.sendto(b"id again", listening.getsockname())
            port.send(port.receive())
            assert drain(client) == [b"id again"]


def unix_socket() -> socket.socket:
    """A datagram socket with a name from the kernel."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind("")
    sock.setblocking(False)
    return sock


def drain(sock: socket.socket) -> list[bytes]:
    taken = []
    while True:
        try:
            taken.append(sock.recv(100))
        except BlockingIOError:
            return taken


@on_every_port
@settings(max_examples=40, deadline=None)
@given(
    batches=st.lists(
        st.lists(st.sampled_from(["reply", "none", "refused", "late"]), min_size=1, max_size=BATCH), max_size=6
    )
)
def test_whatever_the_pattern_each_client_gets_its_own_reply(make_port: Port, batches: list[list[str]]) -> None:
    """Gaps and refusals move headers inside the batch port, without a visible effect."""
    with World(make_port, "0.0.0.0") as world:
        clients = [world.client(f"127.0.0.{number + 1}") for number in range(max(map(len, batches), default=0))]
        refused = 0
        for turn, batch in enumerate(batches):
            asking = clients[: len(batch)]
            for client in asking:
                client.send(b"query")
            world.receive(len(batch))
            expected = [b"%d/%d" % (turn, number) for number in range(len(batch))]
            late: list[tuple[bytes, Sender]] = []
            replies: list[bytes | None] = []
            for position, outcome in enumerate(batch):
                replies.append({"reply": expected[position], "refused": TOO_LARGE}.get(outcome))
                if outcome == "late":
                    late.append((world.port.message(position)[:ID] + expected[position], world.port.sender(position)))
            world.port.send(replies)
            for reply, sender in late:
                world.port.post(reply, sender)
            world.port.flush()
            refused += batch.count("refused")
            assert world.port.send_errors == refused
            for number, (client, outcome) in enumerate(zip(asking, batch, strict=True)):
                if outcome in ("reply", "late"):
                    assert client.receive() == (expected[number], f"127.0.0.{number + 1}")
                    assert client.answered[-1] == client.asked[-1]
        assert all(client.has_nothing() for client in clients)


def test_a_port_asks_the_kernel_for_room_for_a_burst() -> None:
    with listen_udp(Endpoint("127.0.0.1", 0), flag="test") as sock:
        before = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        open_port(sock)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) > before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the option")
@pytest.mark.parametrize(
    ("host", "level", "option"),
    [("127.0.0.1", socket.IPPROTO_IP, 10), ("::1", socket.IPPROTO_IPV6, 23)],
    ids=["4", "6"],
)
def test_a_port_believes_no_icmp_that_wants_smaller_packets(host: str, level: int, option: int) -> None:
    with listen_udp(Endpoint(host, 0), flag="test") as sock:
        open_port(sock)
        assert sock.getsockopt(level, option) == 5


@pytest.mark.parametrize(
    ("bound", "asked"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.7"),
        ("::1", "::1"),
        ("::", "::1"),
        ("::", "127.0.0.7"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
    ],
)
def test_a_port_that_refuses_more_answers_what_is_queued_from_the_address_that_was_asked(
    bound: str, asked: str
) -> None:
    with World(BatchPort, bound) as world:
        client = world.client(asked)
        client.send(b"first")
        client.send(b"second")
        refuse_more(world.port.socket)
        with socket.socket(socket.AF_INET6 if ":" in asked else socket.AF_INET, socket.SOCK_DGRAM) as connected:
            connected.connect((asked, world.number))
            connected.send(b"IDlate")
            with pytest.raises(ConnectionRefusedError):
                connected.recv(100)
        assert world.port.receive() == [b"first", b"second"]
        world.port.post(world.port.message(1)[:ID] + b"2", world.port.sender(1))
        world.port.send([b"1", None])
        world.port.flush()
        assert [client.receive(), client.receive()] == [(b"1", asked), (b"2", asked)]
        assert world.port.receive() == []
