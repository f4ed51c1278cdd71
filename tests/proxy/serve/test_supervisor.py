"""Several workers on one port, with the real command.

Also tests fleet.py and worker_process.py.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proxy.serve.silence import HUNG_SECONDS
from tests.kit.log_lines import whole_lines
from tests.kit.ports import free_ports
from tests.kit.processes import wait_for
from tests.proxy.test_cli import STARTED, V4, backend, program

WORKERS = 3


@dataclass(frozen=True)
class Relay:
    """A relay of several processes, and the listening socket of the backend that the test plays."""

    process: subprocess.Popen[bytes]
    log: Path
    backend: socket.socket
    port: int
    admin: int

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in whole_lines(self.log)]

    def named(self, event: str) -> list[dict[str, Any]]:
        return [entry for entry in self.events() if entry["event"] == event]

    def until(self, condition: Any) -> None:
        wait_for(condition, process=self.process, log=self.log)

    def workers(self) -> list[int]:
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]

    def metrics(self) -> dict[str, float]:
        text = urllib.request.urlopen(f"http://{V4}:{self.admin}/metrics").read().decode()
        rows = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in rows}

    def readiness(self) -> tuple[int, str]:
        """The status and the text of /readyz."""
        try:
            with urllib.request.urlopen(f"http://{V4}:{self.admin}/readyz") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def exchange(self) -> None:
        """Make a connection that sends data each way."""
        with self.connected() as (client, served):
            served.sendall(b"answer")
            assert client.recv(100) == b"answer"

    @contextmanager
    def connected(self) -> Iterator[tuple[socket.socket, socket.socket]]:
        with socket.create_connection((V4, self.port), timeout=20) as client:
            client.sendall(b"request")
            served, _ = self.backend.accept()
            with served:
                served.settimeout(20)
                assert served.recv(100) == b"request"
                yield client, served


@contextmanager
def relay(folder: Path, *arguments: str, workers: int = WORKERS) -> Iterator[Relay]:
    log = folder / "log"
    port, admin = free_ports(2)
    with backend() as listening:
        route = f"{V4}:{port}={V4}:{listening.getsockname()[1]},proxy-protocol=none"
        flags = ("--route", route, "--admin", f"{V4}:{admin}", "--workers", str(workers), *arguments)
        with program(log, *flags) as process:
            wait_for(lambda: STARTED in log.read_bytes(), process=process, log=log)
            made = Relay(process, log, listening, port, admin)
            started = made.workers()
            try:
                yield made
            finally:
                # After the kill, no worker may be left for the next test, not even one that a test has stopped.
                for one in made.workers() if process.poll() is None else ():
                    os.kill(one, signal.SIGCONT)
                process.kill()
                process.wait()
                wait_until_gone(started)


def wait_until_gone(processes: list[int]) -> None:
    for one in processes:
        while is_alive(one):
            time.sleep(0.01)


def is_alive(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return "Z" not in stat.rpartition(")")[2].split()[0]


def listeners_of(port: int) -> int:
    """The number of sockets that listen on an IPv4 port (proc(5), /proc/net/tcp)."""
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A" for row in rows)


def test_all_workers_listen_and_connections_pass_through_them(tmp_path: Path) -> None:
    with relay(tmp_path) as running:
        assert len(running.workers()) == listeners_of(running.port) == WORKERS
        for _ in range(20):
            running.exchange()
        running.until(lambda: running.metrics()["proxy_connections_total"] == 20)
        running.until(lambda: running.metrics()["proxy_connections_active"] == 0)
        metrics = running.metrics()
        assert metrics["proxy_workers"] == WORKERS
        assert metrics['proxy_bytes_total{direction="to_client"}'] == 20 * len(b"answer")
        assert len(running.named("relaying")) == 1
        assert urllib.request.urlopen(f"http://{V4}:{running.admin}/").status == 200


def test_readiness_is_the_backends_and_the_workers(tmp_path: Path) -> None:
    with relay(tmp_path) as running:
        assert urllib.request.urlopen(f"http://{V4}:{running.admin}/readyz").status == 200


def test_a_dead_worker_is_logged_and_restarted_and_the_others_continue(tmp_path: Path) -> None:
    with relay(tmp_path, workers=2) as running, ExitStack() as open_ones:
        pairs = [open_ones.enter_context(running.connected()) for _ in range(12)]
        running.until(lambda: running.metrics()["proxy_connections_total"] == 12)
        victim, other = running.workers()
        os.kill(victim, signal.SIGKILL)
        running.until(lambda: running.named("worker ended"))
        running.until(lambda: len(running.workers()) == 2 == listeners_of(running.port))
        assert other in running.workers()
        told = running.named("worker ended")[0]
        assert told["status"] == -signal.SIGKILL
        assert told["restart_seconds"] < 1
        alive = sum(answers(*pair) for pair in pairs)
        running.until(lambda: running.metrics()["proxy_workers"] == 2)
        metrics = running.metrics()
        assert metrics["proxy_worker_restarts_total"] == 1
        # The totals of the dead worker stay; its open connections do not.
        assert metrics["proxy_connections_total"] == 12
        assert metrics["proxy_connections_active"] == alive
        for _ in range(10):
            running.exchange()


def test_a_hung_worker_is_noticed_and_replaced_and_the_other_continues(tmp_path: Path) -> None:
    with relay(tmp_path, workers=2) as running, ExitStack() as open_ones:
        # So many that the other worker has some: the kernel draws one of the two for each.
        pairs = [open_ones.enter_context(running.connected()) for _ in range(40)]
        hung, other = running.workers()
        os.kill(hung, signal.SIGSTOP)
        # The kernel gives about half of these to the hung worker, which never accepts them.
        waiting = [open_ones.enter_context(socket.create_connection((V4, running.port), timeout=20)) for _ in range(20)]
        running.until(lambda: running.readiness() == (503, "1 of 2 workers are silent\n"))
        running.until(lambda: running.named("worker silent, killing it"))
        assert running.named("worker silent, killing it")[0]["pid"] == hung
        # Until the supervisor counts it, the killed worker may be a child still, and listen.
        running.until(lambda: running.metrics()["proxy_worker_restarts_total"] == 1)
        running.until(lambda: running.readiness()[0] == 200)
        running.until(lambda: len(running.workers()) == 2 == listeners_of(running.port))
        assert other in running.workers()
        assert not is_alive(hung)
        assert any(answers(*pair) for pair in pairs)
        left = [client for client in waiting if not has_ended(client)]
        while select.select([running.backend], [], [], 0)[0]:
            served = open_ones.enter_context(running.backend.accept()[0])
            # A probe of /readyz is among them, and has left.
            with suppress(ConnectionError):
                served.sendall(b"hello")
        for client in left:
            client.settimeout(20)
            assert client.recv(100) == b"hello"
        assert len(left) < len(waiting)
        for _ in range(10):
            running.exchange()


def has_ended(client: socket.socket) -> bool:
    """Whether a connection over which nothing is sent has been reset."""
    client.setblocking(False)
    try:
        assert client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True


def test_a_pause_of_the_supervisor_costs_no_worker(tmp_path: Path) -> None:
    with relay(tmp_path, workers=2) as running, ExitStack() as open_ones:
        pairs = [open_ones.enter_context(running.connected()) for _ in range(4)]
        workers = running.workers()
        running.process.send_signal(signal.SIGSTOP)
        since = time.monotonic()
        # There is nothing else to wait for: the length of the pause is what is tested.
        wait_for(lambda: time.monotonic() - since > HUNG_SECONDS + 1, process=running.process, log=running.log)
        running.process.send_signal(signal.SIGCONT)
        running.exchange()
        running.until(lambda: running.metrics()["proxy_connections_total"] == 5)
        assert running.readiness()[0] == 200
        assert running.workers() == workers
        assert all(answers(*pair) for pair in pairs)
        assert not running.named("worker silent, killing it")


def test_a_worker_that_hangs_while_it_drains_holds_nobody_up(tmp_path: Path) -> None:
    with relay(tmp_path, "--drain", "600", workers=2) as running, running.connected() as (client, served):
        hung, other = running.workers()
        running.process.send_signal(signal.SIGTERM)
        running.until(lambda: listeners_of(running.port) == 0)
        for one in (hung, other):
            # The worker without a connection has ended.
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGSTOP)
        # After a pause of its own, the supervisor gives a silent worker all of its time again.
        assert running.process.wait(90) == 0
        assert not any(map(is_alive, (hung, other)))
        del client, served


def answers(client: socket.socket, served: socket.socket) -> bool:
    """Whether a connection still relays; otherwise it has got RST at both ends."""
    try:
        served.sendall(b"still here")
        return client.recv(100) == b"still here"
    except ConnectionResetError:
        return False


def test_a_worker_that_dies_again_and_again_is_started_every_time(tmp_path: Path) -> None:
    with relay(tmp_path, workers=2) as running:
        for count in range(1, 4):
            running.until(lambda: len(running.workers()) == 2)
            os.kill(max(running.workers()), signal.SIGKILL)
            running.until(lambda count=count: len(running.named("worker ended")) == count)
        running.until(lambda: len(running.workers()) == 2 == listeners_of(running.port))
        for _ in range(5):
            running.exchange()


def test_sigterm_drains_every_worker_and_exits_0(tmp_path: Path) -> None:
    with relay(tmp_path) as running, ExitStack() as open_ones:
        pairs = [open_ones.enter_context(running.connected()) for _ in range(8)]
        running.process.send_signal(signal.SIGTERM)
        running.until(lambda: listeners_of(running.port) == 0)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((V4, running.port), timeout=20)
        with pytest.raises(urllib.error.HTTPError) as stopping:
            urllib.request.urlopen(f"http://{V4}:{running.admin}/readyz")
        with stopping.value as answer:
            assert (answer.code, b"stopping" in answer.read()) == (503, True)
        for client, served in pairs:
            served.sendall(b"the rest")
            served.shutdown(socket.SHUT_WR)
            assert client.recv(100) == b"the rest"
            assert client.recv(100) == b""
            client.shutdown(socket.SHUT_WR)
        assert running.process.wait(20) == 0
        assert not running.named("worker ended")


@pytest.mark.parametrize(
    ("number", "status"),
    [pytest.param(signal.SIGTERM, 0, id="SIGTERM"), pytest.param(signal.SIGINT, 130, id="SIGINT")],
)
@pytest.mark.parametrize("end", ["grace", "second signal"])
def test_what_does_not_finish_is_reset_and_no_worker_is_left(
    tmp_path: Path, number: signal.Signals, status: int, end: str
) -> None:
    grace = "0.2" if end == "grace" else "60"
    with relay(tmp_path, "--drain", grace) as running, running.connected() as (client, _):
        workers = running.workers()
        running.process.send_signal(number)
        if end == "second signal":
            running.until(lambda: listeners_of(running.port) == 0)
            running.process.send_signal(number)
        assert running.process.wait(20) == status
        assert not any(map(is_alive, workers))
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_workers_end_with_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    with relay(tmp_path) as running:
        workers = running.workers()
        running.process.kill()
        running.process.wait()
        wait_until_gone(workers)
        assert listeners_of(running.port) == 0


def test_a_port_in_use_is_one_line_and_status_2(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with backend() as taken:
        busy = f"{V4}:{taken.getsockname()[1]}"
        flags = ("--route", f"{busy}=192.0.2.1:80", "--admin", "off", "--workers", "2")
        with program(log, *flags) as process:
            assert process.wait(20) == 2
    (told,) = log.read_text().splitlines()
    assert told.startswith(f"Error: --route {busy}: the address is in use")


def test_an_error_of_all_workers_is_printed_and_ends_the_supervisor(tmp_path: Path) -> None:
    log = tmp_path / "log"
    flags = ("--route", f"{V4}:0=service:apps/none:80", "--kubeconfig", str(tmp_path / "none"), "--admin", "off")
    with program(log, *flags, "--workers", "2") as process:
        assert process.wait(30) != 0
    assert "Traceback" not in log.read_text()
    assert "Error: " in log.read_text()


def test_connections_are_shared_out_and_the_page_has_their_sum(tmp_path: Path) -> None:
    with relay(tmp_path, "--max-connections", "10") as running:
        (limits,) = running.named("limits")
        assert (limits["connections"], limits["workers"]) == (12, WORKERS)
        page = urllib.request.urlopen(f"http://{V4}:{running.admin}/").read()
        assert b'data-live="limit">12<' in page
