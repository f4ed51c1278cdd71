"""A real haproxy with accept-proxy reads our header, and passes the client's address on to its backend."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proxy.header.addresses import Header
from proxy.header.v1 import format_v1
from proxy.header.v2 import format_v2
from sidecar.values.endpoints import Endpoint
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program
from tests.kit.relays import answer_to, curl, relay_to

pytestmark = pytest.mark.peer("haproxy", "curl")

_CONFIGURATION = """\
global
    maxconn 200
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend judge
    bind 127.0.0.1:{port} accept-proxy
    bind ::1:{port} accept-proxy
    http-request return status 200 content-type text/plain lf-string "%[src] %[src_port] %[dst] %[dst_port]"
"""


@contextmanager
def haproxy_expecting_proxy(folder: Path) -> Iterator[int]:
    """Run haproxy on a free port of 127.0.0.1 and ::1; it answers with the addresses from the header."""
    folder.mkdir()
    (port,) = free_ports(1)
    configuration = folder / "haproxy.cfg"
    configuration.write_text(_CONFIGURATION.format(port=port))
    log = folder / "output.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program("haproxy"), "-db", "-f", str(configuration)], stdout=output, stderr=subprocess.STDOUT
        )
    try:
        wait_for(lambda: is_listening(port), process=process, log=log)
        yield port
    finally:
        end_process(process)


@pytest.fixture
def haproxy(tmp_path: Path) -> Iterator[int]:
    with haproxy_expecting_proxy(tmp_path / "haproxy") as port:
        yield port


def test_without_the_header_haproxy_refuses(haproxy: int) -> None:
    assert curl(f"http://127.0.0.1:{haproxy}/").returncode != 0


PROTOCOLS = [
    pytest.param(["--proxy-protocol", "v1"], id="v1"),
    pytest.param(["--proxy-protocol", "v2"], id="v2"),
    # haproxy verifies the checksum, and closes the connection if it is wrong.
    pytest.param(["--proxy-protocol", "v2", "--crc32c"], id="v2 with a checksum"),
]


@pytest.mark.parametrize("arguments", PROTOCOLS)
@pytest.mark.parametrize(
    ("client", "relay"),
    [pytest.param("127.0.0.5", "127.0.0.1", id="IPv4"), pytest.param("::1", "::1", id="IPv6")],
)
@pytest.mark.parametrize("backend", [pytest.param("127.0.0.1", id="to IPv4"), pytest.param("[::1]", id="to IPv6")])
def test_haproxy_reads_both_addresses(
    haproxy: int, tmp_path: Path, arguments: list[str], client: str, relay: str, backend: str
) -> None:
    with relay_to(f"{backend}:{haproxy}", tmp_path, *arguments, host=relay) as relayed:
        result = curl("--interface", client, "--write-out", " %{local_port}", f"http://{relayed.listen}/")
    source, source_port, destination, destination_port, local_port = result.stdout.split()
    assert (source, source_port) == (client, local_port)
    assert (destination, destination_port) == (relay, str(relayed.port))


@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
def test_haproxy_judges_the_checksum(haproxy: int, wrong: bool) -> None:
    header = bytearray(format_v2(Header(Endpoint("192.0.2.1", 1), Endpoint("192.0.2.80", 443)), checksum=True))
    header[-1] ^= wrong
    with socket.create_connection(("127.0.0.1", haproxy), timeout=20) as client:
        client.sendall(bytes(header) + b"GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n")
        try:
            answer = client.recv(1000)
        except ConnectionResetError:
            answer = b""
    assert (b"192.0.2.1 1 192.0.2.80 443" in answer) is not wrong


@pytest.mark.parametrize("arguments", PROTOCOLS)
def test_haproxy_takes_a_readiness_probe(haproxy: int, tmp_path: Path, arguments: list[str]) -> None:
    with relay_to(f"127.0.0.1:{haproxy}", tmp_path, *arguments) as relayed:
        assert curl(f"http://{relayed.admin}/readyz").stdout == "ready\n"
        assert curl(f"http://{relayed.listen}/").returncode == 0


@pytest.mark.parametrize("write", [format_v1, format_v2], ids=["v1", "v2"])
def test_haproxy_believes_no_header_of_a_client_of_a_route_without_headers(
    haproxy: int, tmp_path: Path, write: Callable[[Header], bytes]
) -> None:
    header = write(Header(Endpoint("198.51.100.7", 7), Endpoint("192.0.2.80", 443)))
    octets = header + b"GET /admin HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n"
    (plain,) = free_ports(1)
    backend = f"127.0.0.1:{haproxy}"
    without = f"127.0.0.1:{plain}={backend},proxy-protocol=none"
    with relay_to(f"{backend},proxy-protocol=pass", tmp_path, "--route", without) as relayed:
        for first in (*range(7), 12, len(header), len(header) + 5):
            assert b"198.51.100.7" not in answer_to(plain, octets[:first], octets[first:])
        assert b"198.51.100.7 7" in answer_to(relayed.port, octets)
