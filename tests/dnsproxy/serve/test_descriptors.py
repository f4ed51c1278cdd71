"""The real program with few descriptors: a crowd of idle connections, too low a limit, and the time after the load."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.idle_crowd import idle_crowd
from tests.kit.launched import ROOT, limited
from tests.kit.log_lines import whole_lines
from tests.kit.messages import query
from tests.kit.ports import free_port
from tests.kit.processes import wait_for
from tests.kit.scraping import status_of
from tests.kit.serve_process import Serving, serving
from tests.kit.upstream_replies import framed

NAME = "app.example.org"
HOST = ("--host", f"{NAME}=192.0.2.80")
OURS = query(NAME)
"""A query that the table answers."""
SECONDS = 20.0


def events(server: Serving) -> list[dict[str, Any]]:
    return [json.loads(line) for line in whole_lines(server.log)]


def ask(server: Serving, message: bytes) -> bytes:
    """Ask over UDP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(SECONDS)
        client.connect(("127.0.0.1", server.port))
        client.send(message)
        return client.recv(4096)


def ask_stream(server: Serving, message: bytes) -> bytes:
    """Ask over a new TCP connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as client:
        client.sendall(framed(message))
        with client.makefile("rb") as received:
            return received.read(int.from_bytes(received.read(2), "big"))


@contextlib.contextmanager
def behind(folder: Path, *, open_files: tuple[int, int]) -> Iterator[Serving]:
    """A server with few descriptors, whose upstream is another server that has a name."""
    with (
        serving(folder, "--host", "elsewhere.example.net=192.0.2.81", "--upstream", "192.0.2.53") as upstream,
        serving(folder, *HOST, "--upstream", f"127.0.0.1:{upstream.port}", open_files=open_files) as server,
    ):
        yield server


def assert_healthy(server: Serving) -> None:
    """The admin port answers, so do names of the table and forwarded ones, over UDP and TCP."""
    assert status_of(server.admin, "/healthz") == 200
    for name in (NAME, "elsewhere.example.net"):
        for how in (ask, ask_stream):
            assert how(server, query(name))[3] & 0xF == 0, (name, how)


@pytest.mark.parametrize(
    ("open_files", "crowd"),
    [pytest.param((1024, 8192), 1500, id="soft limit"), pytest.param((256, 256), 600, id="hard limit")],
)
def test_a_crowd_of_idle_connections_takes_no_descriptor_that_others_need(
    tmp_path: Path, open_files: tuple[int, int], crowd: int
) -> None:
    with behind(tmp_path, open_files=open_files) as server:
        with idle_crowd(server.port, crowd):
            assert_healthy(server)
            assert server.metric("dnsproxy_tcp_evicted_total") > 0
            assert server.metric("dnsproxy_tcp_refused_total") == 0
        assert_healthy(server)
        assert b"Traceback" not in server.log.read_bytes()
        assert not [entry for entry in events(server) if "accept" in entry["event"] or entry["level"] == "error"]


def test_a_crowd_at_the_admin_port_keeps_no_probe_and_no_query_out(tmp_path: Path) -> None:
    with behind(tmp_path, open_files=(256, 256)) as server:
        with idle_crowd(server.admin_endpoint.port, 400):
            assert_healthy(server)
        assert b"Traceback" not in server.log.read_bytes()


def test_the_soft_limit_is_raised_and_the_shares_are_logged(tmp_path: Path) -> None:
    with serving(tmp_path, *HOST, "--upstream", "192.0.2.53", open_files=(512, 2048)) as server:
        (limits,) = (entry for entry in events(server) if entry["event"] == "limits")
    assert limits["descriptors"] == 2048
    assert limits["connections"] + limits["source_ports"] < 2048


def test_with_64_descriptors_everything_is_well_again_after_the_load(tmp_path: Path) -> None:
    with behind(tmp_path, open_files=(64, 64)) as server:
        with idle_crowd(server.port, 200), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(SECONDS)
            # All replies leave together, and the default buffer holds less than 300 of them.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            client.connect(("127.0.0.1", server.port))
            # The upstream's own upstream is silent, so all of them wait together.
            for number in range(300):
                client.send(query(f"h{number}.example.net", ident=number))
            for _ in range(300):
                client.recv(4096)
        assert_healthy(server)
        assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < 64
        assert b"Traceback" not in server.log.read_bytes()


@pytest.mark.parametrize("limit", [12, 16, 32])
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["dnsproxy", "serve", *HOST, "--upstream", "192.0.2.53", "--listen"], id="dnsproxy serve"),
        pytest.param(["proxy", "--route", "127.0.0.1:0=192.0.2.1:9", "--admin"], id="proxy"),
    ],
)
def test_too_low_a_limit_is_one_clear_line(command: list[str], limit: int, tmp_path: Path) -> None:
    port = free_port()
    rest = ["--admin", "off"] if "serve" in command else []
    whole = [*limited((limit, limit)), sys.executable, "-m", *command, f"127.0.0.1:{port}", *rest]
    with (tmp_path / "log").open("wb") as stderr:
        process = subprocess.Popen(whole, stderr=stderr, cwd=ROOT)
        try:
            status = process.wait(SECONDS)
        finally:
            process.kill()
            process.wait()
    output = (tmp_path / "log").read_text()
    assert status == 2
    assert "Traceback" not in output
    (line,) = (line for line in output.splitlines() if not line.startswith("{"))
    assert line.startswith("Error: ")
    assert "ulimit -n" in line


def test_the_limit_that_the_message_names_is_enough(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as stderr:
        command = [*limited((20, 20)), sys.executable, "-m", "dnsproxy", "serve", "--upstream", "192.0.2.53"]
        subprocess.run(
            [*command, "--listen", "127.0.0.1:0", "--admin", "off"], stderr=stderr, check=False, cwd=ROOT, timeout=60
        )
    needed = int(log.read_text().split("at least ")[1].split()[0])
    with serving(tmp_path, *HOST, "--upstream", "192.0.2.53", open_files=(needed, needed)) as server:
        assert ask(server, OURS)[3] & 0xF == 0
        wait_for(lambda: status_of(server.admin, "/healthz") == 200, process=server.process, log=server.log)
