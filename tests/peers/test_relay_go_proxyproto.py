"""A receiver made with go-proxyproto, which ingress controllers written in Go use, reads our header."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from proxy.header.addresses import LOCAL
from proxy.header.protocol import ProxyProtocol, formatter
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program
from tests.kit.relays import curl, relay_to

pytestmark = pytest.mark.peer("go-proxyproto", "curl")

PROTOCOLS = [
    pytest.param(["--proxy-protocol", "v1"], 1, "none", id="v1"),
    pytest.param(["--proxy-protocol", "v2"], 2, "none", id="v2"),
    pytest.param(["--proxy-protocol", "v2", "--crc32c"], 2, "right", id="v2 with a checksum"),
]


@contextmanager
def receiver(folder: Path) -> Iterator[int]:
    (port,) = free_ports(1)
    log = folder / "receiver.log"
    with log.open("wb") as output:
        process = subprocess.Popen([program("go-proxyproto"), f":{port}"], stdout=output, stderr=output)
    try:
        wait_for(lambda: is_listening(port), process=process, log=log)
        yield port
    finally:
        end_process(process)


def connect(host: str, port: int, *, source: str) -> socket.socket:
    client = socket.create_connection((host, port), timeout=20, source_address=(source, 0))
    client.settimeout(20)
    return client


def told(client: socket.socket) -> Any:
    """The receiver's report of the header, which it sends before the client's first bytes."""
    with client.makefile("rb") as lines:
        return json.loads(lines.readline())


@pytest.mark.parametrize(("arguments", "version", "checksum"), PROTOCOLS)
@pytest.mark.parametrize(
    ("source", "relay"),
    [pytest.param("127.0.0.5", "127.0.0.1", id="IPv4"), pytest.param("::1", "::1", id="IPv6")],
)
@pytest.mark.parametrize("backend", [pytest.param("127.0.0.1", id="to IPv4"), pytest.param("[::1]", id="to IPv6")])
def test_the_receiver_reads_both_addresses_before_any_data(
    tmp_path: Path, arguments: list[str], version: int, checksum: str, source: str, relay: str, backend: str
) -> None:
    with (
        receiver(tmp_path) as port,
        relay_to(f"{backend}:{port}", tmp_path, *arguments, host=relay) as relayed,
        connect(relay, relayed.port, source=source) as client,
    ):
        here = client.getsockname()[1]
        form = "[{}]:{}" if ":" in relay else "{}:{}"
        assert told(client) == {
            "Version": version,
            "Local": False,
            "Source": form.format(source, here),
            "Destination": form.format(relay, relayed.port),
            "Checksum": checksum,
            "Error": "",
        }
        client.sendall(b"and then the payload")
        assert client.recv(100) == b"and then the payload"


@pytest.mark.parametrize(("arguments", "version", "checksum"), PROTOCOLS)
def test_the_receiver_knows_a_readiness_probe_for_the_proxys_own(
    tmp_path: Path, arguments: list[str], version: int, checksum: str
) -> None:
    # The relay never sends this header on request, so the test sends the same octets.
    protocol = ProxyProtocol(arguments[1])
    with receiver(tmp_path) as port, connect("127.0.0.1", port, source="127.0.0.1") as client:
        client.sendall(formatter(protocol, checksum=checksum == "right")(LOCAL))
        answer = told(client)
    assert answer["Error"] == ""
    assert answer["Version"] == version
    # Version 1 has no LOCAL; go-proxyproto maps it to UNKNOWN.
    assert answer["Local"] is True
    assert (answer["Source"], answer["Destination"]) == ("", "")
    with receiver(tmp_path) as port, relay_to(f"127.0.0.1:{port}", tmp_path, *arguments) as relayed:
        assert curl(f"http://{relayed.admin}/readyz").stdout == "ready\n"


def test_without_a_header_the_receiver_refuses(tmp_path: Path) -> None:
    with receiver(tmp_path) as port, connect("127.0.0.1", port, source="127.0.0.1") as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
        assert told(client)["Error"]


def test_a_wrong_checksum_would_be_noticed(tmp_path: Path) -> None:
    header = bytearray(formatter(ProxyProtocol.V2, checksum=True)(LOCAL))
    header[-1] ^= 1
    with receiver(tmp_path) as port, connect("127.0.0.1", port, source="127.0.0.1") as client:
        client.sendall(header)
        assert told(client)["Checksum"] == "wrong"
