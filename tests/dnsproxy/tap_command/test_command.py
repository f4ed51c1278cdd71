"""`dnsproxy tap` as a program against a real admin port: output, filters, exit statuses, signals, pipes.

running.py, port.py, screen.py and viewer.py are tested here too.
"""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from functools import partial
from typing import Final

import pytest
import trio
from click.testing import CliRunner
from trio.testing import wait_all_tasks_blocked

from dnsproxy.cli import main
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.tap.mode import TapMode
from dnsproxy.tap.seen import Outcome
from dnsproxy.tap_command import command as tap_command
from dnsproxy.tap_command.request import ServicePods, TapRequest
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.tap_command.taps import PLAIN, command, running, tapped

REFUSED: Final = "192.0.2.7:5353  tcp  app.example.org A  refused NOERROR  1.000 ms"


async def test_a_query_is_one_line_and_the_count_ends_it_with_0() -> None:
    async with tapped() as server, running("--admin", str(server.endpoint), "--count", "2") as tap:
        await server.wait_listening()
        for _ in range(5):
            server.note()
        status, output, errors = await tap.end()
    assert (status, errors) == (0, "")
    assert [line[17:] for line in output.splitlines()] == [REFUSED, REFUSED]


async def test_json_is_one_object_a_line() -> None:
    arguments = ("--output", "json", "--count", "1")
    async with tapped() as server, running("--admin", str(server.endpoint), *arguments) as tap:
        await server.wait_listening()
        server.note("App.example.org", "2001:db8::7", qtype=28)
        status, output, _ = await tap.end()
    document = json.loads(output)
    assert status == 0
    assert document.pop("time").endswith("Z")
    assert document == {
        "client": "2001:db8::7",
        "port": 5353,
        "transport": "tcp",
        "qname": "App.example.org",
        "qtype": "AAAA",
        "outcome": "refused",
        "seconds": 0.001,
        "rcode": "NOERROR",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("other.example.org", "*.wanted.example.org"), id="names"),
        pytest.param(("--client", "2001:db8::/32", "--client", "198.51.100.1"), id="clients"),
        pytest.param(("--type", "AAAA", "--type", "TYPE65"), id="types"),
        pytest.param(("--outcome", "failed"), id="outcome"),
        pytest.param(("--from", "zone", "--from", "failed"), id="from"),
        pytest.param(("*.WANTED.example.org", "--type", "28", "--from", "failed", "--client", "2001:db8::7"), id="all"),
    ],
)
async def test_filters_are_those_of_the_command_line(arguments: tuple[str, ...]) -> None:
    async with tapped() as server, running("--admin", str(server.endpoint), "--count=1", *arguments) as tap:
        await server.wait_listening()
        server.note()
        server.note("a.wanted.example.org", "2001:db8::7", Outcome.FAILED, 28)
        status, output, _ = await tap.end()
    assert status == 0
    assert "[2001:db8::7]:5353  tcp  a.wanted.example.org AAAA  failed" in output


