"""Replies after their batch: each to its own sender, however many; a refused reply costs no other."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsproxy.datagrams.batch import BatchPort
from dnsproxy.datagrams.late_replies import LateReplies
from dnsproxy.datagrams.port import BATCH, Sender
from sidecar.sockets.listeners import listen_udp
from sidecar.values.endpoints import Endpoint

TOO_LARGE = bytes(65_530)
"""Too large for a datagram: the kernel refuses it with EMSGSIZE."""


class World:
    """A port, and the clients that asked it."""

    def __init__(self, host: str) -> None:
        self._stack = ExitStack()
        self.socket = self._stack.enter_context(listen_udp(Endpoint(host, 0), flag="test"))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        self._port = BatchPort(self.socket)
        self.late = self._port._late

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def client(self, asked: str) -> tuple[socket.socket, Sender]:
        """A client that asked this address, and the sender to reply to."""
        family = socket.AF_INET6 if ":" in asked else socket.AF_INET
        client = self._stack.enter_context(socket.socket(family, socket.SOCK_DGRAM))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        client.settimeout(30)
        client.sendto(b"??query", (asked, self.socket.getsockname()[1]))
        assert self._port.receive() == [b"query"]
        return client, self._port.sender(0)


@pytest.fixture(params=["127.0.0.1", "::1"], ids=["IPv4", "IPv6"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with World(request.param) as made:
        yield made


def host_of(world: World) -> str:
    return str(world.socket.getsockname()[0])


def has_nothing(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        client.recv(65_535)
    except BlockingIOError:
        return True
    return False


def test_nothing_is_sent_where_nothing_is_late(world: World) -> None:
    assert world.late.send([]) == 0


@pytest.mark.parametrize("count", [1, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH + 5])
def test_each_sender_gets_his_reply_however_many_there_are(world: World, count: int) -> None:
    clients = [world.client(host_of(world)) for _ in range(10)]
    late = [(b"%d" % number, clients[number % 10][1]) for number in range(count)]
    assert world.late.send(late) == 0
    for number in range(count):
        assert clients[number % 10][0].recv(100) == b"%d" % number
    assert all(has_nothing(client) for client, _ in clients)


def test_a_batch_of_the_largest_replies_leaves_whole(world: World) -> None:
    client, sender = world.client(host_of(world))
    for _ in range(2):
        replies = [bytes([number]) * 65_507 for number in range(8)]
        assert world.late.send([(reply, sender) for reply in replies]) == 0
        assert [client.recv(65_535) for _ in replies] == replies


def test_a_reply_holds_nothing_of_a_longer_one_before(world: World) -> None:
    client, sender = world.client(host_of(world))
    for reply in (b"a" * 5000, b"b", b"", b"c" * 20):
        assert world.late.send([(reply, sender)]) == 0
        assert client.recv(65_535) == reply


@pytest.mark.parametrize("refused", [[0], [4], [9], [0, 1], [3, 4, 8, 9], list(range(10))], ids=str)
def test_what_the_kernel_refuses_costs_only_itself(world: World, refused: list[int]) -> None:
    clients = [world.client(host_of(world)) for _ in range(10)]
    late = [(TOO_LARGE if number in refused else b"%d" % number, clients[number][1]) for number in range(10)]
    assert world.late.send(late) == len(refused)
    for number, (client, _) in enumerate(clients):
        assert has_nothing(client) if number in refused else client.recv(65_535) == b"%d" % number


def test_refusals_in_several_batches_are_all_counted(world: World) -> None:
    client, sender = world.client(host_of(world))
    late = [(TOO_LARGE if number % 50 == 49 else b"%d" % number, sender) for number in range(3 * BATCH)]
    assert world.late.send(late) == 3
    assert [int(client.recv(100)) for _ in range(3 * BATCH - 3)] == [n for n in range(3 * BATCH) if n % 50 != 49]


def test_a_client_that_has_left_disturbs_no_other(world: World) -> None:
    client, sender = world.client(host_of(world))
    gone, gone_sender = world.client(host_of(world))
    gone.close()
    for number in range(5):
        # The ICMP error for an earlier reply may arrive in between; it must not count against another reply.
        assert world.late.send([(b"x", gone_sender), (b"%d" % number, sender), (b"y", gone_sender)]) == 0
        assert client.recv(100) == b"%d" % number


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_reply_leaves_from_the_address_that_was_asked(host: str) -> None:
    asked = ["127.0.0.1", "127.0.0.2", "127.0.0.3"] + ["::1"] * (host == "::")
    with World(host) as world:
        clients = [world.client(asked[number % len(asked)]) for number in range(2 * BATCH)]
        late = [(b"%d" % number, sender) for number, (_, sender) in enumerate(clients)]
        assert world.late.send(late) == 0
        for number, (client, _) in enumerate(clients):
            reply, source = client.recvfrom(100)
            assert (reply, source[:2]) == (
                b"%d" % number,
                (asked[number % len(asked)], world.socket.getsockname()[1]),
            )


def test_a_descriptor_that_is_closed_refuses_all_and_is_no_crash() -> None:
    with World("127.0.0.1") as world:
        _, sender = world.client("127.0.0.1")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
            late = LateReplies(closed, local=False)
    assert late.send([(b"a", sender), (b"b", sender)]) == 2


def test_no_buffer_can_be_moved() -> None:
    """The kernel keeps their addresses."""
    with World("0.0.0.0") as world:
        for buffer in (world.late._octets, world.late._names, world.late._controls):
            with pytest.raises(ValueError, match="different structures"):
                buffer[:1] = b"two"


@settings(max_examples=40)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["fits", "refused"])), max_size=2 * BATCH), max_size=3
    )
)
def test_whatever_the_pattern_each_client_gets_its_own_reply_from_the_address_it_asked(
    turns: list[list[tuple[int, str]]],
) -> None:
    asked = ["127.0.0.1", "::1", "127.0.0.2", "127.0.0.1", "127.0.0.4", "::1"]
    with World("::") as world:
        clients = [world.client(host) for host in asked]
        for turn, pattern in enumerate(turns):
            late = [
                (b"%d/%d" % (turn, number) if outcome == "fits" else TOO_LARGE, clients[who][1])
                for number, (who, outcome) in enumerate(pattern)
            ]
            assert world.late.send(late) == [outcome for _, outcome in pattern].count("refused")
            for number, (who, outcome) in enumerate(pattern):
                if outcome == "fits":
                    reply, source = clients[who][0].recvfrom(100)
                    assert (reply, source[0]) == (b"%d/%d" % (turn, number), asked[who])
        assert all(has_nothing(client) for client, _ in clients)
