"""SIGHUP of the real program: its files are read again, and nothing ends."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

from tests.kit.messages import query
from tests.kit.processes import wait_for
from tests.kit.serve_process import Serving, serving
from tests.kit.upstream_replies import framed

SECONDS = 20.0


def last_octet(server: Serving, name: str) -> int:
    """The last octet of the answer's address, asked over UDP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(SECONDS)
        client.connect(("127.0.0.1", server.port))
        client.send(query(name))
        return client.recv(4096)[-1]


def test_a_file_that_changed_unseen_is_read_again_and_connections_stay(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.1 app.example.org\n")
    with (
        serving(tmp_path, "--hosts-file", str(hosts), "--upstream", "192.0.2.53") as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as stream,
        stream.makefile("rb") as received,
    ):
        status = hosts.stat()
        hosts.write_text("192.0.2.2 app.example.org\n")
        os.utime(hosts, ns=(status.st_atime_ns, status.st_mtime_ns))
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: last_octet(server, "app.example.org") == 2, process=server.process, log=server.log)
        assert b"reading the files again" in server.log.read_bytes()
        stream.sendall(framed(query("app.example.org")))
        assert received.read(int.from_bytes(received.read(2), "big"))[-1] == 2


def test_an_unusable_file_changes_nothing(tmp_path: Path) -> None:
    hosts, resolv_conf = tmp_path / "hosts", tmp_path / "resolv.conf"
    hosts.write_text("192.0.2.1 app.example.org\n")
    resolv_conf.write_text("nameserver 192.0.2.53\n")
    flags = ("--hosts-file", str(hosts), "--resolv-conf", str(resolv_conf))
    with serving(tmp_path, *flags) as server:
        hosts.unlink()
        resolv_conf.write_text("# nothing\n")
        server.process.send_signal(signal.SIGHUP)
        wait_for(
            lambda: server.log.read_bytes().count(b"cannot use a file") == 2, process=server.process, log=server.log
        )
        assert last_octet(server, "app.example.org") == 1
