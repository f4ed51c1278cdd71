from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.bench.relay import bulk
from tests.bench.relay.bulk import Fault, Transfers, ask, parse_transfers

HEADER = b"PROXY TCP4 127.0.0.1 127.0.0.1 1000 2000\r\n"


class Between:
    """A relay for one connection at a time that writes the header, and may cut what passes."""

    def __init__(self, *, header: bytes = HEADER, most: int | None = None) -> None:
        self.header = header
        self.most = most
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        source = bulk._make_source()
        client, _ = self.listener.accept()
        near, far = socket.socketpair()
        with client, near:
            threading.Thread(target=bulk._serve_one, args=(far, source), daemon=True).start()
            near.sendall(self.header)
            up = threading.Thread(target=self._pass, args=(client, near), daemon=True)
            up.start()
            self._pass(near, client, most=self.most)
            client.shutdown(socket.SHUT_RDWR)
            near.shutdown(socket.SHUT_RDWR)
            up.join()

    @staticmethod
    def _pass(source: socket.socket, sink: socket.socket, *, most: int | None = None) -> None:
        left = most
        while octets := source.recv(65_536):
            sink.sendall(octets[:left])
            left = None if left is None else left - len(octets)
            if left is not None and left <= 0:
                return


@pytest.fixture
def between() -> Iterator[type[Between]]:
    made: list[Between] = []

    class Made(Between):
        def __init__(self, **how: object) -> None:
            super().__init__(**how)  # type: ignore[arg-type]
            made.append(self)

    yield Made
    for one in made:
        one.listener.close()


def test_a_download_counts_every_octet(between: type[Between]) -> None:
    transfers = ask(between().port, "download", 3_000_000, 0)
    assert (transfers.octets, transfers.count) == (3_000_000, 1)
    assert transfers.seconds > 0


def test_a_download_that_is_cut_is_a_fault_and_no_figure(between: type[Between]) -> None:
    with pytest.raises(Fault, match="too early"):
        ask(between(most=1_000_000).port, "download", 3_000_000, 0)


@pytest.mark.parametrize("header", [b"", b"PROXY UNKNOWN\r\n", b"PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n"])
def test_a_relay_that_does_not_say_who_connects_gets_nothing(between: type[Between], header: bytes) -> None:
    with pytest.raises((Fault, OSError)):
        ask(between(header=header or b"GET / HTTP/1.1\r\n").port, "download", 1000, 0)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"octets": 1}', "Traceback (most recent call last):"])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        parse_transfers(text)


def test_a_report_is_read() -> None:
    assert parse_transfers('{"octets": 5, "seconds": 0.5, "count": 1}') == Transfers(5, 0.5, 1)
