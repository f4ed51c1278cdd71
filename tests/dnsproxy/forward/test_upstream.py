"""Upstreams and their sockets: random IDs and ports, sockets that rotate, and what happens when none can be had."""

from __future__ import annotations

import errno
import socket
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest
import trio

from dnsproxy.datagrams import SinglePort
from dnsproxy.forward import upstream as upstreams
from dnsproxy.forward.flight import Flight
from dnsproxy.forward.upstream import SOCKETS, Upstream, UpstreamSocket, random_ids
from dnsproxy.responder import Forward
from sidecar.endpoints import Endpoint
from sidecar.listeners import bound_endpoint, listen_udp
from sidecar.poller import Poller
from tests.dnsproxy import messages, upstream_replies
from tests.dnsproxy.faulty_upstream import faulty_upstream, refusing_upstream, silence


class World:
    """An upstream with a plain socket behind it, and what it reported."""

    def __init__(self, poller: Poller, server: socket.socket) -> None:
        self.poller = poller
        self.server = server
        self.arrived: list[bytes] = []
        self.broken: list[UpstreamSocket] = []
        self.upstream = Upstream(
            bound_endpoint(server),
            poller=poller,
            arrived=lambda _sock, reply: self.arrived.append(reply),
            broken=self.broken.append,
        )

    def asked(self) -> tuple[bytes, int]:
        """A query that reached the server, and the port it came from."""
        message, source = self.server.recvfrom(65_535)
        return message, source[1]


@pytest.fixture(params=[pytest.param("127.0.0.1", id="IPv4"), pytest.param("::1", id="IPv6")])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with Poller() as poller, listen_udp(Endpoint(request.param, 0), flag="test") as server:
        server.settimeout(5)
        made = World(poller, server)
        yield made
        made.upstream.close()
        assert len(poller) == 0


def flight(sock: socket.socket) -> Flight:
    query = messages.scanned(messages.query("www.example.net"))
    port = SinglePort(sock)
    return Flight(Forward(query, shields=False), port, None, route=(), started=0.0)  # type: ignore[arg-type]


def test_ids_are_two_octets_and_evenly_spread() -> None:
    """Chi-square over the 256 values of each octet: 99.9 % of fair sources stay below 330."""
    ids = list(islice(random_ids(), 100_000))
    assert {len(message_id) for message_id in ids} == {2}
    for octet in range(2):
        counts = Counter(message_id[octet] for message_id in ids)
        expected = len(ids) / 256
        assert sum((counts[value] - expected) ** 2 / expected for value in range(256)) < 400


def test_no_two_runs_give_the_same_ids() -> None:
    assert list(islice(random_ids(), 100)) != list(islice(random_ids(), 100))


def test_queries_leave_from_many_ports_that_the_system_chose(world: World) -> None:
    waiting = flight(world.server)
    ports = set()
    for _ in range(2 * SOCKETS):
        world.upstream.socket().send(waiting)
        ports.add(world.asked()[1])
    assert len(ports) == SOCKETS
    steps = {second - first for first, second in zip(sorted(ports), sorted(ports)[1:], strict=False)}
    assert len(steps) > 5, "the ports stand in a row"


def test_a_query_goes_out_unchanged_but_for_its_id(world: World) -> None:
    waiting = flight(world.server)
    message_id = world.upstream.socket().send(waiting)
    asked, _ = world.asked()
    assert (asked[:2], asked[2:]) == (message_id, waiting.query.message[2:])


def test_an_id_that_still_waits_is_not_used_again(world: World) -> None:
    sock = world.upstream.socket()
    sock._ids = iter([b"aa", b"aa", b"aa", b"bb"])
    assert [sock.send(flight(world.server)) for _ in range(2)] == [b"aa", b"bb"]
    assert world.upstream.waiting == 2


def test_a_port_is_given_up_after_its_share_of_queries_and_closed_when_nothing_waits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstreams, "_USES", 2)
    waiting = flight(world.server)
    first = world.upstream.socket()
    first.send(waiting)
    for _ in range(3 * SOCKETS):
        world.upstream.socket().send(waiting)
    assert first not in world.upstream._sockets
    world.upstream.close_retired()
    assert first.sock.fileno() != -1
    for sock in [*world.upstream._retired, *world.upstream._sockets]:
        if sock is not first:
            sock.waiting.clear()
    world.upstream.close_retired()
    assert [first] == world.upstream._retired
    first.waiting.clear()
    world.upstream.close_retired()
    assert first.sock.fileno() == -1
    assert len(world.poller) == SOCKETS


