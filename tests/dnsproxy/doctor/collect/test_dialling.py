"""Every end of a connection is an outcome, and every connection ends."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.doctor.collect.dial_targets import DialTarget
from dnsproxy.doctor.collect.dialling import HEADERS, Manner, dial, dial_all, dial_with_headers
from dnsproxy.doctor.facts.model import ReadFailure
from dnsproxy.doctor.facts.probes import Header, Outcome, ServiceIdentity
from proxy.header.addresses import LOCAL
from proxy.header.v1 import format_v1
from proxy.header.v2 import format_v2
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.doctor.collect.certificates import DAY, HOST, NOW, issue, rfc3339
from tests.dnsproxy.doctor.collect.odd_servers import (
    Handler,
    dripping,
    half_close,
    listening,
    over_tls,
    refuse_and_reset,
    reset,
    reset_at_once,
    say_nothing,
    saying,
    saying_over_tls,
)
from tests.kit.networks import Network, one_network, root

__all__ = ["root"]

OK: Final = b"HTTP/1.1 200 OK\r\n\r\n"
GARBAGE: Final = bytes(range(256)) * 256
NOTHING: Final = "nothing within 0.5 s"
NO_HANDSHAKE: Final = "no handshake within 0.5 s"


def target(endpoint: Endpoint, *, tls: bool = False, header: Header = Header.PLAIN, hostname: str = HOST) -> DialTarget:
    return DialTarget(endpoint, hostname, tls, header)


@pytest.mark.parametrize(
    ("handler", "plain", "tls"),
    [
        (saying(OK), (Outcome.ANSWERED, "200 OK"), (Outcome.GARBAGE, "")),
        (saying(b"HTTP/1.1 400 Bad Request\r\n\r\n"), (Outcome.BAD_REQUEST, "400 Bad Request"),
         (Outcome.GARBAGE, "")),
        (saying(b"SSH-2.0-OpenSSH\r\n", after=0), (Outcome.GARBAGE, "SSH-2.0-OpenSSH"), (Outcome.GARBAGE, "")),
        (saying(b"PROXY UNKNOWN\r\n", after=0), (Outcome.GARBAGE, "PROXY UNKNOWN"), (Outcome.GARBAGE, "")),
        (saying(HEADERS[Header.V2], after=0), (Outcome.GARBAGE, ""), (Outcome.GARBAGE, "")),
        (saying(b"<html>moved</html>"), (Outcome.GARBAGE, "<html>moved</html>"), (Outcome.GARBAGE, "")),
        (saying(GARBAGE), (Outcome.GARBAGE, "\\x00\\x01\\x02"), (Outcome.GARBAGE, "")),
        (saying(b"\x15\x03\x03\x00\x02\x02\x28"), (Outcome.GARBAGE, "\\x15"), (Outcome.ALERT, "HANDSHAKE_FAILURE")),
        (saying(b""), (Outcome.CLOSED, ""), (Outcome.CLOSED, "")),
        (half_close, (Outcome.CLOSED, ""), (Outcome.CLOSED, "")),
        (refuse_and_reset, (Outcome.GARBAGE, "<p>Error code: 400"), (Outcome.GARBAGE, "")),
        (reset, (Outcome.RESET, "Connection reset by peer"), (Outcome.RESET, "Connection reset by peer")),
        (reset_at_once, (Outcome.RESET, ""), (Outcome.RESET, "")),
        (say_nothing, (Outcome.SILENT, NOTHING), (Outcome.SILENT, NO_HANDSHAKE)),
        (dripping(OK, seconds=0.2), (Outcome.SILENT, f"{NOTHING} but 'HTT'"), (Outcome.SILENT, NO_HANDSHAKE)),
        (dripping(b"SSH-2.0-OpenSSH\r\n", seconds=0.2), (Outcome.GARBAGE, "SSH"), (Outcome.SILENT, NO_HANDSHAKE)),
        (dripping(b"\x16\x03\x03\x00\x40", seconds=0.01), (Outcome.GARBAGE, "\\x16"), (Outcome.SILENT, NO_HANDSHAKE)),
    ],
    ids=["200", "400", "SSH", "PROXY header 1", "PROXY header 2", "HTTP/0.9", "64 KiB of garbage", "a TLS alert",
         "closed", "half closed", "refused and reset", "reset", "reset at once", "silent", "slow HTTP", "slow SSH",
         "the beginning of a handshake"],
)  # fmt: skip
async def test_every_odd_server_is_one_outcome_in_time(
    clock: MockClock, handler: Handler, plain: tuple[Outcome, str], tls: tuple[Outcome, str]
) -> None:
    async with listening(handler) as endpoint:
        for over, (outcome, detail) in ((False, plain), (True, tls)):
            probe = await dial(target(endpoint, tls=over), Manner(answer_seconds=0.5))
            assert probe.outcome is outcome, probe.detail
            assert detail in probe.detail
            assert len(probe.detail) <= 80


async def test_what_a_server_says_is_shown_on_one_line() -> None:
    async with listening(saying(b"HTTP/1.1 418 \x1b[31m\x0b" + b"x" * 500 + b"\r\n")) as endpoint:
        probe = await dial(target(endpoint))
    assert probe.detail == ("418 \\x1b[31m " + "x" * 500)[:80]
    assert probe.status == 418


@pytest.mark.parametrize("header", list(Header))
async def test_the_header_comes_first_and_the_probe_has_what_was_seen(header: Header) -> None:
    certificate = issue("*.example.org")
    seen: list[bytes] = []

    async def handle(stream: trio.SocketStream) -> None:
        taken = b""
        while len(taken) < len(HEADERS[header]):
            taken += await stream.receive_some(len(HEADERS[header]) - len(taken))
        seen.append(taken)
        await over_tls(saying_over_tls(b"HTTP/1.1 503 Service Unavailable\r\n\r\n"), certificate)(stream)

    async with listening(handle) as endpoint:
        probe = await dial(target(endpoint, tls=True, header=header, hostname="*.example.org"))
    assert seen == [HEADERS[header]]
    assert (probe.endpoint, probe.port, probe.tls, probe.header) == (str(endpoint), endpoint.port, True, header)
    assert (probe.outcome, probe.status) == (Outcome.ANSWERED, 503)
    assert probe.detail == "TLSv1.3, 503 Service Unavailable"
    # The name that was asked is one that the wildcard covers; the probe keeps the name of the target.
    assert probe.hostname == "*.example.org"
    assert probe.identity == ServiceIdentity("", ("*.example.org",), rfc3339(NOW + 30 * DAY))


@pytest.mark.parametrize("tls", [False, True])
async def test_a_wildcard_is_asked_by_a_name_that_it_covers(tls: bool) -> None:
    requests: list[bytes] = []

    async def take(stream: trio.abc.Stream) -> None:
        requests.append(bytes(await stream.receive_some()))
        await stream.send_all(OK)

    async with listening(over_tls(take, issue(HOST)) if tls else take) as endpoint:
        await dial(target(endpoint, tls=tls, hostname="*.example.org"))
    assert b"\r\nHost: switchback-doctor.example.org\r\n" in requests[0]


async def test_a_closed_port_is_refused() -> None:
    async with listening(say_nothing) as endpoint:
        pass
    probe = await dial(target(endpoint))
    assert (probe.outcome, probe.detail) == (Outcome.REFUSED, "Connection refused")


async def test_a_full_queue_is_unreachable_in_time() -> None:
    with socket.socket() as server, ExitStack() as clients:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(3):
            client = clients.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        endpoint = Endpoint(*server.getsockname())
        probe = await dial(target(endpoint), Manner(connect_seconds=0.3))
    assert (probe.outcome, probe.detail) == (Outcome.UNREACHABLE, "no connection within 0.3 s")


# What no server and no network can be made to do at will.
@pytest.mark.parametrize(
    ("number", "outcome"),
    [
        (errno.ECONNRESET, Outcome.RESET),
        (errno.ECONNREFUSED, Outcome.REFUSED),
        (errno.EADDRNOTAVAIL, Outcome.NO_ROUTE),
        (errno.EHOSTUNREACH, Outcome.UNREACHABLE),
        (errno.ETIMEDOUT, Outcome.UNREACHABLE),
        (errno.EPERM, Outcome.UNREACHABLE),
    ],
    ids=lambda value: errno.errorcode[value] if isinstance(value, int) else str(value),
)
async def test_an_error_of_connect_is_an_outcome(
    monkeypatch: pytest.MonkeyPatch, number: int, outcome: Outcome
) -> None:
    class Failing:
        closed = False

        async def connect(self, _: object) -> None:
            raise OSError(number, "x")

        def close(self) -> None:
            self.closed = True

    one = Failing()
    monkeypatch.setattr(trio.socket, "socket", lambda *_: one)
    probe = await dial(target(Endpoint("127.0.0.1", 9)))
    assert (probe.outcome, probe.detail) == (outcome, os.strerror(number))
    assert one.closed


async def test_a_kernel_without_ipv6_has_no_route(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))

    monkeypatch.setattr(trio.socket, "socket", refuse)
    probe = await dial(target(Endpoint("2001:db8::1", 443), tls=True))
    assert probe.outcome is Outcome.NO_ROUTE
    assert probe.detail == os.strerror(errno.EAFNOSUPPORT)


async def test_a_scope_that_is_no_interface_is_unreachable() -> None:
    probe = await dial(target(Endpoint("fe80::1%no-such-link", 443)))
    assert probe.outcome is Outcome.UNREACHABLE


@contextmanager
def network_with(*commands: str) -> Iterator[Network]:
    """A network with a link `wire` that leads nowhere, changed by lines of iproute2."""
    with one_network() as network:
        network.ip("link", "add", "wire", "type", "veth", "peer", "name", "other")
        for link in ("wire", "other"):
            network.ip("link", "set", link, "up")
        network.ip("addr", "add", "198.51.100.1/24", "dev", "wire")
        for command in commands:
            network.ip(*command.split())
        with network.entered():
            yield network


@pytest.mark.peer("unshare", "ip")
@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("commands", "host", "outcome"),
    [
        ((), "2001:db8::1", Outcome.NO_ROUTE),
        ((), "203.0.113.1", Outcome.NO_ROUTE),
        (("-6 addr add 2001:db8:1::1/64 dev wire nodad",), "2001:db8::1", Outcome.NO_ROUTE),
        (("route add throw 203.0.113.1",), "203.0.113.1", Outcome.NO_ROUTE),
        (("-6 route add throw 2001:db8::1",), "2001:db8::1", Outcome.NO_ROUTE),
        (("route add unreachable 203.0.113.1",), "203.0.113.1", Outcome.UNREACHABLE),
        (("-6 route add unreachable 2001:db8::1",), "2001:db8::1", Outcome.UNREACHABLE),
        (("route add prohibit 203.0.113.1",), "203.0.113.1", Outcome.UNREACHABLE),
        (("-6 route add prohibit 2001:db8::1",), "2001:db8::1", Outcome.UNREACHABLE),
        (("route add blackhole 203.0.113.1",), "203.0.113.1", Outcome.UNREACHABLE),
        (("-6 route add blackhole 2001:db8::1",), "2001:db8::1", Outcome.UNREACHABLE),
        (("route add default dev wire",), "203.0.113.1", Outcome.UNREACHABLE),
        (("-6 addr add 2001:db8:1::1/64 dev wire nodad", "-6 route add default dev wire"), "2001:db8::1",
         Outcome.UNREACHABLE),
    ],
    ids=["no IPv6", "no route of IPv4", "an address and no route of IPv6", "throw", "throw in IPv6", "unreachable",
         "unreachable in IPv6", "prohibit", "prohibit in IPv6", "blackhole", "blackhole in IPv6", "no neighbour",
         "no neighbour in IPv6"],
)  # fmt: skip
async def test_only_what_this_machine_lacks_is_no_route(commands: tuple[str, ...], host: str, outcome: Outcome) -> None:
    with network_with(*commands):
        probe = await dial(target(Endpoint(host, 443)), Manner(connect_seconds=0.3))
    assert probe.outcome is outcome, probe.detail


@pytest.mark.peer("unshare", "ip")
@pytest.mark.usefixtures("root")
async def test_ipv6_that_is_switched_off_has_no_route() -> None:
    with network_with():
        # Such a file is that of the network in which the thread is.
        Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1", encoding="ascii")
        probe = await dial(target(Endpoint("2001:db8::1", 443), tls=True))
    assert probe.outcome is Outcome.NO_ROUTE, probe.detail


def test_the_headers_are_those_of_the_relays_own_connections() -> None:
    assert HEADERS[Header.V1] == format_v1(LOCAL)
    assert HEADERS[Header.V2] == format_v2(LOCAL)


async def test_many_are_dialled_and_reported_in_order() -> None:
    told: list[int] = []
    async with listening(saying(OK)) as endpoint:
        dialled = await dial_all([target(endpoint, header=header) for header in Header], told.append)
    assert [probe.header for probe in dialled.results] == list(Header)
    assert told == [1, 2, 3]
    assert dialled.failures("dial the ports", "connections") == ()


async def test_what_is_not_dialled_in_time_is_reported(clock: MockClock) -> None:
    async with listening(saying(OK)) as living, listening(say_nothing) as hanging:
        targets = [target(endpoint, header=header) for endpoint in (living, hanging) for header in Header]
        dialled = await dial_all(targets, seconds=1)
    assert [probe.outcome for probe in dialled.results] == [Outcome.ANSWERED] * 3
    (failure,) = dialled.failures("dial the ports", "connections")
    assert failure == ReadFailure("dial the ports", "3 of 6 connections did not finish within 1 s")


async def test_a_port_that_takes_no_bare_connection_is_dialled_with_headers() -> None:
    told: list[str] = []
    async with listening(wanting_v1) as wanting, listening(saying(OK)) as taking:
        dialled = await dial_with_headers([target(wanting), target(taking)], told.append)
    assert [(probe.port, probe.header, probe.outcome) for probe in dialled.results] == [
        (wanting.port, Header.PLAIN, Outcome.CLOSED),
        (taking.port, Header.PLAIN, Outcome.ANSWERED),
        (wanting.port, Header.V1, Outcome.ANSWERED),
        (wanting.port, Header.V2, Outcome.CLOSED),
    ]
    assert told == [
        "dialled 1 of 2 ports", "dialled 2 of 2 ports",
        "dialled 1 of 2 ports with a header", "dialled 2 of 2 ports with a header",
    ]  # fmt: skip


async def wanting_v1(stream: trio.SocketStream) -> None:
    received = await stream.receive_some()
    if received.startswith(b"PROXY"):
        await stream.send_all(OK)


async def test_both_rounds_share_one_time(clock: MockClock) -> None:
    async def vanish_then_hang(stream: trio.SocketStream) -> None:
        if (await stream.receive_some()).startswith((b"PROXY", HEADERS[Header.V2])):
            await trio.sleep_forever()

    started = clock.current_time()
    async with listening(vanish_then_hang) as hanging, listening(say_nothing) as silent:
        dialled = await dial_with_headers([target(hanging), target(silent)], lambda _: None, seconds=1.5)
    assert [(probe.port, probe.outcome) for probe in dialled.results] == [(hanging.port, Outcome.CLOSED)]
    assert clock.current_time() - started == pytest.approx(1.5)
    (failure,) = dialled.failures("dial the ports", "connections")
    assert failure.why == "3 of 4 connections did not finish within 1.5 s"
