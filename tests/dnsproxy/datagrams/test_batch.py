"""The batch port alone: structures laid out as in C, and buffers that must never move or leak."""

from __future__ import annotations

import ctypes
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dnsproxy.datagrams import batch, headers
from dnsproxy.datagrams.batch import BatchPort
from dnsproxy.datagrams.port import BATCH
from sidecar.sockets.listeners import listen_udp
from sidecar.values.endpoints import Endpoint
from tests.kit.programs import program

_C = """
#define _GNU_SOURCE
#include <stddef.h>
#include <netinet/in.h>
#include <sys/socket.h>
#define SHOW(name, value) char name[(value) + 1];
SHOW(iovec_size, sizeof(struct iovec))
SHOW(iovec_length, offsetof(struct iovec, iov_len))
SHOW(msghdr_size, sizeof(struct msghdr))
SHOW(msghdr_name_length, offsetof(struct msghdr, msg_namelen))
SHOW(msghdr_vector, offsetof(struct msghdr, msg_iov))
SHOW(msghdr_control, offsetof(struct msghdr, msg_control))
SHOW(msghdr_control_length, offsetof(struct msghdr, msg_controllen))
SHOW(msghdr_flags, offsetof(struct msghdr, msg_flags))
SHOW(mmsghdr_size, sizeof(struct mmsghdr))
SHOW(mmsghdr_length, offsetof(struct mmsghdr, msg_len))
SHOW(name, sizeof(struct sockaddr_in))
SHOW(name6, sizeof(struct sockaddr_in6))
SHOW(cmsg_header, CMSG_LEN(0))
SHOW(pktinfo_interface, offsetof(struct in_pktinfo, ipi_ifindex))
SHOW(pktinfo6_interface, offsetof(struct in6_pktinfo, ipi6_ifindex))
"""


@pytest.fixture
def port() -> Iterator[BatchPort]:
    with listen_udp(Endpoint("127.0.0.1", 0), flag="test") as sock:
        yield BatchPort(sock)


@pytest.fixture
def client(port: BatchPort) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(port.socket.getsockname())
        sock.settimeout(30)
        yield sock


@pytest.mark.peer("cc")
def test_the_structures_are_those_of_the_c_compiler(tmp_path: Path) -> None:
    source = tmp_path / "layout.c"
    source.write_text(_C)
    listing = subprocess.run(
        [program("cc"), "-S", "-o", "-", source], check=True, capture_output=True, text=True
    ).stdout
    # The compiler lists the size of each array: the value plus one, so that no array is empty.
    found = {name: int(size) - 1 for name, size in re.findall(r"\.size\s+(\w+), (\d+)", listing)}
    assert found == {
        "iovec_size": ctypes.sizeof(headers.IoVector),
        "iovec_length": headers.IoVector.length.offset,
        "msghdr_size": ctypes.sizeof(headers.SingleHeader),
        "msghdr_name_length": headers.SingleHeader.name_length.offset,
        "msghdr_vector": headers.SingleHeader.vector.offset,
        "msghdr_control": headers.SingleHeader.control.offset,
        "msghdr_control_length": headers.SingleHeader.control_length.offset,
        "msghdr_flags": headers.SingleHeader.flags.offset,
        "mmsghdr_size": ctypes.sizeof(headers.MessageHeader),
        "mmsghdr_length": headers.MessageHeader.length.offset,
        "name": headers.NAME_SIZES[socket.AF_INET],
        "name6": headers.NAME_SIZES[socket.AF_INET6],
        "cmsg_header": batch._CMSG_HEADER,
        "pktinfo_interface": 0,
        "pktinfo6_interface": 16,
    }


def test_a_batch_larger_than_the_output_buffer_is_sent_whole(port: BatchPort, client: socket.socket) -> None:
    """Such a batch once made Python move the buffer, and the kernel sent the content of the old memory."""
    bodies = [bytes([number]) * 60_000 for number in range(BATCH)]
    replies = [b"id" + body for body in bodies]
    for _ in range(2):
        for start in range(0, BATCH, 2):
            # Two at a time, so that the client's queue holds all its replies.
            client.send(b"id query")
            client.send(b"id query")
            assert len(port.receive()) == 2
            port.send(bodies[start : start + 2])
            assert [client.recv(65_535), client.recv(65_535)] == replies[start : start + 2]
    for _ in range(5):
        client.send(b"id query")
    assert len(port.receive()) == 5
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    port.send(bodies[:5])
    assert port.send_errors == 0
    assert client.recv(65_535) == replies[0]


def test_no_buffer_can_be_moved(port: BatchPort) -> None:
    late = port._late
    for buffer in (port._output, late._octets, late._names, late._controls):
        with pytest.raises(ValueError, match="different structures"):
            buffer[:1] = b"two"
    for mapping in (port._input, port._names, port._controls):
        with pytest.raises(IndexError, match="wrong size"):
            mapping[:1] = b"two"


def test_a_reply_that_no_datagram_can_hold_is_counted_and_not_sent(port: BatchPort, client: socket.socket) -> None:
    client.send(b"query")
    port.receive()
    for _ in range(2):
        port.post(bytes(65_535), port.sender(0))
    port.flush()
    assert port.send_errors == 2
    port.post(b"reply", port.sender(0))
    port.flush()
    assert client.recv(65_535) == b"reply"


def test_a_reply_holds_nothing_of_a_longer_one_before(port: BatchPort, client: socket.socket) -> None:
    for message in (b"a" * 4000, b"b", b"", b"c" * 10):
        client.send(b"id" + message)
        assert port.receive() == [message]
        port.send([message])
        assert client.recv(65_535) == b"id" + message


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_reply_names_the_address_that_was_asked_but_no_interface(host: str) -> None:
    """If the route back uses another interface, a named interface would lose the reply."""
    asked = "::1" if host == "::" else "127.0.0.2"
    family = socket.AF_INET6 if host == "::" else socket.AF_INET
    with listen_udp(Endpoint(host, 0), flag="test") as sock, socket.socket(family, socket.SOCK_DGRAM) as client:
        port = BatchPort(sock)
        for _ in range(2):
            client.sendto(b"query", (asked, sock.getsockname()[1]))
        assert len(port.receive()) == 2
        assert port._interfaces[:2].tolist() == [1, 1], "the kernel names loopback"
        _, local, _ = port.sender(0)
        assert socket.inet_pton(family, asked) in local
        assert b"\1" not in local[16:20] if family == socket.AF_INET else local[-8:] == bytes(8)
        port.send([b"1", b"2"])
        assert port._interfaces.tolist() == [0] * BATCH


def test_an_ipv4_and_an_ipv6_client_of_one_batch_keep_their_address_sizes() -> None:
    with (
        listen_udp(Endpoint("::", 0), flag="test") as sock,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as four,
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as six,
    ):
        port = BatchPort(sock)
        for client, host in ((four, "127.0.0.1"), (six, "::1"), (four, "127.0.0.1")):
            client.settimeout(30)
            client.sendto(b"id query", (host, sock.getsockname()[1]))
        assert len(port.receive()) == 3
        port.send([b"1", b"2", b"3"])
        assert [four.recv(9), six.recv(9), four.recv(9)] == [b"id1", b"id2", b"id3"]
