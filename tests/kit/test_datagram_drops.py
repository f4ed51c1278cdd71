"""The kernel itself counts what a full socket loses."""

from __future__ import annotations

import socket

from tests.kit.datagram_drops import dropped_datagrams


def test_a_datagram_to_a_full_socket_is_counted() -> None:
    before = dropped_datagrams()
    with socket.socket(type=socket.SOCK_DGRAM) as full, socket.socket(type=socket.SOCK_DGRAM) as client:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        full.bind(("127.0.0.1", 0))
        for _ in range(100):
            client.sendto(bytes(1000), full.getsockname())
    assert dropped_datagrams() >= before + 90