def test_a_reply_is_handed_over_and_a_stranger_is_not_heard(world: World) -> None:
    world.upstream.socket().send(flight(world.server))
    asked, port = world.asked()
    with socket.socket(world.server.family, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"forged", (world.upstream.endpoint.host, port))
    world.server.sendto(upstream_replies.right(asked), (world.upstream.endpoint.host, port))
    world.poller.dispatch()
    world.poller.dispatch()
    assert world.arrived == [upstream_replies.right(asked)]


def test_the_largest_datagram_arrives_whole(world: World) -> None:
    world.upstream.socket().send(flight(world.server))
    asked, port = world.asked()
    world.server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    world.server.sendto(upstream_replies.sized(asked, 65_000), (world.upstream.endpoint.host, port))
    world.poller.dispatch()
    assert world.arrived == [upstream_replies.sized(asked, 65_000)]


def test_without_descriptors_the_open_sockets_serve_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = world.upstream.socket(), world.upstream.socket()
    monkeypatch.setattr(socket, "socket", out_of_descriptors)
    assert {world.upstream.socket() for _ in range(4)} == {first, second}


def test_without_descriptors_a_used_up_port_serves_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {world.upstream.socket() for _ in range(SOCKETS)}
    for sock in before:
        sock.uses = 1 << 20
    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", out_of_descriptors)
        assert world.upstream.socket() in before
    assert world.upstream.socket() not in before


def test_without_any_socket_the_error_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", out_of_descriptors)
    with pytest.raises(OSError, match="Too many open files"):
        world.upstream.socket()


def out_of_descriptors(*_: object) -> socket.socket:
    raise OSError(errno.EMFILE, "Too many open files")


def test_a_refusal_is_reported_and_the_socket_goes_on(world: World) -> None:
    with refusing_upstream() as endpoint:
        refusing = Upstream(endpoint, poller=world.poller, arrived=lambda *_: None, broken=world.broken.append)
        sock = refusing.socket()
        sock.send(flight(world.server))
        world.poller.dispatch()
        assert world.broken == [sock]
        # The report of the datagram before must not make the next one fail.
        sock.send(flight(world.server))
        sock.send(flight(world.server))
        refusing.close()


async def test_a_probe_that_is_answered_shows_that_an_upstream_is_well() -> None:
    async with faulty_upstream() as server:
        upstream = unwell(server.endpoint)
        await upstream.probe(timeout=5)
        assert not upstream.unwell
        assert upstream_replies.question_of(server.asked_datagrams[0].message) == messages.question("", messages.NS)


@pytest.mark.parametrize("rcode", [upstream_replies.SERVFAIL, upstream_replies.REFUSED])
async def test_a_probe_takes_an_error_for_a_sign_of_life(rcode: int) -> None:
    async with faulty_upstream(lambda asked: [upstream_replies.header_only(asked, rcode)]) as server:
        upstream = unwell(server.endpoint)
        await upstream.probe(timeout=5)
        assert not upstream.unwell


async def test_a_probe_does_not_take_a_forged_id_for_a_sign_of_life() -> None:
    async with faulty_upstream(lambda asked: [upstream_replies.wrong_id(asked)]) as server:
        upstream = unwell(server.endpoint)
        await upstream.probe(timeout=0.05)
        assert upstream.unwell


async def test_a_probe_waits_for_the_right_id_behind_a_forged_one() -> None:
    async with faulty_upstream(
        lambda asked: [b"", upstream_replies.wrong_id(asked), upstream_replies.right(asked)]
    ) as server:
        upstream = unwell(server.endpoint)
        await upstream.probe(timeout=5)
        assert not upstream.unwell


async def test_a_probe_into_silence_ends_in_time() -> None:
    async with faulty_upstream(silence) as server:
        upstream = unwell(server.endpoint)
        await upstream.probe(timeout=0.05)
        assert upstream.unwell


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_probe_that_is_refused_fails_quietly(host: str) -> None:
    with refusing_upstream(host) as endpoint:
        upstream = unwell(endpoint)
        await upstream.probe(timeout=5)
        assert upstream.unwell


async def test_a_probe_without_descriptors_fails_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trio.socket, "socket", out_of_descriptors)
    upstream = unwell(Endpoint("127.0.0.1", 53))
    await upstream.probe(timeout=5)
    assert upstream.unwell


def unwell(endpoint: Endpoint) -> Upstream:
    """An upstream that went behind the others; it opens no socket but for a probe."""
    upstream = Upstream(endpoint, poller=Poller.__new__(Poller), arrived=lambda *_: None, broken=lambda _: None)
    upstream.misses = 100
    assert upstream.unwell
    return upstream
