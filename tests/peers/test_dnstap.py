"""The real `dnstap` program reads what `--dnstap` sends, and prints what dig sent and got."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.kit import messages
from tests.kit.dig import dig
from tests.kit.dnstap import collecting, place, wait_until
from tests.kit.nsd import running_nsd
from tests.kit.ports import free_port
from tests.kit.serve_process import Serving, serving

pytestmark = pytest.mark.peer("dnstap", "dig", "nsd")
HOST = "app.example.org=192.0.2.10"
BOTH = pytest.mark.parametrize("transport", ["unix", "tcp"])


@contextmanager
def sending(folder: Path, at: str, *arguments: str, upstream: str = "") -> Iterator[Serving]:
    upstream = upstream or "127.0.0.1:9"
    flags = ["--host", HOST, "--upstream", upstream, "--dnstap", at, "--lameduck", "0", *arguments]
    with serving(folder, *flags) as server:
        yield server


def wait_connected(server: Serving, *, connected: float = 1) -> None:
    wait_until(lambda: server.metric("dnsproxy_dnstap_connected") == connected, what=server.log.read_text)


def kinds(shown: list[dict[str, Any]]) -> list[str]:
    return [one["message"]["type"] for one in shown]


def instant(text: str) -> float:
    return datetime.fromisoformat(text.rstrip("Z")[:26]).replace(tzinfo=UTC).timestamp()


def times_of(message: dict[str, Any]) -> list[float]:
    return [instant(message[key]) for key in ("query_time", "response_time") if key in message]


@BOTH
def test_an_answer_from_the_table_is_what_dig_sent_and_got(tmp_path: Path, transport: str) -> None:
    at, client = place(tmp_path, transport), free_port()
    with collecting(tmp_path, at) as collector, sending(tmp_path, at, "--dnstap-identity", "pod-7") as server:
        wait_connected(server)
        begun = time.time()
        dig(server.port, "-b", f"127.0.0.1#{client}", "App.example.org", "A")
        asked, answered = collector.wait_for(2)
        ended = time.time()
    assert kinds([asked, answered]) == ["CLIENT_QUERY", "CLIENT_RESPONSE"]
    for one in (asked, answered):
        assert one["type"] == "MESSAGE"
        assert one["identity"] == "pod-7"
        assert one["version"].startswith("switchback ")
        message = one["message"]
        assert (message["query_address"], message["query_port"]) == ("127.0.0.1", client)
        assert (message["socket_family"], message["socket_protocol"]) == ("INET", "UDP")
        # Microseconds are cut.
        assert all(begun - 0.001 <= instant <= ended for instant in times_of(message))
    assert ";App.example.org.\tIN\t A" in asked["message"]["query_message"]
    assert "status: NOERROR" in answered["message"]["response_message"]
    assert "192.0.2.10" in answered["message"]["response_message"]
    assert "response_time" not in asked["message"]


@BOTH
def test_a_forwarded_query_is_shown_on_both_sides(tmp_path: Path, transport: str) -> None:
    at, client = place(tmp_path, transport), free_port()
    with (
        running_nsd(tmp_path, "www A 192.0.2.99\n") as upstream,
        collecting(tmp_path, at) as collector,
        sending(tmp_path, at, upstream=f"127.0.0.1:{upstream}") as server,
    ):
        wait_connected(server)
        dig(server.port, "-b", f"127.0.0.1#{client}", "www.example.org", "A")
        found = collector.wait_for(4)
        dig(server.port, "none.example.org", "AAAA")
        missing = collector.wait_for(8)[4:]
    assert kinds(found) == ["CLIENT_QUERY", "FORWARDER_QUERY", "FORWARDER_RESPONSE", "CLIENT_RESPONSE"]
    for one in found[1:3]:
        message = one["message"]
        assert (message["response_address"], message["response_port"]) == ("127.0.0.1", upstream)
        assert "query_address" not in message
    assert found[0]["message"]["query_port"] == found[3]["message"]["query_port"] == client
    assert "192.0.2.99" in found[2]["message"]["response_message"]
    assert "192.0.2.99" in found[3]["message"]["response_message"]
    began = [times_of(one["message"])[0] for one in found]
    assert began[0] <= began[1]
    assert times_of(found[2]["message"])[1] <= times_of(found[3]["message"])[1]
    assert kinds(missing) == kinds(found)
    assert ";none.example.org.\tIN\t AAAA" in missing[0]["message"]["query_message"]
    assert "status: NXDOMAIN" in missing[3]["message"]["response_message"]


def test_tcp_is_told_of_clients_and_of_upstreams(tmp_path: Path) -> None:
    at, client = place(tmp_path, "unix"), free_port()
    with (
        running_nsd(tmp_path, "www A 192.0.2.99\n") as upstream,
        collecting(tmp_path, at) as collector,
        sending(tmp_path, at, upstream=f"tcp://127.0.0.1:{upstream}") as server,
    ):
        wait_connected(server)
        dig(server.port, "+tcp", "-b", f"127.0.0.1#{client}", "www.example.org", "A")
        found = collector.wait_for(4)
    assert [one["message"]["socket_protocol"] for one in found] == ["TCP"] * 4
    assert found[0]["message"]["query_port"] == client
    assert found[1]["message"]["response_port"] == upstream


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        pytest.param("-q", ["CQ 127.0.0.1 UDP", "CR 127.0.0.1 UDP", '"app.example.org." IN A'], id="quiet text"),
        pytest.param(
            "-y", ["type: CLIENT_QUERY", "type: CLIENT_RESPONSE", "socket_protocol: UDP", "status: NOERROR"], id="YAML"
        ),
    ],
)
def test_its_other_outputs_read_the_same(tmp_path: Path, option: str, shown: list[str]) -> None:
    at = place(tmp_path, "unix")
    with collecting(tmp_path, at, option) as collector, sending(tmp_path, at) as server:
        wait_connected(server)
        dig(server.port, "app.example.org", "A")
        wait_until(lambda: all(part in collector.output.read_text() for part in shown), what=collector.output.read_text)


def test_queries_of_workers_reach_the_collector(tmp_path: Path) -> None:
    at = place(tmp_path, "tcp")
    with collecting(tmp_path, at) as collector, sending(tmp_path, at, "--workers", "2") as server:
        wait_connected(server)

        def is_shown() -> bool:
            # A worker shows its queries from the moment that it knows of a listener.
            dig(server.port, "app.example.org", "A")
            return len(collector.lines()) >= 2

        wait_until(is_shown)
        assert kinds(collector.messages())[:2] == ["CLIENT_QUERY", "CLIENT_RESPONSE"]


@BOTH
def test_a_collector_that_starts_late_and_one_that_restarts_are_found(tmp_path: Path, transport: str) -> None:
    at = place(tmp_path, transport)
    with sending(tmp_path, at) as server:
        dig(server.port, "app.example.org", "A")
        wait_until(lambda: b"not reached" in server.log.read_bytes(), what=server.log.read_text)
        with collecting(tmp_path, at) as collector:
            wait_connected(server)
            dig(server.port, "app.example.org", "AAAA")
            assert "AAAA" in collector.wait_for(2)[0]["message"]["query_message"]
        wait_connected(server, connected=0)
        dig(server.port, "app.example.org", "A")
        Path(at.removeprefix("unix:")).unlink(missing_ok=True)
        with collecting(tmp_path, at, name="second") as collector:
            wait_connected(server)
            dig(server.port, "app.example.org", "TXT")
            assert "TXT" in collector.wait_for(2)[0]["message"]["query_message"]
            assert server.metric("dnsproxy_dnstap_sent_total") == 2
            # One each while there was no collector; only the second is sure to be counted as such.
            assert 1 <= server.metric("dnsproxy_dnstap_dropped_total") <= 2


@BOTH
def test_the_end_of_the_server_is_told_and_nothing_is_lost(tmp_path: Path, transport: str) -> None:
    at = place(tmp_path, transport)
    with collecting(tmp_path, at) as collector, sending(tmp_path, at) as server:
        wait_connected(server)
        for number in range(300):
            dig_free(server, f"n{number}.app.example.org")
        assert server.terminate() == 0
        collector.wait_for(300)
        wait_until(lambda: "closed connection" in collector.log.read_text(), what=collector.log.read_text)
        assert "error" not in collector.log.read_text().lower()
        assert b"the server ends" in server.log.read_bytes()


def test_a_collector_that_hangs_slows_no_answer_and_no_end(tmp_path: Path) -> None:
    at = place(tmp_path, "unix")
    with collecting(tmp_path, at) as collector, sending(tmp_path, at) as server:
        wait_connected(server)
        collector.hang()
        for _ in range(30):
            assert dig(server.port, "app.example.org", "A").status == "NOERROR"
        begun = time.monotonic()
        assert server.terminate() == 0
        assert time.monotonic() - begun < 10


def dig_free(server: Serving, name: str) -> None:
    """A query without a wait for its reply."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(messages.query(name), ("127.0.0.1", server.port))
