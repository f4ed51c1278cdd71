"""A primary and a replica with workers: what arrives at any worker has the answer of the one process with the zones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.rdatatype
import dns.tsig
import dns.tsigkeyring
import dns.zone
import pytest

from tests.kit.polling import poll_until
from tests.kit.serve_process import Serving, serving
from tests.kit.worker_processes import MANY, ask_all

ZONE = "rpz.example.org"
ZONE_OF_ROWS = f"_switchback.{ZONE}"
SECRET = "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlYw=="
KEY = f'key "transfer" {{ algorithm hmac-sha256; secret "{SECRET}"; }};\n'
RING = dns.tsigkeyring.from_text({"transfer": SECRET})
NAMES = 3000
PATIENCE = 20.0
TRANSFERS = 6
ATTEMPTS = 12
"""Queries from ports of their own: nearly certain to reach both workers."""


def hosts(count: int, *, last: int = 1) -> str:
    return "".join(f"192.0.2.{last} app-{number}.example.org\n" for number in range(count))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(KEY)
    return file


@pytest.fixture
def primary(tmp_path: Path, key: Path) -> Iterator[Serving]:
    (tmp_path / "hosts").write_text(hosts(NAMES))
    flags = ("--hosts-file", str(tmp_path / "hosts"), "--rpz", ZONE, "--rpz-key", str(key), "--upstream", "127.0.0.1:9")
    with serving(tmp_path, "--workers", "2", "--lameduck", "0", *flags) as running:
        poll_until(lambda: soa(running) is not None, "no version", seconds=PATIENCE)
        yield running


def soa(server: Serving, *, stream: bool = False) -> int | None:
    """The serial, asked with the key; None without one."""
    query = dns.message.make_query(ZONE, "SOA")
    query.use_tsig(RING)
    ask = dns.query.tcp if stream else dns.query.udp
    reply = ask(query, "127.0.0.1", timeout=PATIENCE, port=server.port)
    if reply.rcode() != dns.rcode.NOERROR:
        return None
    return int(reply.answer[0][0].serial)


def transferred(server: Serving) -> dns.zone.Zone:
    zone = dns.zone.Zone(ZONE)
    query, _ = dns.xfr.make_query(zone, keyring=RING)
    dns.query.inbound_xfr("127.0.0.1", zone, query, port=server.port, timeout=PATIENCE)
    return zone


def test_every_worker_answers_for_the_zones_with_signatures(primary: Serving) -> None:
    serials = {soa(primary, stream=stream) for stream in (False, True) for _ in range(ATTEMPTS)}
    assert len(serials) == 1
    assert None not in serials


def test_a_zone_of_many_messages_is_transferred_by_every_worker(primary: Serving) -> None:
    zones = [transferred(primary) for _ in range(TRANSFERS)]
    assert all(len(zone.nodes) > NAMES for zone in zones)
    poll_until(
        lambda: primary.metric("dnsproxy_rpz_transfers_total") >= TRANSFERS, "transfers are counted", seconds=PATIENCE
    )


def test_a_request_without_the_key_is_refused_by_every_worker(primary: Serving) -> None:
    for ask in (dns.query.udp, dns.query.tcp):
        for _ in range(ATTEMPTS):
            query = dns.message.make_query(ZONE, "SOA")
            reply = ask(query, "127.0.0.1", timeout=PATIENCE, port=primary.port)
            assert reply.rcode() == dns.rcode.REFUSED


def test_a_notify_at_any_worker_makes_a_replica_with_workers_refresh(
    primary: Serving, tmp_path: Path, key: Path
) -> None:
    source = ("--source", f"rpz:{ZONE}@127.0.0.1:{primary.port}", "--rpz-key", str(key), "--upstream", "127.0.0.1:9")
    with serving(tmp_path, "--workers", "2", "--lameduck", "0", *source) as replica:
        poll_until(
            lambda: ask_all(replica.port, "app-1.example.org") == [["192.0.2.1"]] * MANY, "all", seconds=PATIENCE
        )
        for last in (2, 3):
            before = soa(primary)
            # At once: half a file would be a version too, and the NOTIFY would be for that one.
            (tmp_path / "new").write_text(hosts(NAMES, last=last))
            (tmp_path / "new").replace(tmp_path / "hosts")
            poll_until(lambda before=before: soa(primary) != before, "a version", seconds=PATIENCE)  # type: ignore[misc]
            notify = dns.message.make_query(ZONE_OF_ROWS, "SOA")
            notify.set_opcode(dns.opcode.NOTIFY)
            reply = dns.query.udp(notify, "127.0.0.1", timeout=PATIENCE, port=replica.port)
            assert reply.rcode() == dns.rcode.NOERROR
            wanted = [[f"192.0.2.{last}"]] * MANY
            poll_until(
                lambda wanted=wanted: ask_all(replica.port, "app-1.example.org") == wanted,  # type: ignore[misc]
                "refreshed before a minute is over",
                seconds=PATIENCE,
            )
