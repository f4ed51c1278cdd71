"""From a client's connection to its backend's: the header, the choice of the address, and failures."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic

import pytest
import trio
from structlog.testing import capture_logs

from proxy.backends.backend import Address, Backend
from proxy.backends.balancing import MOST
from proxy.backends.health import Cause, Failure
from proxy.header.addresses import Header
from proxy.header.protocol import ProxyProtocol
from proxy.relay.core import BUFFER
from proxy.relay.dialling import ATTEMPT_DELAY, Dialling
from sidecar.loop.poller import READABLE, WRITABLE
from sidecar.values.endpoints import Endpoint
from sidecar.values.host_port import HostPort
from tests.kit.relaying import V4, V6, World, read_header, read_to_end, relaying, relaying_to, reset, until
from tests.proxy.backends.resolving import NO_SUCH_NAME, SILENCE, TRY_AGAIN, PlayedResolver

NAMED = "backend.example.org"


def client_that_speaks_first(world: World, payload: bytes) -> socket.socket:
    """A client that has connected and sent its payload before the relay runs."""
    client = socket.create_connection((world.endpoint.host, world.endpoint.port))
    if payload:
        client.sendall(payload)
    return client


async def end_of_a_client(world: World) -> str:
    """The end of a connection without data; RST may come before connect has returned."""
    with trio.socket.socket() as client:
        try:
            await client.connect((world.endpoint.host, world.endpoint.port))
        except ConnectionResetError:
            return "reset"
        received, end = await read_to_end(client)
        assert received == b""
        return end


def data_segments_in(stream: trio.socket.SocketType) -> int:
    """tcpi_data_segs_in of struct tcp_info (linux/tcp.h)."""
    info = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    return int(struct.unpack_from("I", info, 152)[0])


@pytest.mark.parametrize(
    ("payload", "segments"), [pytest.param(b"hello", 2, id="with data"), pytest.param(b"", 3, id="header alone")]
)
async def test_the_first_data_acknowledges_the_handshake(payload: bytes, segments: int) -> None:
    async with relaying() as world:
        with client_that_speaks_first(world, payload):
            backend, _ = await world.accept()
            with backend:
                info = backend.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
                # tcpi_segs_in of struct tcp_info (linux/tcp.h): SYN and data, and the ACK if the header went later.
                assert struct.unpack_from("I", info, 140)[0] == segments


@pytest.mark.parametrize("host", [pytest.param(V4, id="IPv4"), pytest.param(V6, id="IPv6")])
@pytest.mark.parametrize("version", [ProxyProtocol.V1, ProxyProtocol.V2])
async def test_the_header_has_the_source_and_the_destination(host: str, version: ProxyProtocol) -> None:
    async with relaying(host, proxy_protocol=version) as world:
        client = await world.connect()
        backend, header = await world.accept()
        with client, backend:
            assert header == Header(Endpoint(host, client.getsockname()[1]), world.endpoint)


async def test_a_listener_on_every_address_states_the_one_that_was_dialled() -> None:
    async with relaying() as inner, relaying_to(HostPort(V4, inner.endpoint.port), host="::") as world:
        client = socket.create_connection((V4, world.endpoint.port))
        # The inner relay's header comes first; the outer relay's header is its payload.
        backend, _ = await inner.accept()
        with client, backend:
            header = await read_header(backend)
            assert header == Header(Endpoint(V4, client.getsockname()[1]), Endpoint(V4, world.endpoint.port))


async def test_without_a_protocol_the_first_octet_is_the_clients() -> None:
    async with relaying(proxy_protocol=ProxyProtocol.NONE) as world:
        with client_that_speaks_first(world, b"hello"):
            backend, _ = await world.backend.accept()
            with backend:
                assert await backend.recv(100) == b"hello"


async def test_header_and_first_payload_come_in_one_segment() -> None:
    async with relaying() as world:
        with client_that_speaks_first(world, b"GET / HTTP/1.1\r\n"):
            backend, _ = await world.accept()
            with backend:
                assert await backend.recv(100) == b"GET / HTTP/1.1\r\n"
                assert data_segments_in(backend) == 1


async def test_a_server_that_speaks_first_is_not_kept_waiting() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            await backend.send(b"220 mail.example.org ready\r\n")
            assert await client.recv(100) == b"220 mail.example.org ready\r\n"


async def test_a_server_that_speaks_before_it_has_read_the_header_is_heard() -> None:
    async with relaying() as world:
        client = await world.connect()
        backend, _ = await world.backend.accept()
        with client, backend:
            await backend.send(b"hello")
            backend.shutdown(socket.SHUT_WR)
            assert await read_to_end(client) == (b"hello", "fin")


async def test_a_header_that_the_client_sends_is_payload() -> None:
    forged = b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"
    async with relaying() as world:
        with client_that_speaks_first(world, forged) as client:
            backend, header = await world.accept()
            with backend:
                assert header.source == Endpoint(*client.getsockname())
                assert await backend.recv(100) == forged


async def test_a_client_that_finishes_sending_without_an_octet_still_hears_the_backend() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            client.shutdown(socket.SHUT_WR)
            assert await backend.recv(1) == b""
            await backend.send(b"hello")
            backend.close()
            assert await read_to_end(client) == (b"hello", "fin")


@pytest.mark.parametrize("size", [BUFFER, 3 * BUFFER], ids=["one buffer", "three buffers"])
async def test_a_long_first_payload_arrives_whole(size: int) -> None:
    async with relaying() as world:
        client = socket.create_connection((world.endpoint.host, world.endpoint.port))
        with client:
            client.setblocking(False)
            sent = client.send(bytes(size))
            client.shutdown(socket.SHUT_WR)
            backend, _ = await world.accept()
            with backend:
                assert await read_to_end(backend) == (bytes(sent), "fin")


async def test_a_client_that_resets_without_a_word_resets_its_backend() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with backend:
            reset(client)
            assert await read_to_end(backend) == (b"", "reset")
        await until(lambda: world.relay.core.counters.active == 0)


@pytest.mark.parametrize("leaves", ["with a reset", "as a probe does"])
async def test_a_client_that_is_gone_when_it_is_accepted_costs_no_backend_connection(leaves: str) -> None:
    async with relaying() as world:
        with capture_logs() as logs:
            for _ in range(20):
                gone = trio.socket.from_stdlib_socket(client_that_speaks_first(world, b""))
                if leaves == "with a reset":
                    reset(gone)
                else:
                    gone.close()
            await until(lambda: world.relay.core.counters.connections == 20 and world.relay.core.counters.active == 0)
        assert not logs
        client = await world.connect()
        backend, header = await world.accept()
        with client, backend:
            assert header.source == Endpoint(*client.getsockname())


async def test_a_backend_that_refuses_costs_its_clients_at_once_and_the_log_one_line() -> None:
    async with relaying() as world:
        world.backend.close()
        with capture_logs() as logs:
            for _ in range(3):
                assert await end_of_a_client(world) == "reset"
        assert [(entry["log_level"], entry.get("cause")) for entry in logs] == [("warning", "connection-refused")]
        assert world.relay.core.counters.backend_errors[Cause.CONNECTION_REFUSED] == 3
        assert world.relay.core.counters.active == 0


@pytest.fixture
def black_hole() -> Iterator[int]:
    """The port of a listener with a full queue, at all addresses: the kernel does not answer further connections."""
    listener = socket.socket()
    listener.bind(("0.0.0.0", 0))
    listener.listen(0)
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex((V4, listener.getsockname()[1]))
    yield listener.getsockname()[1]
    for one in (*fillers, listener):
        one.close()


async def test_a_backend_that_does_not_answer_costs_the_connect_timeout(black_hole: int) -> None:
    async with relaying_to(HostPort(V4, black_hole), connect_timeout=0.3) as world:
        with trio.fail_after(30):
            assert await end_of_a_client(world) == "reset"
        assert world.relay.core.counters.backend_errors[Cause.TIMEOUT] == 1


def put(world: World, *addresses: Address) -> Backend:
    """Set the addresses of the only backend; the next connection tries them in this order."""
    (backend,) = world.relay.backends.values()
    # Each order rotates the addresses, so rotate them back by one.
    backend.take((*addresses[-1:], *addresses[:-1]))
    return backend


@pytest.mark.parametrize("protocol", list(ProxyProtocol))
async def test_an_event_of_an_earlier_socket_is_no_connection(black_hole: int, protocol: ProxyProtocol) -> None:
    async with relaying_to(HostPort(V4, black_hole), proxy_protocol=protocol) as world:
        core = world.relay.core
        with client_that_speaks_first(world, b""):
            await until(lambda: core.alive)
            (dialling,) = core.alive
            assert isinstance(dialling, Dialling)
            (side,) = dialling._attempts
            side.handle(READABLE | WRITABLE)
            assert list(core.alive) == [dialling]
        (backend,) = world.relay.backends.values()
        assert not backend.health.succeeded_within(60, now=monotonic())


@pytest.mark.parametrize("speaks_first", [True, False], ids=["client speaks first", "client waits"])
async def test_another_address_is_tried_before_anything_was_sent(black_hole: int, speaks_first: bool) -> None:
    async with relaying() as world:
        (good,) = next(iter(world.relay.backends.values())).addresses
        with socket.socket() as closed:
            closed.bind((V4, 0))
            refused = Address(socket.AF_INET, closed.getsockname())
            silent = Address(socket.AF_INET, (V4, black_hole))
            backend = put(world, refused, silent, good)
            with client_that_speaks_first(world, b"hello" if speaks_first else b"") as client:
                accepted, header = await world.accept()
                with accepted:
                    assert header.source == Endpoint(*client.getsockname())
                    if not speaks_first:
                        client.sendall(b"hello")
                    assert await accepted.recv(10) == b"hello"
        assert {backend.order()[0] for _ in range(3)} == {good}


async def test_many_addresses_that_refuse_hide_none_that_answers() -> None:
    async with relaying() as world:
        (good,) = next(iter(world.relay.backends.values())).addresses
        with ExitStack() as held:
            closed = [held.enter_context(socket.socket()) for _ in range(3 * MOST)]
            for one in closed:
                one.bind((V4, 0))
            put(world, *(Address(socket.AF_INET, one.getsockname()) for one in closed), good)
            for _ in range(3):
                with client_that_speaks_first(world, b"hello"):
                    accepted, _ = await world.accept()
                    with accepted:
                        assert await accepted.recv(10) == b"hello"


async def test_only_so_many_addresses_are_waited_for(black_hole: int) -> None:
    async with relaying_to(HostPort(V4, black_hole), connect_timeout=30.0) as world:
        silent = [Address(socket.AF_INET, (f"127.0.0.{number}", black_hole)) for number in range(1, 2 * MOST)]
        put(world, *silent)
        with client_that_speaks_first(world, b"hello"):
            await until(lambda: bool(world.relay.core.alive))
            (dialling,) = world.relay.core.alive
            assert isinstance(dialling, Dialling)
            await until(lambda: len(dialling._attempts) == MOST)
            await trio.sleep(3 * ATTEMPT_DELAY)
            assert len(dialling._attempts) == MOST


async def test_the_first_connection_is_used_and_the_others_get_no_data(black_hole: int) -> None:
    async with relaying() as world, relaying() as other:
        (good,) = next(iter(world.relay.backends.values())).addresses
        slow = Address(socket.AF_INET, other.backend.getsockname())
        silent = Address(socket.AF_INET, (V4, black_hole))
        backend = put(world, silent, slow, good)
        with client_that_speaks_first(world, b"hello"):
            # The first address is still being tried when the second answers; the third is not needed.
            taken, _ = await other.accept()
            with taken:
                assert await taken.recv(10) == b"hello"
                # Client and backend, and no further attempt.
                assert len(world.relay.core.poller) == len(world.relay.listeners) + 2
        assert backend.order()[-1] == silent


async def test_if_no_address_answers_the_client_is_reset_at_the_connect_timeout(black_hole: int) -> None:
    async with relaying(connect_timeout=0.6) as world:
        silent = [Address(socket.AF_INET, (host, black_hole)) for host in (V4, V4)]
        put(world, *silent, Address(socket.AF_INET, (V4, black_hole)))
        with capture_logs() as logs:
            assert await end_of_a_client(world) == "reset"
        assert [entry.get("cause") for entry in logs] == ["timeout"]
        assert world.relay.core.counters.backend_errors[Cause.TIMEOUT] == 1
        assert len(world.relay.core.poller) == len(world.relay.listeners)


async def test_a_connection_waits_for_the_first_look_up() -> None:
    resolver = PlayedResolver()
    async with relaying() as inner:
        destination = HostPort(NAMED, inner.backend.getsockname()[1])
        async with relaying_to(destination, look_up=resolver.look_up) as world:
            with client_that_speaks_first(world, b"hello"):
                await until(lambda: world.relay.core.counters.active == 1)
                resolver.set([V4])
                backend, _ = await inner.accept()
                with backend:
                    assert await backend.recv(10) == b"hello"


async def test_a_connection_does_not_wait_longer_than_the_connect_timeout_for_a_name() -> None:
    resolver = PlayedResolver()
    async with relaying_to(HostPort(NAMED, 80), look_up=resolver.look_up, connect_timeout=0.2) as world:
        assert await end_of_a_client(world) == "reset"
        assert world.relay.core.counters.backend_errors[Cause.DNS_TIMEOUT] == 1


@pytest.mark.parametrize("failure", [NO_SUCH_NAME, TRY_AGAIN, SILENCE], ids=lambda failure: str(failure.cause))
async def test_a_name_that_does_not_resolve_costs_its_clients_at_once(failure: Failure) -> None:
    resolver = PlayedResolver()
    resolver.set(failure)
    async with relaying_to(HostPort(NAMED, 80), look_up=resolver.look_up) as world:
        for _ in range(2):
            assert await end_of_a_client(world) == "reset"
        assert world.relay.core.counters.backend_errors[failure.cause] == 2
