"""The readiness check against backends that a test plays."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from proxy.admin.readiness import (
    AT_ONCE,
    PROBE_SECONDS,
    ReadinessLog,
    RouteProbe,
    SharedCheck,
    _try,
    check_routes,
)
from proxy.admin.route_readiness import RouteState
from proxy.backends.backend import Address, Backend, address_of
from proxy.backends.health import Failure
from proxy.header.addresses import LOCAL
from proxy.header.protocol import ProxyProtocol, formatter
from proxy.routes import Quorum
from sidecar.admin.answers import Readiness
from sidecar.values.endpoints import Endpoint
from sidecar.values.host_port import HostPort
from tests.kit.relaying import V4, read_to_end, until
from tests.proxy.backends.resolving import NO_SUCH_NAME, SILENCE, TRY_AGAIN

HELLO = formatter(ProxyProtocol.V1)(LOCAL)


async def check(*backends: Backend, greeting: bytes = HELLO) -> Readiness:
    """As /readyz does, with the backends of routes on the ports 1, 2 and so on."""
    probes = [RouteProbe(Endpoint("::", port), one, greeting) for port, one in enumerate(backends, start=1)]
    return await check_routes(probes, (Quorum.ANY,))


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as listening:
        listening.bind((V4, 0))
        listening.listen()
        listening.setblocking(False)
        yield listening


@pytest.fixture
def backend(listener: socket.socket) -> Backend:
    return Backend(HostPort(V4, listener.getsockname()[1]), listeners=())


@pytest.mark.parametrize(
    ("protocol", "greeting"),
    [
        (ProxyProtocol.V1, b"PROXY UNKNOWN\r\n"),
        (ProxyProtocol.V2, b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"),
        (ProxyProtocol.NONE, b""),
    ],
)
async def test_a_probe_introduces_itself_as_the_proxys_own(
    listener: socket.socket, backend: Backend, protocol: ProxyProtocol, greeting: bytes
) -> None:
    assert await check(backend, greeting=formatter(protocol)(LOCAL)) == Readiness(ready=True, reason="ready")
    accepted, _ = await trio.socket.from_stdlib_socket(listener).accept()
    with accepted:
        assert await read_to_end(accepted) == (greeting, "fin")


async def test_what_traffic_has_shown_is_not_asked_again(listener: socket.socket, backend: Backend) -> None:
    backend.observe(None)
    assert (await check(backend)).ready
    with pytest.raises(BlockingIOError):
        listener.accept()


async def test_a_refusal_is_named_and_logged_once(listener: socket.socket, backend: Backend) -> None:
    listener.close()
    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(check, backend)
        readiness = await check(backend)
    assert readiness == Readiness(
        ready=False, reason=f"backend unreachable (connection-refused): {backend.destination}: Connection refused"
    )
    assert [(entry["log_level"], entry["cause"]) for entry in logs] == [("warning", "connection-refused")]


async def test_a_backend_that_does_not_answer_in_time_is_a_timeout(
    monkeypatch: pytest.MonkeyPatch, backend: Backend
) -> None:
    monkeypatch.setattr("proxy.admin.readiness.PROBE_SECONDS", 0.01)
    monkeypatch.setattr("proxy.admin.readiness._try", hang)
    readiness = await check(backend)
    assert not readiness.ready
    assert readiness.reason.startswith("backend unreachable (timeout)")


async def test_a_process_that_stood_still_during_a_probe_is_not_ready_by_that(
    monkeypatch: pytest.MonkeyPatch, backend: Backend, mock_clock: trio.testing.MockClock
) -> None:
    monkeypatch.setattr("proxy.admin.readiness._try", hang)
    results: list[Readiness] = []

    async def request() -> None:
        results.append(await check(backend))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(request)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(10 * PROBE_SECONDS)
    assert results[0].reason.startswith("backend unreachable (timeout)")


async def test_requests_at_the_same_time_share_one_check(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> None:
    dialled: list[Address] = []
    answering = trio.Event()

    async def play(address: Address, _greeting: bytes) -> int:
        dialled.append(address)
        await answering.wait()
        return 0

    monkeypatch.setattr("proxy.admin.readiness._try", play)
    route = RouteProbe(Endpoint("::", 1), backend, HELLO)
    shared = SharedCheck(lambda: check_routes([route], (Quorum.ANY,)))
    results: list[Readiness] = []

    async def request() -> None:
        results.append(await shared.result())

    async def request_and_leave(leaving: trio.Event) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(shared.result)
            await leaving.wait()
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        leaving = trio.Event()
        nursery.start_soon(request_and_leave, leaving)
        await until(lambda: len(dialled) == 1)
        for _ in range(100):
            nursery.start_soon(request)
        await trio.testing.wait_all_tasks_blocked()
        assert len(dialled) == 1
        # The client of the first request leaves: another request goes on with the check.
        leaving.set()
        await until(lambda: len(dialled) == 2)
        answering.set()
    assert results == [Readiness(ready=True, reason="ready")] * 100
    assert len(dialled) == 2


async def test_a_check_that_fails_costs_one_request() -> None:
    answers: list[Readiness | None] = [None, Readiness(ready=True, reason="ready")]

    async def play() -> Readiness:
        await trio.lowlevel.checkpoint()
        answer = answers.pop(0)
        if answer is None:
            raise RuntimeError("a bug")
        return answer

    shared = SharedCheck(play)
    with pytest.raises(RuntimeError):
        await shared.result()
    assert (await shared.result()).ready


async def hang(*_: object) -> int:
    await trio.sleep_forever()
    return 0


@pytest.mark.parametrize("failure", [NO_SUCH_NAME, TRY_AGAIN, SILENCE], ids=lambda failure: str(failure.cause))
async def test_a_name_that_does_not_resolve_is_named(failure: Failure) -> None:
    backend = Backend(HostPort("backend.example.org", 80), listeners=())
    backend.take(failure)
    readiness = await check(backend)
    assert readiness.reason == f"backend unreachable ({failure.cause}): backend.example.org:80: {failure.detail}"


async def test_a_silent_address_does_not_use_up_the_time_of_the_others(
    monkeypatch: pytest.MonkeyPatch, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    backend = Backend(HostPort("backend.example.org", port), listeners=())
    silent, answering = address_of("127.0.0.2", port), address_of(V4, port)
    # Rotated by one, because probes rotate the addresses as connections do.
    backend.take([answering, silent])
    real = _try

    async def play(address: Address, greeting: bytes) -> int:
        return await (hang() if address == silent else real(address, greeting))

    monkeypatch.setattr("proxy.admin.readiness._try", play)
    monkeypatch.setattr("proxy.admin.readiness.PROBE_SECONDS", 30)
    assert (await check(backend)).ready


async def test_before_the_first_look_up_has_ended_nothing_is_ready() -> None:
    backend = Backend(HostPort("backend.example.org", 80), listeners=())
    assert not (await check(backend)).ready


async def test_one_unreachable_backend_of_two_is_named_and_takes_nothing_from_the_other(backend: Backend) -> None:
    with socket.socket() as closed:
        closed.bind((V4, 0))
        other = Backend(HostPort(V4, closed.getsockname()[1]), listeners=())
        readiness = await check(backend, other)
    assert readiness.ready
    assert readiness.reason.startswith("ready, 1 of 2 routes; backend unreachable (connection-refused): ")
    assert str(other.destination) in readiness.reason
    assert str(backend.destination) not in readiness.reason


async def test_a_backend_of_two_routes_is_probed_once(listener: socket.socket, backend: Backend) -> None:
    assert (await check(backend, backend)).reason == "ready"
    listener.accept()[0].close()
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_each_change_of_readiness_is_logged_once() -> None:
    changes = ReadinessLog()
    with capture_logs() as logs:
        for ready in (False, False, True, True, False, False, True):
            changes.note(Readiness(ready=ready, reason="why"))
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("ready", "info"),
        ("not ready", "warning"),
        ("ready", "info"),
    ]


async def test_a_single_address_gets_its_own_greeting(listener: socket.socket, backend: Backend) -> None:
    probe = RouteProbe(Endpoint("::", 1), backend, HELLO, {V4: b""})
    assert (await check_routes([probe], (Quorum.ANY,))).ready
    accepted, _ = await trio.socket.from_stdlib_socket(listener).accept()
    with accepted:
        assert await read_to_end(accepted) == (b"", "fin")


async def test_a_route_whose_port_is_not_open_is_judged_without_a_probe(backend: Backend) -> None:
    closed = RouteState(Endpoint("::", 2), "service:web/shop:443", problem="the address is in use")
    readiness = await check_routes([RouteProbe(Endpoint("::", 1), backend, HELLO)], (Quorum.ANY,), closed=[closed])
    assert readiness.reason == "ready, 1 of 2 routes; [::]:2 is not open: the address is in use"


async def test_a_thousand_backends_are_probed_a_few_at_a_time_and_dead_ones_last(
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    backends = [Backend(HostPort(f"192.0.2.{number % 250}", number), listeners=()) for number in range(1, 1001)]
    for one in backends[:500]:
        one.observe(SILENCE)
    running: set[Address] = set()
    most = 0

    async def play(address: Address, _greeting: bytes) -> int:
        nonlocal most
        running.add(address)
        most = max(most, len(running))
        try:
            if address.sockaddr[1] <= 500:
                return await hang()
            await trio.lowlevel.checkpoint()
            return 0
        finally:
            running.discard(address)

    monkeypatch.setattr("proxy.admin.readiness._try", play)
    readiness = await check(*backends)
    assert most == AT_ONCE
    assert trio.current_time() <= 2 * PROBE_SECONDS
    assert readiness.ready
    assert readiness.reason.startswith("ready, 500 of 1000 routes; ")