@pytest.mark.parametrize(
    ("arguments", "sent", "status"),
    [
        pytest.param((), 0, 1, id="nothing came"),
        pytest.param((), 1, 0, id="one came"),
        pytest.param(("--count", "3"), 2, 1, id="fewer than asked for"),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
async def test_a_signal_ends_it_with_what_was_seen(
    arguments: tuple[str, ...], sent: int, status: int, number: signal.Signals
) -> None:
    async with tapped() as server, running("--admin", str(server.endpoint), *arguments) as tap:
        await server.wait_listening()
        for place in range(sent):
            server.note(f"x{place}.example.org")
            await tap.read_until(f"x{place}.example.org".encode())
        tap.process.send_signal(number)
        got, _, errors = await tap.end()
    assert (got, errors) == (status, "")


async def test_the_time_ends_it_with_1_if_nothing_came() -> None:
    async with tapped() as server, running("--admin", str(server.endpoint), "--seconds", "0.5") as tap:
        assert await tap.end() == (1, "", "")
        await server.wait_listening(listening=False)


async def test_queries_that_are_not_shown_are_noted_on_stderr() -> None:
    async with tapped() as server, running("--admin", str(server.endpoint)) as tap:
        await server.wait_listening()
        server.tap.distribute([], dropped=7)
        server.tap.distribute([], dropped=1)
        told = await tap.read_note()
        tap.process.send_signal(signal.SIGINT)
        status, output, errors = await tap.end()
    assert (status, output, errors) == (1, "", "")
    assert told == b"Note: 8 queries are missing here: there were more than can be shown\n"


async def test_a_hostile_name_controls_no_terminal() -> None:
    async with tapped() as server, running("--admin", str(server.endpoint), "--count", "1") as tap:
        await server.wait_listening()
        server.note("\x1b[2J\x07\n.example.org")
        status, output, _ = await tap.end()
    assert status == 0
    assert len(output.splitlines()) == 1
    assert output.rstrip("\n").isprintable()


async def test_a_reader_that_leaves_ends_it_quietly() -> None:
    async with tapped() as server, trio.open_nursery() as nursery:
        line = f"set -o pipefail; {' '.join(command('--admin', str(server.endpoint)))} | head -1"
        run = partial(trio.run_process, ["bash", "-c", line], check=False, env=PLAIN, stdout=-1, stderr=-1)
        process: trio.Process = await nursery.start(run)
        assert process.stdout is not None
        assert process.stderr is not None
        await server.wait_listening()
        server.note()
        assert (await process.stdout.receive_some()).endswith(f"{REFUSED}\n".encode())
        with trio.fail_after(20):
            while server.tap.listening:
                server.note()
                await wait_all_tasks_blocked()
        assert await process.wait() == 0
        assert b"".join([bytes(one) async for one in process.stderr]) == b""


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["terminal", "NO_COLOR", "dumb"],
)
async def test_a_terminal_shows_that_it_waits_and_then_colours(environment: dict[str, str], coloured: bool) -> None:
    ours, theirs = pty.openpty()
    shown = b""
    try:
        async with tapped() as server, trio.open_nursery() as nursery:
            run = partial(
                trio.run_process,
                command("--admin", str(server.endpoint), "--count", "1"),
                stdout=theirs,
                stderr=theirs,
                check=False,
                env={**PLAIN, "TERM": "xterm", **environment},
            )
            process: trio.Process = await nursery.start(run)
            while b"waiting for queries ..." not in shown:
                await trio.lowlevel.wait_readable(ours)
                shown += os.read(ours, 65_536)
            await server.wait_listening()
            server.note()
            assert await process.wait() == 0
        shown += os.read(ours, 65_536)
    finally:
        os.close(theirs)
        os.close(ours)
    line = shown.partition(b"waiting for queries ...\r\x1b[K")[2]
    assert b"app.example.org A  refused" in line
    assert (b"\x1b[33m" in line) is coloured


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(("a..b" * 400,), "[NAME]...: ", id="a long name"),
        pytest.param((" ",), "[NAME]...: ' ' is not a name; try app.example.org", id="an empty name"),
        pytest.param(("--client", "x"), "--client: 'x' is not an address or network", id="client"),
        pytest.param(("--client", "192.0.2.0/99"), "--client: '192.0.2.0/99' is not an address", id="network"),
        pytest.param(("--type", "NOTYPE"), "--type: 'NOTYPE' is not a query type", id="type"),
        pytest.param(("--outcome", "fine"), "'fine' is not an outcome; it is one of table, zone", id="outcome"),
        pytest.param(("--from", "fine"), "'fine' is not an outcome", id="from"),
        pytest.param(("--count", "0"), "--count: 0 is not in the range", id="count"),
        pytest.param(("--seconds", "-1"), "--seconds: -1.0 is not in the range", id="seconds"),
        pytest.param(("--seconds", "x"), "--seconds: 'x' is not a number of seconds", id="no seconds"),
        pytest.param(("--output", "yaml"), "--output: 'yaml' is not one of", id="output"),
        pytest.param(("--admin", "off"), "--admin: 'off' is not ADDR:PORT", id="admin"),
        pytest.param(("--service", "dnsproxy"), "--service: 'dnsproxy' is not NAMESPACE/NAME", id="service"),
        pytest.param(("--service", "a/b/c"), "--service: 'a/b/c' is not NAMESPACE/NAME", id="no service"),
        pytest.param(("--admin-port", "8081"), "--admin-port is for --service", id="port without service"),
        pytest.param(("--context", "x"), "--context is for --service", id="context without service"),
        pytest.param(
            ("--service", "a/b", "--admin", "127.0.0.1:1"), "--admin asks one server, --service all pods", id="both"
        ),
    ],
)
def test_bad_usage_is_status_2_and_a_line(arguments: tuple[str, ...], complaint: str) -> None:
    result = CliRunner().invoke(main, ["tap", *arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    assert complaint in result.stderr


def test_the_variables_of_pods_neither_choose_the_service_nor_contradict_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod of operate has DNSPROXY_SERVICE, every other pod DNSPROXY_ADMIN."""
    asked: list[TapRequest] = []
    monkeypatch.setattr(tap_command, "run_program", lambda _, request: asked.append(request))
    variables = {"DNSPROXY_SERVICE": "a/b", "DNSPROXY_ADMIN": "[::]:8081", "DNSPROXY_ADMIN_PORT": "tcp://x"}
    for arguments in ([], ["--service", "a/c"]):
        assert CliRunner().invoke(main, ["tap", *arguments], env=variables).exit_code == 0
    assert [one.place for one in asked] == [Endpoint("::", 8081), ServicePods(ObjectRef("a", "c"), 8081)]


def test_a_server_that_is_not_there_is_status_3_and_a_line_that_names_the_flag() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = Endpoint("127.0.0.1", unused.getsockname()[1])
        done = subprocess.run(command("--admin", str(endpoint)), capture_output=True, check=False, env=PLAIN, text=True)
    assert done.returncode == 3
    assert done.stderr.startswith(f"Error: --admin {endpoint}: no server answers there (Connection refused);")
    assert (len(done.stderr.splitlines()), done.stdout) == (1, "")


async def test_a_tap_that_is_off_is_status_3_and_says_so() -> None:
    async with tapped(TapMode.OFF) as server, running("--admin", str(server.endpoint)) as tap:
        status, output, errors = await tap.end()
    assert (status, output) == (3, "")
    assert errors == f"Error: --admin {server.endpoint}: the server there answers 403: the tap is off (--tap off)\n"


async def test_a_server_that_stops_is_status_3_whatever_was_seen() -> None:
    async with trio.open_nursery() as nursery:
        async with tapped() as server:
            tap = await nursery.start(_running_in, str(server.endpoint))
            await server.wait_listening()
            server.note()
            await tap.read_until(b"app.example.org")
        status, _, errors = await tap.end()
        nursery.cancel_scope.cancel()
    assert status == 3
    assert errors.startswith(f"Error: --admin {server.endpoint}: ")


async def _running_in(admin: str, *, task_status: trio.TaskStatus[object]) -> None:
    async with running("--admin", admin) as tap:
        task_status.started(tap)
        await trio.sleep_forever()


async def test_lines_of_another_program_are_status_3() -> None:
    async def say(stream: trio.SocketStream) -> None:
        await stream.receive_some(65_536)
        await stream.send_all(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"a": \x1b[2J}\n')

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, say, [listener])
        async with running("--admin", f"127.0.0.1:{listener.socket.getsockname()[1]}") as tap:
            status, _, errors = await tap.end()
        nursery.cancel_scope.cancel()
    assert status == 3
    assert "the answer is not that of a `dnsproxy serve`" in errors
    assert "\x1b" not in errors


def test_help_names_the_ways_in() -> None:
    result = CliRunner().invoke(main, ["tap", "--help"])
    assert result.exit_code == 0
    for part in ("kubectl -n switchback exec", "port-forward", "--from", "get pods/proxy", "Exit status:"):
        assert part in result.stdout


def test_help_costs_neither_an_event_loop_nor_a_library_of_dns() -> None:
    script = (
        "import sys; from dnsproxy.cli import main; main(['tap', '--help'], standalone_mode=False); "
        "print(*{'trio', 'dns', 'httpx2'}.intersection(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []
