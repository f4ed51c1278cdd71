"""The command `proxy`: all bad flags reported at once, and its program from start to end.

Also tests proxy/settings.py, proxy/serve/program.py and proxy/admin/server.py.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from proxy.cli import main
from tests.kit.idle_crowd import idle_crowd
from tests.kit.launched import limited
from tests.kit.log_lines import whole_lines
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.scraping import status_of

V4 = "127.0.0.1"
STARTED = b'"limits"'
"""The event of the last log line at the start. A probe instead might cost the backend a connection."""
ONE_FOR_ALL = ["--max-connections-per-client", "1000"]
"""One client may have all connections."""


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, arguments, env=environment)


@pytest.mark.parametrize(
    ("arguments", "environment", "lines"),
    [
        pytest.param([], {}, ["--route: is required"], id="nothing"),
        pytest.param(["--route", "x"], {}, ["--route: 'x' is not [ADDR:]PORT=HOST:PORT"], id="bad route"),
        pytest.param(
            ["--route", "x", "--route", "80=a", "--idle-timeout", "soon"],
            {},
            [
                "--route: 'x' is not [ADDR:]PORT=HOST:PORT",
                "--route: 'a' is not HOST:PORT",
                "--idle-timeout: 'soon' is not a number of seconds.",
            ],
            id="three at once",
        ),
        pytest.param(
            [],
            {"PROXY_ROUTE": "80=a:1 y", "PROXY_DRAIN": "-1", "PROXY_ADMIN": "8082"},
            [
                "--route (from PROXY_ROUTE): 'y' is not [ADDR:]PORT=HOST:PORT",
                "--drain (from PROXY_DRAIN): -1.0 is not in the range 0<=x<=86400.",
                "--admin (from PROXY_ADMIN): '8082' is not ADDR:PORT",
            ],
            id="environment",
        ),
        pytest.param(
            ["--route", "80=a:1", "--proxy-protocol", "v3"],
            {},
            ["--proxy-protocol: 'v3' is not one of 'v1', 'v2', 'none', 'pass'."],
            id="no such version",
        ),
        pytest.param(
            ["--rout", "80=a:1", "--drain", "x"],
            {},
            [
                "No such option '--rout'. (Did you mean one of: '--route', '--routes-from'?)",
                "--drain: 'x' is not a number of seconds.",
                "--route",
            ],
            id="mistyped flag",
        ),
        pytest.param(
            ["--route", "80=a:1", "--route", "80=b:1"], {}, ["--route: 2 routes listen on [::]:80"], id="port twice"
        ),
        pytest.param(["--route", "80=localhost:80"], {}, ["--route: [::]:80=localhost:80 goes to its own"], id="loop"),
        pytest.param(
            ["--route", "80=a:1", "--advertise", "81=443"], {}, ["no route listens on the advertised"], id="advertise"
        ),
        pytest.param(
            ["--route", "80=a:1", "--max-connections", "0", "--max-connections-per-client", "-1"],
            {},
            ["--max-connections: 0 is not in the range x>=1.", "--max-connections-per-client: -1 is not in the range"],
            id="no room for anybody",
        ),
        pytest.param(
            ["--route", "80=a:1", "--crc32c"], {}, ["--crc32c: no route has a header of"], id="checksum of v1"
        ),
        pytest.param(
            ["--route", "80=a:1,proxy-protocol=v3", "--route", "81=service:a:b"],
            {},
            ["--route: 'v3' is not a proxy-protocol; use v1", "--route: 'service:a': an IPv6 address"],
            id="bad option, bad Service",
        ),
        pytest.param(
            ["--route", "80=a:1", "--ready-when", "81"],
            {},
            ["--ready-when: no route listens on 81"],
            id="no such port",
        ),
        pytest.param(
            ["--route", "192.0.2.1:80=a:1", "--ready-when", "192.0.2.2:80"],
            {},
            ["--ready-when: no route listens on 192.0.2.2:80"],
            id="the port on another address",
        ),
        pytest.param(
            ["--route", "80=a:1"],
            {"PROXY_READY_WHEN": "any 80"},
            ["--ready-when: any stands alone"],
            id="a quorum and a port",
        ),
        pytest.param(
            ["--route", "80=a:1", "--ready-when", "all", "--ready-when", "any"],
            {},
            ["--ready-when: all stands alone"],
            id="two quorums",
        ),
        pytest.param(
            ["--route", "80=a:1", "--ready-when", "most", "--ready-when", "0", "--ready-when", "[::]"],
            {},
            [
                "--ready-when: 'most' is not any, all or [ADDR:]PORT",
                "--ready-when: '0' is not a port",
                "--ready-when: '[::]'",
            ],
            id="not a rule",
        ),
        pytest.param(
            ["--routes-from", "ingresses"], {}, ["--routes-from: 'ingresses' is not 'services'."], id="no such source"
        ),
        pytest.param([], {"PROXY_ROUTES_FROM": ""}, ["--route: is required"], id="an empty source"),
        pytest.param(
            ["--routes-from", "services", "--routes-namespace", "A_B", "--drain", "x"],
            {},
            ["--routes-namespace: 'A_B' is not the name of a namespace", "--drain: 'x' is not a number of seconds."],
            id="no such namespace",
        ),
        pytest.param(
            ["--route", "80=a:1", "--routes-namespace", "switchback"],
            {},
            ["--routes-namespace: is for --routes-from services"],
            id="a namespace without Services",
        ),
        pytest.param(
            ["--route", "x"],
            {"PROXY_ROUTES_FROM": "services"},
            ["--route: 'x' is not [ADDR:]PORT=HOST:PORT"],
            id="bad route beside Services",
        ),
        pytest.param(
            ["--routes-from", "services", "--advertise", "8443=443"],
            {},
            ["--route: no route listens on the advertised port 8443"],
            id="only ports of flags are advertised",
        ),
        pytest.param(
            ["--routes-from", "services", "--ready-when", "all", "--ready-when", "8443"],
            {},
            ["--ready-when: all stands alone"],
            id="a quorum and a port of a Service",
        ),
        pytest.param(
            ["--route", "80=a:1", "--idle-timeout", "nan"],
            {},
            ["--idle-timeout: 'nan' is not a number of seconds"],
            id="nan",
        ),
    ],
)
def test_bad_values_are_reported_together_by_name(
    arguments: list[str], environment: dict[str, str], lines: list[str]
) -> None:
    result = run(*arguments, **environment)
    assert result.exit_code == 2
    told = result.stderr.splitlines()
    assert all(line.startswith("Error: ") for line in told)
    assert len(told) == len(lines)
    for line in lines:
        assert line in result.stderr
    assert "Traceback" not in result.output


def test_an_empty_variable_is_unset() -> None:
    result = run("--route", "x", PROXY_DRAIN="", PROXY_ADMIN="", PROXY_PROXY_PROTOCOL="")
    assert result.stderr.splitlines() == ["Error: --route: 'x' is not [ADDR:]PORT=HOST:PORT"]


def test_help_names_each_flags_variable_and_default() -> None:
    text = " ".join(run("--help").stdout.split())
    for option in main.params:
        assert isinstance(option, click.Option)
        assert option.name is not None
        flag = max(option.opts, key=len)
        assert flag == "--" + option.name.replace("_", "-")
        assert flag in text
        # --completion and --version print and end; no variable should do that to a relay.
        assert (f"[env var: PROXY_{option.name.upper()}" in text) is (option.name not in {"completion", "version"})
    assert "default: 127.0.0.1:8082" in text


def test_no_variable_is_one_that_kubernetes_injects() -> None:
    for option in main.params:
        assert option.name is not None
        assert not option.name.endswith(("_port", "_service_host", "_service_port"))


@contextmanager
def program(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as stderr:
        process = subprocess.Popen([sys.executable, "-m", "proxy", *arguments], stderr=stderr, env=dict(os.environ))
        try:
            yield process
        finally:
            end_process(process)


@contextmanager
def backend() -> Iterator[socket.socket]:
    with socket.socket() as listening:
        listening.bind((V4, 0))
        listening.listen()
        listening.settimeout(20)
        yield listening


@pytest.mark.parametrize("flag", ["--route", "--admin"])
def test_a_port_in_use_is_one_line_and_status_2(tmp_path: Path, flag: str) -> None:
    with backend() as taken:
        busy = f"{V4}:{taken.getsockname()[1]}"
        ports = free_ports(1)
        values = {"--route": f"{V4}:{ports[0]}=192.0.2.1:80", "--admin": "off"}
        values[flag] = f"{busy}=192.0.2.1:80" if flag == "--route" else busy
        arguments = [part for pair in values.items() for part in pair]
        with program(tmp_path / "log", *arguments) as process:
            assert process.wait(20) == 2
    told = (tmp_path / "log").read_text().splitlines()
    assert told == [
        f"Error: {flag} {busy}: the address is in use; stop the program that has it, or choose another port"
    ]


def test_sigterm_lets_a_connection_finish_and_exits_0(tmp_path: Path) -> None:
    log = tmp_path / "log"
    port, admin = free_ports(2)
    with backend() as listening:
        route = f"{V4}:{port}={V4}:{listening.getsockname()[1]}"
        with program(log, "--route", route, "--admin", f"{V4}:{admin}", "--proxy-protocol", "none") as process:
            wait_for(lambda: is_listening(admin), process=process, log=log)
            assert urllib.request.urlopen(f"http://{V4}:{admin}/readyz").status == 200
            listening.accept()[0].close()
            with socket.create_connection((V4, port)) as client:
                client.sendall(b"request")
                served, _ = listening.accept()
                with served:
                    assert served.recv(100) == b"request"
                    process.send_signal(signal.SIGTERM)
                    wait_for(lambda: b"draining" in log.read_bytes(), process=process, log=log)
                    served.sendall(b"answer")
                client.settimeout(20)
                assert client.recv(100) == b"answer"
                assert client.recv(100) == b""
            assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("number", "status"),
    [pytest.param(signal.SIGTERM, 0, id="SIGTERM"), pytest.param(signal.SIGINT, 130, id="SIGINT")],
)
@pytest.mark.parametrize("end", ["grace", "second signal"])
def test_what_does_not_finish_is_reset(tmp_path: Path, number: signal.Signals, status: int, end: str) -> None:
    log = tmp_path / "log"
    (port,) = free_ports(1)
    grace = "0.2" if end == "grace" else "60"
    with backend() as listening:
        route = f"{V4}:{port}={V4}:{listening.getsockname()[1]}"
        with program(log, "--route", route, "--admin", "off", "--drain", grace) as process:
            wait_for(lambda: STARTED in log.read_bytes(), process=process, log=log)
            with socket.create_connection((V4, port)) as client:
                served, _ = listening.accept()
                with served:
                    process.send_signal(number)
                    if end == "second signal":
                        wait_for(lambda: b"draining" in log.read_bytes(), process=process, log=log)
                        process.send_signal(number)
                    assert process.wait(20) == status
                    client.settimeout(20)
                    with pytest.raises(ConnectionResetError):
                        client.recv(1)


def test_the_descriptor_limit_pauses_accepting_and_nothing_else(tmp_path: Path) -> None:
    log = tmp_path / "log"
    (port,) = free_ports(1)
    with backend() as listening, ExitStack() as open_ones:
        listening.listen(100)
        arguments = ["--route", f"{V4}:{port}={V4}:{listening.getsockname()[1]}", "--admin", "off", *ONE_FOR_ALL]
        shell = ["bash", "-c", 'ulimit -n 64; exec "$@"', "-", sys.executable, "-m", "proxy", *arguments]
        with log.open("wb") as stderr:
            process = open_ones.enter_context(subprocess.Popen(shell, stderr=stderr))
        open_ones.callback(process.kill)
        wait_for(lambda: STARTED in log.read_bytes(), process=process, log=log)
        (limits,) = (row for row in map(json.loads, whole_lines(log)) if row["event"] == "limits")
        most = limits["connections"]
        assert 1 < most < 32
        clients = [socket.create_connection((V4, port), timeout=20) for _ in range(most + 20)]
        served = [listening.accept()[0] for _ in range(most)]
        for one in (*clients, *served):
            open_ones.enter_context(one)
        wait_for(lambda: b"not accepting for now" in log.read_bytes(), process=process, log=log)
        clients[0].sendall(b"still here")
        with served[0].makefile("rb") as received:
            assert received.readline().startswith(b"PROXY TCP4 ")
            assert received.read(10) == b"still here"
        for one in (*clients[:most], *served):
            one.close()
        for _ in range(min(most, 20)):
            open_ones.enter_context(listening.accept()[0])
        assert process.poll() is None


def test_idle_clients_of_the_relay_and_of_its_admin_port_keep_no_probe_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    port, admin = free_ports(2)
    with backend() as listening:
        listening.listen(400)
        arguments = ["--route", f"{V4}:{port}={V4}:{listening.getsockname()[1]}", "--admin", f"{V4}:{admin}"]
        with log.open("wb") as stderr:
            command = [*limited((128, 256)), sys.executable, "-m", "proxy", *arguments, *ONE_FOR_ALL]
            process = subprocess.Popen(command, stderr=stderr)
        try:
            wait_for(lambda: STARTED in log.read_bytes(), process=process, log=log)
            with idle_crowd(port, 300), idle_crowd(admin, 300):
                wait_for(lambda: b"not accepting for now" in log.read_bytes(), process=process, log=log)
                assert status_of(f"{V4}:{admin}", "/healthz") == 200
            assert process.poll() is None
            assert b"Traceback" not in log.read_bytes()
        finally:
            process.kill()
            process.wait()
