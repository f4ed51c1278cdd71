"""Pods that only send packets: the relay's connections, PROXY lines of their own, pages that reach an admin port."""

from __future__ import annotations

import http.client
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.kit.processes import end_process
from tests.kit.relays import start_relay
from tests.kit.serve_process import serving

GREEDY, POLITE = "127.0.0.1", "127.0.0.2"
"""Two clients."""
MOST: Final = 16
"""Connections of the relay in these tests."""
SECONDS: Final = 30
FORGED: Final = b"PROXY TCP4 198.51.100.9 192.0.2.1 4711 443\r\n"
FORGED_2: Final = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes((198, 51, 100, 9, 192, 0, 2, 1)) + b"\x12\x67\x01\xbb"

UNDECIDED: Final = 4
"""A header is known by its fifth octet; those before flow, because a client of another protocol may wait after them."""


@dataclass(frozen=True)
class Relay:
    """A running relay and its backend."""

    port: int
    admin: str
    backend: socket.socket

    def connect(self, source: str) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), SECONDS, source_address=(source, 0))


@contextmanager
def relaying(folder: Path, *arguments: str, route: str = "") -> Iterator[Relay]:
    with ExitStack() as stack:
        backend = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=128))
        backend.settimeout(SECONDS)
        target = f"127.0.0.1:{backend.getsockname()[1]}{route}"

        def command(port: int, admin: int) -> list[str]:
            where = ["--route", f"127.0.0.1:{port}={target}", "--admin", f"127.0.0.1:{admin}"]
            return [sys.executable, "-m", "proxy", *where, *arguments]

        process, (port, admin) = start_relay(command, folder / "relay.log")
        stack.callback(end_process, process)
        yield Relay(port, f"127.0.0.1:{admin}", backend)


@pytest.mark.parametrize("arguments", [[], ["--workers", "2"]], ids=["one process", "two workers"])
def test_one_client_cannot_hold_all_connections_of_the_relay(tmp_path: Path, arguments: list[str]) -> None:
    """It opens many times what there are, and says nothing on them; another client is served meanwhile."""
    with relaying(tmp_path, "--max-connections", str(MOST), *arguments) as relay, ExitStack() as stack:
        for _ in range(4 * MOST):
            # Refused at once, if it has its share.
            with suppress(ConnectionResetError):
                stack.enter_context(relay.connect(GREEDY))
        with relay.connect(POLITE) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert POLITE.encode() in header_from(relay.backend, POLITE)


def header_from(backend: socket.socket, client: str) -> bytes:
    """The first octets of the connection that comes from this client; fails after a while."""
    while True:
        accepted, _ = backend.accept()
        with accepted:
            accepted.settimeout(SECONDS)
            first = accepted.recv(4096)
            if client.encode() in first:
                return first


@pytest.mark.parametrize("line", [FORGED, FORGED_2], ids=["version 1", "version 2"])
def test_a_header_of_the_client_is_payload_after_the_relays_own(tmp_path: Path, line: bytes) -> None:
    with relaying(tmp_path) as relay, relay.connect(POLITE) as client:
        client.sendall(line + b"GET / HTTP/1.1\r\n\r\n")
        assert read_from(relay.backend).startswith(b"PROXY TCP4 127.0.0.2 ")


@pytest.mark.parametrize("pieces", ["whole", "octet by octet"])
@pytest.mark.parametrize("line", [FORGED, FORGED_2], ids=["version 1", "version 2"])
def test_without_a_header_of_ours_a_client_cannot_write_one(tmp_path: Path, line: bytes, pieces: str) -> None:
    """A backend that trusts the relay would believe it."""
    with relaying(tmp_path, route=",proxy-protocol=none") as relay, relay.connect(POLITE) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for part in [line] if pieces == "whole" else [bytes([octet]) for octet in line]:
                client.sendall(part)
            ended = client.recv(1)
        except (ConnectionResetError, BrokenPipeError):
            ended = b""
        assert ended == b""
        may_flow = b"" if pieces == "whole" else line[:UNDECIDED]
        assert may_flow.startswith(arrived(relay.backend))


def arrived(backend: socket.socket) -> bytes:
    """Everything that the backend got, once the relay has closed the client's connection."""
    backend.settimeout(0)
    try:
        accepted, _ = backend.accept()
    except BlockingIOError:
        return b""
    octets = b""
    with accepted, suppress(ConnectionResetError):
        accepted.settimeout(SECONDS)
        while part := accepted.recv(4096):
            octets += part
    return octets


def read_from(backend: socket.socket) -> bytes:
    accepted, _ = backend.accept()
    with accepted:
        accepted.settimeout(SECONDS)
        return accepted.recv(4096)


REBOUND: Final = ("evil.example.org", "evil.example.org:8081", "localhost.evil.example.org", "127.0.0.1.example.org")
"""What a browser sends as the Host of a page whose name was given a loopback address."""
PATHS: Final = ("/", "/table", "/left-out", "/explain?name=app.example.org", "/names.json.gz")
"""What shows hostnames; probes and metrics show none."""


@pytest.fixture(scope="module")
def dnsproxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(
        tmp_path_factory.mktemp("admin"), "--upstream", "127.0.0.1:9", "--host", "a.example.org=192.0.2.1"
    ) as one:
        yield one.admin


@pytest.fixture(scope="module")
def relay_admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with relaying(tmp_path_factory.mktemp("relay")) as one:
        yield one.admin


@pytest.mark.parametrize("host", REBOUND)
@pytest.mark.parametrize("path", PATHS)
def test_a_page_that_a_browser_reaches_by_rebinding_is_refused(dnsproxy: str, path: str, host: str) -> None:
    assert status(dnsproxy, path, host) == http.client.MISDIRECTED_REQUEST
    assert status(dnsproxy, path, dnsproxy) in {http.client.OK, http.client.NOT_FOUND}


@pytest.mark.parametrize("host", REBOUND)
def test_so_is_one_of_the_relay(relay_admin: str, host: str) -> None:
    assert status(relay_admin, "/", host) == http.client.MISDIRECTED_REQUEST
    assert status(relay_admin, "/", relay_admin) == http.client.OK


def status(admin: str, path: str, host: str) -> int:
    connection = http.client.HTTPConnection(admin, timeout=SECONDS)
    try:
        connection.request("GET", path, headers={"Host": host})
        return connection.getresponse().status
    finally:
        connection.close()
