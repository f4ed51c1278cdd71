from __future__ import annotations

import socket

from tests.bench.sync.upstream import knowing_nothing
from tests.kit.messages import query, read_dnspython


def test_every_question_gets_nxdomain() -> None:
    with knowing_nothing() as port, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(30)
        for name in ("a.example.org", "b.example.net", "."):
            client.sendto(query(name), ("127.0.0.1", port))
            reply = client.recv(512)
            assert read_dnspython(reply).rcode == 3
            assert reply[12:] == query(name)[12:]
