"""`dnsproxy serve --workers N` with real processes: what dies, hangs or ends, and which query has an answer then."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from sidecar.sockets.listeners import bound_endpoint, listen_both
from sidecar.values.endpoints import Endpoint
from tests.kit import messages
from tests.kit.handing_over import started_with
from tests.kit.polling import poll_until
from tests.kit.ports import free_port
from tests.kit.processes import StartFailed
from tests.kit.scraping import is_ready, scrape
from tests.kit.serve_inside import addresses_in
from tests.kit.serve_process import Serving, serving
from tests.kit.upstream_replies import framed
from tests.kit.worker_processes import (
    MANY,
    HeldUpstream,
    ask_all,
    clients,
    is_alive,
    receive_all,
    send_all,
    spawner_of,
    stop,
    waiting_octets,
    workers_of,
)

NAME, ADDRESS = "app.example.org", "192.0.2.10"
STATIC = ("--host", f"{NAME}={ADDRESS}")
QUICK = (*STATIC, "--upstream", "127.0.0.1:9", "--lameduck", "0")
PATIENCE = 20.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    """Two workers with one static name."""
    with serving(tmp_path, "--workers", "2", *QUICK) as running:
        yield running


def stream_to(server: Serving) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


def read_reply(stream: socket.socket) -> bytes:
    """One message, or nothing at the end."""
    received = b""
    while len(received) < 2 or len(received) < 2 + int.from_bytes(received[:2], "big"):
        octets = stream.recv(4096)
        if not octets:
            return b""
        received += octets
    return received[2:]


def counted(server: Serving) -> float:
    return server.metric("dnsproxy_dns_requests_total")


def responses(server: Serving) -> float:
    """None of them has a sample yet until the first."""
    return scrape(server.admin).get("dnsproxy_dns_responses_total", 0.0)


def all_gone(processes: list[int]) -> bool:
    return not any(map(is_alive, processes))


def signal_all(processes: list[int], number: signal.Signals) -> None:
    """As a service manager or a terminal does; what the first ones have ended by then is signalled no more."""
    for one in processes:
        with suppress(ProcessLookupError):
            os.kill(one, number)


def ask_until_answered(asking: Sequence[socket.socket], *, attempts: int) -> None:
    """Ask again after a second without an answer, as every resolver does."""
    send_all(asking, NAME)
    for _ in range(attempts):
        with suppress(AssertionError):
            receive_all(asking, seconds=1)
            return
        send_all(asking, NAME)
    receive_all(asking)


def ask_for_ever(client: socket.socket) -> None:
    while True:
        send_all([client], NAME)
        receive_all([client])


# --- Together they are one server ---


def test_all_workers_answer_and_are_counted_as_one_server(server: Serving) -> None:
    assert len(workers_of(server)) == 2
    with clients(server.port) as asking:
        stop(workers_of(server)[0])
        send_all(asking, NAME)
        # Each worker has clients of its own: some of them wait.
        poll_until(lambda: waiting_octets(server.port), "no query is for the stopped worker", seconds=PATIENCE)
        os.kill(workers_of(server)[0], signal.SIGCONT)
        assert receive_all(asking) == [[ADDRESS]] * MANY
    with stream_to(server) as stream:
        stream.sendall(framed(messages.query(NAME)))
        assert addresses_in(read_reply(stream)) == [ADDRESS]
    poll_until(lambda: counted(server) == MANY + 1, "a query is not counted", seconds=PATIENCE)
    assert server.metric("dnsproxy_workers") == 2
    assert is_ready(server.admin)


def test_a_changed_hosts_file_reaches_all_workers(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.1 a.example.org\n")
    with serving(tmp_path, "--workers", "3", "--hosts-file", str(hosts), *QUICK) as server:
        assert ask_all(server.port, "a.example.org") == [["192.0.2.1"]] * MANY
        hosts.write_text("192.0.2.2 a.example.org\n")
        poll_until(lambda: ["192.0.2.2"] in ask_all(server.port, "a.example.org"), "not changed", seconds=PATIENCE)
        poll_until(lambda: ask_all(server.port, "a.example.org") == [["192.0.2.2"]] * MANY, "not all", seconds=PATIENCE)
        poll_until(lambda: server.metric("dnsproxy_worker_table_lag_seconds") < 0.1, "they lag", seconds=PATIENCE)


def test_other_names_are_forwarded_by_all_workers(tmp_path: Path) -> None:
    with HeldUpstream() as upstream:
        upstream.release.set()
        with serving(tmp_path, "--workers", "2", "--upstream", upstream.endpoint) as server:
            assert all(ask_all(server.port, "www.example.com"))
            # A worker may report a query before its response.
            poll_until(lambda: responses(server) == MANY, "a response is not counted", seconds=PATIENCE)
            assert counted(server) == MANY
            assert server.metric("dnsproxy_forward_upstream_healthy") == 1


def test_two_servers_with_workers_share_a_port_only_if_both_say_so(tmp_path: Path) -> None:
    port = free_port()
    with serving(tmp_path, "--workers", "2", "--share-ports", *QUICK, port=port) as first:
        with serving(tmp_path, "--workers", "2", "--share-ports", *QUICK, port=port):
            assert ask_all(port, NAME) == [[ADDRESS]] * MANY
            assert counted(first) < MANY
        with (
            pytest.raises(StartFailed, match="the address is in use"),
            serving(tmp_path, "--workers", "2", *QUICK, port=port),
        ):
            pass


def test_the_sockets_of_a_unit_are_shared_by_all_workers() -> None:
    with ExitStack() as stack:
        tcp, udp = map(stack.enter_context, listen_both(Endpoint("127.0.0.1", 0), flag="test"))
        arguments = ("-m", "dnsproxy", "serve", "--workers", "2", "--listen", "systemd", "--admin", "off", *QUICK)
        process = stack.enter_context(started_with([tcp, udp], *arguments))
        assert process.stderr is not None
        assert any("serving" in line for line in process.stderr)
        assert ask_all(bound_endpoint(udp).port, NAME) == [[ADDRESS]] * MANY
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_the_page_shows_each_worker_and_how_often_it_was_replaced(server: Serving) -> None:
    victim, other = workers_of(server)
    os.kill(victim, signal.SIGKILL)
    poll_until(lambda: server.metric("dnsproxy_workers") == 2, "not replaced", seconds=PATIENCE)
    poll_until(lambda: server.metric("dnsproxy_worker_restarts_total") == 1, "not counted", seconds=PATIENCE)
    with urllib.request.urlopen(f"http://{server.admin}/") as reply:
        page = reply.read().decode()
    assert "Workers" in page
    assert f">{other}<" in page
    assert f">{victim}<" not in page


# --- A worker that dies or hangs ---


def test_what_waits_for_a_killed_worker_is_answered_by_the_next_one(server: Serving) -> None:
    victim, other = workers_of(server)
    stop(victim)
    with clients(server.port) as asking, stream_to(server) as stream:
        send_all(asking, NAME)
        stream.sendall(framed(messages.query(NAME)))
        poll_until(lambda: waiting_octets(server.port), "no query waits", seconds=PATIENCE)
        os.kill(victim, signal.SIGKILL)
        assert receive_all(asking) == [[ADDRESS]] * MANY
        assert addresses_in(read_reply(stream)) == [ADDRESS]
    assert other in workers_of(server)
    assert victim not in workers_of(server)
    assert server.metric("dnsproxy_worker_restarts_total") == 1


def test_a_hung_worker_is_replaced_and_its_clients_are_answered(server: Serving) -> None:
    """Before they give up: test_restarts.py has the seconds, which a busy machine stretches here."""
    victim = workers_of(server)[0]
    stop(victim)
    with clients(server.port) as asking:
        send_all(asking, NAME)
        assert receive_all(asking, seconds=PATIENCE) == [[ADDRESS]] * MANY
    assert not is_alive(victim)
    assert server.metric("dnsproxy_worker_restarts_total") == 1


def test_counts_never_decrease_and_no_query_is_lost_while_workers_die(server: Serving) -> None:
    """A query that a worker had read when it was killed is asked again; each death may cost it one attempt."""
    ended = Event()
    deaths = 5
    failures: list[Exception] = []

    def load() -> None:
        while not ended.is_set():
            try:
                with clients(server.port, 16) as asking:
                    ask_until_answered(asking, attempts=deaths)
            except (AssertionError, OSError) as error:
                failures.append(error)

    loading = Thread(target=load)
    loading.start()
    try:
        before = 0.0
        for restarts in range(1, deaths + 1):
            # A worker reports its counts twice a second; those since then die with it.
            enough = before + MANY
            poll_until(lambda enough=enough: counted(server) > enough, "no more queries", seconds=PATIENCE)  # type: ignore[misc]
            before = counted(server)
            os.kill(workers_of(server)[0], signal.SIGKILL)
            while server.metric("dnsproxy_worker_restarts_total") < restarts:
                assert counted(server) >= before
                before = counted(server)
    finally:
        ended.set()
        loading.join()
    assert failures == []


def test_a_server_whose_workers_all_hang_is_not_ready_until_they_are_replaced(server: Serving) -> None:
    for one in workers_of(server):
        stop(one)
    poll_until(lambda: not is_ready(server.admin), "ready although no worker answers", seconds=PATIENCE)
    poll_until(lambda: is_ready(server.admin), "not ready again", seconds=PATIENCE)
    assert ask_all(server.port, NAME) == [[ADDRESS]] * MANY


def test_a_replaced_worker_has_the_newest_table_and_upstreams(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.1 a.example.org\n")
    with serving(tmp_path, "--workers", "2", "--hosts-file", str(hosts), *QUICK) as server:
        hosts.write_text("192.0.2.2 a.example.org\n")
        poll_until(lambda: ask_all(server.port, "a.example.org") == [["192.0.2.2"]] * MANY, "new", seconds=PATIENCE)
        for one in workers_of(server):
            os.kill(one, signal.SIGKILL)
        assert ask_all(server.port, "a.example.org") == [["192.0.2.2"]] * MANY


# --- The end ---


def test_a_signal_to_all_processes_drains_them(tmp_path: Path) -> None:
    """A service manager and a terminal signal every process of a service at once."""
    with (
        HeldUpstream() as upstream,
        serving(tmp_path, "--workers", "2", *STATIC, "--upstream", upstream.endpoint, "--lameduck", "0") as server,
        stream_to(server) as idle,
        clients(server.port, 8) as asking,
    ):
        processes = [spawner_of(server), *workers_of(server)]
        idle.sendall(framed(messages.query(NAME)))
        assert addresses_in(read_reply(idle)) == [ADDRESS]
        send_all(asking, "www.example.com")
        assert upstream.asked.wait(PATIENCE)
        signal_all([server.process.pid, *processes], signal.SIGTERM)
        poll_until(lambda: b'"stopping"' in server.log.read_bytes(), "stopping", seconds=PATIENCE)
        upstream.release.set()
        assert all(receive_all(asking))
        # It ends with FIN; a reset raises.
        assert read_reply(idle) == b""
        assert server.process.wait(PATIENCE) == 0
        assert all_gone(processes)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_at_the_end_each_query_is_answered_or_refused(tmp_path: Path, workers: str) -> None:
    with serving(tmp_path, *QUICK, "--workers", workers) as server, clients(server.port) as asking:
        server.process.terminate()
        for one in asking:
            with pytest.raises(ConnectionRefusedError):
                ask_for_ever(one)
        assert server.process.wait(PATIENCE) == 0


def test_ctrl_c_ends_all_with_the_status_of_one_process(server: Serving) -> None:
    processes = [spawner_of(server), *workers_of(server)]
    signal_all([server.process.pid, *processes], signal.SIGINT)
    assert server.process.wait(PATIENCE) == 130
    assert all_gone(processes)


def test_a_hung_worker_delays_no_end(server: Serving) -> None:
    processes = [spawner_of(server), *workers_of(server)]
    stop(processes[-1])
    assert server.terminate() == 0
    assert all_gone(processes)


def test_a_stopped_spawner_delays_the_end_by_seconds_at_most(server: Serving) -> None:
    processes = [spawner_of(server), *workers_of(server)]
    stop(processes[0])
    assert server.terminate() == 0
    poll_until(lambda: all_gone(processes), "an orphan", seconds=PATIENCE)


@pytest.mark.parametrize("hung", [pytest.param(False, id="all well"), pytest.param(True, id="a worker hangs")])
def test_a_killed_parent_leaves_no_process(server: Serving, hung: bool) -> None:
    processes = [spawner_of(server), *workers_of(server)]
    if hung:
        stop(processes[-1])
    server.kill()
    poll_until(lambda: all_gone(processes), "an orphan", seconds=PATIENCE)


def test_without_the_process_that_starts_workers_the_server_ends_and_says_why(server: Serving) -> None:
    processes = workers_of(server)
    os.kill(spawner_of(server), signal.SIGKILL)
    assert server.process.wait(PATIENCE) == 3
    poll_until(lambda: all_gone(processes), "an orphan", seconds=PATIENCE)
    assert "the process that starts workers has ended" in server.log.read_text()


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", "10000", ""])
def test_a_number_of_workers_that_is_none_is_refused(number: str) -> None:
    command = [sys.executable, "-m", "dnsproxy", "serve", f"--workers={number}", *QUICK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert "--workers" in done.stderr
