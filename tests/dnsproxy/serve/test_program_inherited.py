"""`dnsproxy serve --listen systemd`: a process with inherited sockets answers on them, and on no others."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest
import trio

from sidecar.sockets.listeners import bound_endpoint, listen_both
from sidecar.values.endpoints import Endpoint
from tests.kit.dig import dig
from tests.kit.handing_over import started_with
from tests.kit.serve_inside import addresses_in, ask, ask_stream

NAME, ADDRESSES = "app.example.org", ["192.0.2.10"]
SERVE = (*("-m", "dnsproxy", "serve", "--log-format", "json", "--admin", "off", "--lameduck", "0"),)
UPSTREAM = ("--upstream", "127.0.0.1:9")


@dataclass
class Pair:
    """The sockets of a unit, both on one port of an address."""

    tcp: socket.socket
    udp: socket.socket

    @property
    def endpoint(self) -> Endpoint:
        return bound_endpoint(self.tcp)

    @property
    def port(self) -> int:
        return self.endpoint.port


def open_pair(stack: ExitStack, host: str = "127.0.0.1") -> Pair:
    tcp, udp = listen_both(Endpoint(host, 0), flag="test")
    return Pair(stack.enter_context(tcp), stack.enter_context(udp))


@pytest.fixture
def pair() -> Iterator[Pair]:
    with ExitStack() as stack:
        yield open_pair(stack)


@contextmanager
def started(handed: Sequence[socket.socket], *arguments: str) -> Iterator[list[str]]:
    """A server with inherited sockets, and its logged endpoints. A signal ends it, with status 0."""
    options = (*SERVE, *UPSTREAM, "--host", f"{NAME}={ADDRESSES[0]}", "--listen", "systemd", *arguments)
    with started_with(handed, *options) as process:
        try:
            yield _wait_for_serving(process)
        finally:
            process.terminate()
            _, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors


def _wait_for_serving(process: subprocess.Popen[str]) -> list[str]:
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if '"serving"' in line:
            return list(json.loads(line)["dns"])
    raise AssertionError("".join(lines))


async def test_both_kinds_of_query_are_answered_on_the_sockets_of_the_unit(pair: Pair) -> None:
    with started([pair.tcp, pair.udp]) as dns:
        assert dns == [str(pair.endpoint)]
        assert addresses_in(await ask(pair.endpoint, NAME)) == ADDRESSES
        assert addresses_in(await ask_stream(pair.endpoint, NAME)) == ADDRESSES


async def test_udp_alone_is_answered(pair: Pair) -> None:
    with started([pair.udp]) as dns:
        assert dns == [str(pair.endpoint)]
        assert addresses_in(await ask(pair.endpoint, NAME)) == ADDRESSES


async def test_tcp_alone_is_answered(pair: Pair) -> None:
    with started([pair.tcp]) as dns:
        assert dns == [str(pair.endpoint)]
        assert addresses_in(await ask_stream(pair.endpoint, NAME)) == ADDRESSES


async def test_sockets_of_several_addresses_may_come_in_any_order_and_beside_a_flag(pair: Pair) -> None:
    with ExitStack() as stack:
        other = open_pair(stack, "127.0.0.2")
        handed = [other.udp, pair.tcp, pair.udp, other.tcp]
        dns = stack.enter_context(started(handed, "--listen", "127.0.0.3:0"))
        assert len(dns) == 3
        port = next(int(one.rpartition(":")[2]) for one in dns if one.startswith("127.0.0.3:"))
        for endpoint in (pair.endpoint, other.endpoint, Endpoint("127.0.0.3", port)):
            assert addresses_in(await ask(endpoint, NAME)) == ADDRESSES
            assert addresses_in(await ask_stream(endpoint, NAME)) == ADDRESSES


async def test_a_query_that_came_before_the_start_is_answered_too(pair: Pair) -> None:
    """The purpose of socket activation: the unit's socket exists first."""
    async with trio.open_nursery() as nursery:
        replies: list[bytes] = []

        async def ask_early() -> None:
            replies.append(await ask_stream(pair.endpoint, NAME))

        nursery.start_soon(ask_early)
        await trio.testing.wait_all_tasks_blocked()
        with started([pair.tcp, pair.udp]):
            with trio.fail_after(20):
                while not replies:  # noqa: ASYNC110  # the client's nursery must not end inside the block
                    await trio.sleep(0.01)
    assert addresses_in(replies[0]) == ADDRESSES


@pytest.mark.peer("dig")
@pytest.mark.parametrize("transport", ["+notcp", "+tcp"])
def test_dig_gets_an_answer(pair: Pair, transport: str) -> None:
    with started([pair.tcp, pair.udp]):
        reply = dig(pair.port, transport, NAME)
    assert reply.status == "NOERROR"
    assert reply.section("ANSWER")[0].split()[-1] == ADDRESSES[0]


async def test_after_the_end_the_unit_keeps_its_sockets(pair: Pair) -> None:
    for _ in range(2):
        with started([pair.tcp, pair.udp]):
            assert addresses_in(await ask_stream(pair.endpoint, NAME)) == ADDRESSES


def refused(handed: Sequence[socket.socket], *arguments: str, **variables: str) -> str:
    """The message of a server that cannot start."""
    with started_with(handed, *SERVE, "--listen", "systemd", *arguments, variables=variables) as process:
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 2, errors
    assert "Traceback" not in errors
    return errors.splitlines()[-1]


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        pytest.param({"LISTEN_FDS": "0"}, "no socket was passed", id="none"),
        pytest.param({"LISTEN_FDS": "three"}, "systemd sets both to numbers", id="no number"),
        pytest.param({"LISTEN_PID": "1"}, "the sockets are for process 1", id="another process"),
        # Descriptors after the last one belong to the event loop.
        pytest.param({"LISTEN_FDS": "3"}, "descriptor 5 is n", id="one too many"),
        pytest.param({"LISTEN_FDS": "50"}, "descriptor 5 is n", id="far too many"),
    ],
)
def test_bad_variables_are_one_line_and_status_2(pair: Pair, variables: dict[str, str], complaint: str) -> None:
    line = refused([pair.tcp, pair.udp], *UPSTREAM, **variables)
    assert line.startswith("Error: --listen systemd: ")
    assert complaint in line


def test_a_socket_of_the_wrong_kind_is_one_line_and_status_2() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert refused([ours], *UPSTREAM) == "Error: --listen systemd: descriptor 3 is neither IPv4 nor IPv6"


def test_an_upstream_that_is_an_inherited_socket_is_a_loop(pair: Pair) -> None:
    line = refused([pair.udp], "--upstream", str(pair.endpoint))
    assert line.startswith(f"Error: --upstream {pair.endpoint} is an address that dnsproxy listens on")
