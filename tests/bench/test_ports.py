from __future__ import annotations

import socket

from tests.bench.ports import free_port


def test_a_free_port_can_be_bound_for_both_protocols() -> None:
    port = free_port()
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as taken:
            taken.bind(("127.0.0.1", port))
