"""`proxy tap` and `--access-log` with the real command, of one process and of several."""

from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from proxy.cli import main
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, wait_for

V4 = "127.0.0.1"


class Running:
    """A relay with one route to a socket of the test, and one to a closed port."""

    def __init__(
        self, process: subprocess.Popen[bytes], backend: socket.socket, ports: list[int], folder: Path
    ) -> None:
        self.process = process
        self.backend = backend
        self.good, self.bad, self.admin = ports
        self.folder = folder

    def connect(self) -> None:
        """One connection that ends well."""
        with socket.create_connection((V4, self.good), timeout=20) as client:
            client.sendall(b"hello")
            accepted, _ = self.backend.accept()
            with accepted:
                assert accepted.recv(100)

    def fail(self) -> None:
        """One connection without a backend."""
        # The reset may come before connect has returned.
        with pytest.raises(ConnectionResetError), socket.create_connection((V4, self.bad), timeout=20) as client:
            client.recv(1)

    def tap(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "proxy", "tap", "--admin", f"{V4}:{self.admin}", *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def access_log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "stdout").read_text().splitlines()]


@contextmanager
def relay(folder: Path, *arguments: str) -> Iterator[Running]:
    *ports, closed = free_ports(4)
    good, bad, admin = ports
    log = folder / "stderr"
    with socket.create_server((V4, 0)) as backend, log.open("wb") as stderr, (folder / "stdout").open("wb") as stdout:
        route = f"{V4}:{good}={V4}:{backend.getsockname()[1]},proxy-protocol=none"
        flags = ["--route", route, "--route", f"{V4}:{bad}={V4}:{closed}", "--admin", f"{V4}:{admin}", *arguments]
        process = subprocess.Popen([sys.executable, "-m", "proxy", *flags], stdout=stdout, stderr=stderr)
        try:
            wait_for(lambda: b'"limits"' in log.read_bytes(), process=process, log=log)
            yield Running(process, backend, ports, folder)
        finally:
            end_process(process)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_tap_and_the_access_log_show_the_same_connections(tmp_path: Path, workers: str) -> None:
    with relay(tmp_path, "--access-log", "--workers", workers) as running:
        tap = running.tap("--output", "json", "--count", "4")
        while tap.poll() is None:
            running.connect()
            running.fail()
        shown, notes = tap.communicate()
        assert (tap.returncode, notes) == (0, "")
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(60) == 0
        logged = running.access_log()
    events = [json.loads(line) for line in shown.splitlines()]
    assert len(events) == 4
    assert all(one in logged for one in events)
    assert {one["end"] for one in logged} == {"closed", "no backend"}
    for one in logged:
        good = one["end"] == "closed"
        assert one["route"] == f"{V4}:{running.good if good else running.bad}"
        assert (one["bytes_in"], one["cause"]) == ((5, "") if good else (0, "connection-refused"))


def test_what_a_drain_resets_is_in_the_access_log_as_stopped(tmp_path: Path) -> None:
    with relay(tmp_path, "--access-log", "--drain", "0.2") as running:
        with socket.create_connection((V4, running.good), timeout=20) as client:
            client.sendall(b"hello")
            accepted, _ = running.backend.accept()
            with accepted:
                accepted.recv(100)
                running.process.send_signal(signal.SIGTERM)
                assert running.process.wait(60) == 0
        assert [one["end"] for one in running.access_log()] == ["stopped"]


def test_without_the_flag_stdout_stays_empty_and_the_tap_shows_lines_for_people(tmp_path: Path) -> None:
    with relay(tmp_path) as running:
        tap = running.tap("--client", "127.0.0.0/8", "--end", "no-backend", "--count", "1")
        while tap.poll() is None:
            running.connect()
            running.fail()
        shown, _ = tap.communicate()
        assert tap.returncode == 0
        assert shown.endswith("no backend (connection-refused)\n")
        assert not running.access_log()


def test_an_interrupted_tap_ends_by_what_it_saw(tmp_path: Path) -> None:
    with relay(tmp_path) as running:
        tap = running.tap()
        assert tap.stdout is not None
        running.connect()
        lines: list[str] = []
        while not lines:
            running.connect()
            tap.poll()
            lines += _lines_now(tap)
        tap.send_signal(signal.SIGINT)
        tap.communicate()
        assert tap.returncode == 0


def _lines_now(tap: subprocess.Popen[str]) -> list[str]:
    assert tap.stdout is not None
    ready, _, _ = select.select([tap.stdout], [], [], 0.2)
    return [tap.stdout.readline()] if ready else []


def test_a_tap_that_is_off_says_so_and_one_without_connections_answers_no(tmp_path: Path) -> None:
    with relay(tmp_path, "--tap", "off") as running:
        tap = running.tap()
        assert "it runs with --tap off" in tap.communicate()[1]
        assert tap.returncode == 3
    with relay(tmp_path) as running:
        tap = running.tap("--seconds", "0.5")
        assert tap.communicate() == ("", "")
        assert tap.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        pytest.param(["--client", "x"], "--client: 'x' is not an address or network", id="client"),
        pytest.param(["--end", "x"], "--end: 'x' is not an end; it is one of closed, ", id="end"),
        pytest.param(["--route", ""], "--route: '' is not a part of a listening address", id="route"),
        pytest.param(["--count", "0"], "--count: 0 is not in the range x>=1.", id="count"),
        pytest.param(["--seconds", "x"], "--seconds: 'x' is not a number of seconds.", id="seconds"),
        pytest.param(["--admin", "off"], "--admin: 'off' is not ADDR:PORT", id="admin"),
        pytest.param(["--drain", "1"], "No such option '--drain'", id="a flag of the relay"),
        pytest.param(["x"], "unexpected extra argument", id="a word"),
    ],
)
def test_bad_flags_are_named(arguments: list[str], line: str) -> None:
    result = CliRunner().invoke(main, ["tap", *arguments], env={"PROXY_ROUTE": "80=192.0.2.1:80"})
    assert result.exit_code == 2
    assert line in result.stderr


def test_help_shows_the_flags_of_the_tap_and_not_those_of_the_relay() -> None:
    result = CliRunner().invoke(main, ["tap", "--help"])
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: main tap [OPTIONS]")
    assert "--count" in result.stdout
    assert "--drain" not in result.stdout
