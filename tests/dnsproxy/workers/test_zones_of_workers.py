"""Zones behind several workers: whichever of them is asked, the parent answers, and other queries notice nothing."""

from __future__ import annotations

import socket
import struct
from functools import partial
from pathlib import Path

import dns.message
import dns.query
import dns.rdatatype
import dns.zone
import pytest

from tests.kit import messages
from tests.kit.polling import poll_until
from tests.kit.ports import free_port
from tests.kit.serve_inside import addresses_in
from tests.kit.serve_process import Serving, serving
from tests.kit.upstream_replies import framed
from tests.kit.worker_processes import ask_all, clients

ZONE = "rpz.example.org"
QUICK = ("--upstream", "127.0.0.1:9", "--lameduck", "0")
PATIENCE = 20.0


def write_hosts(path: Path, address: str) -> None:
    staged = path.with_suffix(".new")
    staged.write_text(f"{address} app.example.org\n")
    staged.replace(path)


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    path = tmp_path / "hosts"
    write_hosts(path, "192.0.2.10")
    return path


def all_answer(port: int, address: str) -> bool:
    """Whether every worker answers with this address."""
    return all(found == [address] for found in ask_all(port, "app.example.org"))


def published(server: Serving) -> None:
    """Wait for the first version."""
    poll_until(lambda: server.metric("dnsproxy_rpz_serial") > 0, "published", seconds=PATIENCE)


def serial_of(server: Serving) -> int:
    query = dns.message.make_query(ZONE, "SOA")
    reply = dns.query.udp(query, "127.0.0.1", port=server.port, timeout=PATIENCE)
    return int(reply.answer[0][0].serial)


def transferred(server: Serving) -> dns.zone.Zone:
    zone = dns.zone.Zone(ZONE)
    dns.query.inbound_xfr("127.0.0.1", zone, port=server.port, timeout=PATIENCE, lifetime=PATIENCE)
    return zone


def test_every_worker_gives_the_zone_over_udp_and_tcp(tmp_path: Path, hosts: Path) -> None:
    with serving(tmp_path, "--workers", "3", "--hosts-file", str(hosts), "--rpz", ZONE, *QUICK) as server:
        published(server)
        # Many sockets of their own: the kernel spreads them over the workers.
        assert len({serial_of(server) for _ in range(20)}) == 1
        for _ in range(12):
            assert "app.example.org" in {str(name) for name in transferred(server)}


def test_a_stranger_is_refused_by_every_worker(tmp_path: Path, hosts: Path) -> None:
    allowed = ("--rpz", ZONE, "--rpz-allow", "192.0.2.0/24")
    with serving(tmp_path, "--workers", "2", "--hosts-file", str(hosts), *allowed, *QUICK) as server:
        for _ in range(10):
            query = dns.message.make_query(ZONE, "SOA")
            reply = dns.query.udp(query, "127.0.0.1", port=server.port, timeout=PATIENCE)
            assert reply.rcode().name == "REFUSED"
            assert not reply.answer


def test_queries_before_and_after_a_transfer_on_one_connection_are_answered(tmp_path: Path, hosts: Path) -> None:
    with (
        serving(tmp_path, "--workers", "2", "--hosts-file", str(hosts), "--rpz", ZONE, *QUICK) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as stream,
    ):
        published(server)
        table = messages.query("app.example.org")
        transfer = dns.message.make_query(ZONE, "AXFR", id=7).to_wire()
        stream.sendall(framed(struct.pack("!H", 1) + table[2:]) + framed(transfer))
        stream.sendall(framed(struct.pack("!H", 2) + table[2:]))
        found: dict[int, bytes] = {}
        while len(found) < 3:
            size = int.from_bytes(stream.recv(2, socket.MSG_WAITALL), "big")
            reply = stream.recv(size, socket.MSG_WAITALL)
            found[int.from_bytes(reply[:2], "big")] = reply
        assert addresses_in(found[1]) == addresses_in(found[2]) == ["192.0.2.10"]
        assert dns.message.from_wire(found[7], xfr=True).answer[0].rdtype is dns.rdatatype.SOA
        # And it ends in order, as any other connection.
        stream.shutdown(socket.SHUT_WR)
        assert stream.recv(1) == b""


def test_a_notify_to_any_worker_of_a_replica_brings_the_change(tmp_path: Path, hosts: Path) -> None:
    listening = f"127.0.0.1:{free_port()}"
    (tmp_path / "primary").mkdir()
    (tmp_path / "replica").mkdir()
    notify = ("--rpz", ZONE, "--rpz-notify", listening)
    with serving(tmp_path / "primary", "--hosts-file", str(hosts), *notify, *QUICK) as primary:
        source = f"rpz:{ZONE}@127.0.0.1:{primary.port}"
        with serving(
            tmp_path / "replica", "--workers", "2", "--listen", listening, "--source", source, *QUICK
        ) as replica:
            for number in range(11, 16):
                address = f"192.0.2.{number}"
                write_hosts(hosts, address)
                # Less than a refresh, which is a minute away: only a NOTIFY brings it.
                poll_until(partial(all_answer, replica.port, address), address, seconds=PATIENCE)


def test_many_transfers_at_once_leave_the_answers_of_workers_alone(tmp_path: Path, hosts: Path) -> None:
    with (
        serving(tmp_path, "--workers", "2", "--hosts-file", str(hosts), "--rpz", ZONE, *QUICK) as server,
        clients(server.port, 8) as asking,
    ):
        published(server)
        streams = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) for _ in range(40)]
        try:
            request = framed(dns.message.make_query(ZONE, "AXFR").to_wire())
            for stream in streams:
                stream.sendall(request)
            for one in asking:
                one.send(messages.query("app.example.org"))
            assert all(addresses_in(one.recv(4096)) == ["192.0.2.10"] for one in asking)
            for stream in streams:
                assert int.from_bytes(stream.recv(2, socket.MSG_WAITALL), "big") > 0
        finally:
            for stream in streams:
                stream.close()


def test_a_replica_that_ends_saves_what_came_during_its_pause(tmp_path: Path, hosts: Path) -> None:
    (tmp_path / "primary").mkdir()
    (tmp_path / "replica").mkdir()
    saved = tmp_path / "saved"
    listening = f"127.0.0.1:{free_port()}"
    notify = ("--rpz", ZONE, "--rpz-notify", listening)
    with serving(tmp_path / "primary", "--hosts-file", str(hosts), *notify, *QUICK) as primary:
        source = ("--source", f"rpz:{ZONE}@127.0.0.1:{primary.port}", "--snapshot", str(saved))
        with serving(tmp_path / "replica", "--listen", listening, *source, *QUICK) as replica:
            poll_until(saved.exists, "saved", seconds=PATIENCE)
            write_hosts(hosts, "192.0.2.77")
            poll_until(partial(all_answer, replica.port, "192.0.2.77"), "192.0.2.77", seconds=PATIENCE)
            replica.terminate()
    assert b"192.0.2.77" in saved.read_bytes()
