"""Batches on connected sockets: which datagrams leave, are refused or arrive, and that sockets do not mix."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsproxy.datagrams.connected import Batches
from dnsproxy.datagrams.port import BATCH, MESSAGE

LARGEST = {socket.AF_INET: 65_507, socket.AF_INET6: 65_527}
"""The largest datagram that the kernel accepts: 65,535 octets less the headers (RFC 791, RFC 8200)."""


def connected(family: socket.AddressFamily) -> tuple[socket.socket, socket.socket]:
    """Two UDP sockets on loopback that receive only from each other."""
    host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    ours, theirs = (socket.socket(family, socket.SOCK_DGRAM) for _ in range(2))
    for sock in (ours, theirs):
        sock.bind((host, 0))
        # Room for a batch: the kernel counts some 800 octets for the smallest datagram.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        sock.setblocking(False)
    ours.connect(theirs.getsockname())
    theirs.connect(ours.getsockname())
    return ours, theirs


@pytest.fixture(params=[pytest.param(socket.AF_INET, id="IPv4"), pytest.param(socket.AF_INET6, id="IPv6")])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = connected(request.param)
    with ours, theirs:
        yield ours, theirs


@pytest.fixture(scope="module")
def batches() -> Batches:
    """One for all tests, as all upstream sockets share one."""
    return Batches()


def taken(sock: socket.socket) -> list[bytes]:
    datagrams = []
    while True:
        try:
            datagrams.append(sock.recv(65_536))
        except BlockingIOError:
            return datagrams


@pytest.mark.parametrize("count", [1, 2, BATCH - 1, BATCH])
def test_a_batch_leaves_whole_and_in_order(
    batches: Batches, pair: tuple[socket.socket, socket.socket], count: int
) -> None:
    ours, theirs = pair
    datagrams = [b"%d" % number for number in range(count)]
    assert batches.send_batch(ours.fileno(), datagrams) == count
    assert taken(theirs) == datagrams


def test_a_batch_of_the_longest_queries_leaves_whole(
    batches: Batches, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    datagrams = [bytes([number]) * MESSAGE for number in range(BATCH)]
    assert batches.send_batch(ours.fileno(), datagrams) == BATCH
    assert taken(theirs) == datagrams


@pytest.mark.parametrize("count", [1, 2, BATCH])
def test_what_waits_is_taken_whole_and_in_order(
    batches: Batches, pair: tuple[socket.socket, socket.socket], count: int
) -> None:
    ours, theirs = pair
    for number in range(count):
        theirs.send(b"%d" % number)
    assert batches.receive(ours.fileno()) == [b"%d" % number for number in range(count)]


def test_more_than_a_batch_is_taken_in_batches(batches: Batches, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    for number in range(BATCH + 3):
        theirs.send(b"%d" % number)
    assert [len(batches.receive(ours.fileno())) for _ in range(2)] == [BATCH, 3]


def test_a_reply_may_have_any_size_that_a_datagram_can_have(
    batches: Batches, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    sizes = [0, 1, MESSAGE, MESSAGE + 1, LARGEST[ours.family], 0, 1]
    for number, size in enumerate(sizes):
        theirs.send(bytes([number]) * size)
    assert batches.receive(ours.fileno()) == [bytes([number]) * size for number, size in enumerate(sizes)]


def test_an_empty_queue_is_an_error(batches: Batches, pair: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(BlockingIOError):
        batches.receive(pair[0].fileno())


def test_a_refusal_is_reported_once_and_with_its_name(
    batches: Batches, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    theirs.close()
    ours.send(b"to nobody")
    with pytest.raises(ConnectionRefusedError):
        batches.receive(ours.fileno())
    with pytest.raises(BlockingIOError):
        batches.receive(ours.fileno())


def test_the_refusal_of_an_earlier_datagram_stops_a_batch_before_it_begins(
    batches: Batches, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    theirs.close()
    ours.send(b"to nobody")
    with pytest.raises(ConnectionRefusedError):
        batches.send_batch(ours.fileno(), [b"1", b"2"])


@pytest.mark.parametrize("refused", [0, 1, 5], ids=["the first", "the second", "the last"])
def test_a_datagram_that_is_refused_stops_the_batch_and_is_named_when_it_comes_first(
    batches: Batches, pair: tuple[socket.socket, socket.socket], refused: int
) -> None:
    ours, theirs = pair
    datagrams = [b"%d" % number for number in range(6)]
    datagrams[refused] = bytes(65_600)
    if refused:
        assert batches.send_batch(ours.fileno(), datagrams) == refused
        assert taken(theirs) == datagrams[:refused]
    with pytest.raises(OSError, match="Message too long") as caught:
        batches.send_batch(ours.fileno(), datagrams[refused:])
    assert caught.value.errno == errno.EMSGSIZE
    assert taken(theirs) == []


def test_a_descriptor_that_is_closed_is_an_error_and_no_crash(batches: Batches) -> None:
    for call in (lambda: batches.send_batch(-1, [b"a"]), lambda: batches.receive(-1)):
        with pytest.raises(OSError, match="Bad file descriptor"):
            call()


def test_no_buffer_can_be_moved(batches: Batches) -> None:
    """The kernel keeps their addresses."""
    with pytest.raises(IndexError, match="wrong size"):
        batches._input[:1] = b"two"
    with pytest.raises(ValueError, match="different structures"):
        batches._octets[:1] = b"two"


def test_sockets_that_share_the_buffers_do_not_hear_one_another(
    batches: Batches, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    others, strangers = connected(socket.AF_INET)
    with others, strangers:
        batches.send_batch(ours.fileno(), [b"long for theirs", b"a"])
        batches.send_batch(others.fileno(), [b"b"])
        assert (taken(theirs), taken(strangers)) == ([b"long for theirs", b"a"], [b"b"])
        theirs.send(b"long for ours")
        strangers.send(b"c")
        assert (batches.receive(ours.fileno()), batches.receive(others.fileno())) == ([b"long for ours"], [b"c"])


@settings(max_examples=60)
@given(st.lists(st.lists(st.binary(max_size=200) | st.integers(0, MESSAGE).map(bytes), max_size=BATCH), max_size=4))
def test_whatever_is_sent_arrives_octet_for_octet(turns: list[list[bytes]]) -> None:
    batches = Batches()
    ours, theirs = connected(socket.AF_INET)
    with ours, theirs:
        for datagrams in turns:
            if not datagrams:
                continue
            assert batches.send_batch(ours.fileno(), datagrams) == len(datagrams)
            assert batches.receive(theirs.fileno()) == datagrams
