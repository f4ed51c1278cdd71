"""The source ports for an upstream: many, random, rotating, and what happens when none can be opened."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

import pytest

from dnsproxy.datagrams.connected import Batches
from dnsproxy.datagrams.port import BATCH
from dnsproxy.forward import source_ports
from dnsproxy.forward.deadlines import PORT_AGE
from dnsproxy.forward.flight import Flight
from dnsproxy.forward.source_ports import SOCKETS, SourcePorts
from dnsproxy.forward.upstream import Upstream
from sidecar.loop.poller import Poller
from sidecar.sockets.listeners import bound_endpoint, listen_udp
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.forward.flights import Noted, flight, large_flight


class World:
    """The source ports for an upstream that is a plain socket."""

    def __init__(self, poller: Poller, server: socket.socket) -> None:
        self.poller = poller
        self.server = server
        self.told = Noted()
        self.now = 1000.0
        upstream = Upstream(bound_endpoint(server), poller=poller, batches=Batches(), receiver=self.told)
        self.ports = upstream.ports
        self.ports._clock = lambda: self.now

    def ask(self, count: int = 1) -> list[int]:
        """Send a batch of this many queries; returns the source port of each."""
        for _ in range(count):
            self.ports.post(flight())
        assert self.ports.flush() == []
        return [self.server.recvfrom(65_535)[1][1] for _ in range(count)]


@pytest.fixture(params=[pytest.param("127.0.0.1", id="IPv4"), pytest.param("::1", id="IPv6")])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with Poller() as poller, listen_udp(Endpoint(request.param, 0), flag="test") as server:
        server.settimeout(30)
        made = World(poller, server)
        yield made
        made.ports.close()
        assert len(poller) == 0


def test_queries_that_are_posted_together_leave_from_one_port(world: World) -> None:
    assert len(set(world.ask(BATCH + 1))) == 1
    assert world.ports.waiting == BATCH + 1


def test_batches_leave_from_many_ports_that_the_system_chose(world: World) -> None:
    ports = {world.ask()[0] for _ in range(2 * SOCKETS)}
    assert len(ports) == SOCKETS
    steps = {second - first for first, second in zip(sorted(ports), sorted(ports)[1:], strict=False)}
    assert len(steps) > 5, "the ports stand in a row"


def test_ports_in_use_take_turns(world: World) -> None:
    first_round = [world.ask()[0] for _ in range(SOCKETS)]
    later = [world.ask()[0] for _ in range(2 * SOCKETS)]
    assert sorted(later[:SOCKETS]) == sorted(first_round)
    assert later[:SOCKETS] == later[SOCKETS:]


def test_a_flush_with_nothing_posted_opens_nothing(world: World) -> None:
    assert world.ports.flush() == []
    assert len(world.poller) == 0


def test_what_the_kernel_refuses_is_given_back_by_the_flush(world: World) -> None:
    too_large, fits = large_flight(), flight()
    world.ports.post(too_large)
    world.ports.post(fits)
    assert world.ports.flush() == [too_large]
    assert world.ports.waiting == 1


def test_a_port_is_given_up_after_its_share_of_queries_and_closed_when_nothing_waits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_ports, "_USES", 2)
    world.ports.most = 2
    ports = [world.ask()[0] for _ in range(10)]
    assert len(set(ports)) == 4, "two ports in use, and half as many wait for late replies, and one more"
    in_use, given_up = list(world.ports._sockets), list(world.ports._retired)
    assert len(in_use) == 2
    world.ports.close_retired()
    assert world.ports._retired == given_up, "replies can still come there"
    for sock in (*in_use, *given_up[1:]):
        sock.waiting.clear()
    world.ports.close_retired()
    assert world.ports._retired == given_up[:1]
    given_up[0].waiting.clear()
    world.ports.close_retired()
    assert [sock.sock.fileno() for sock in given_up] == [-1] * len(given_up)
    assert len(world.poller) == 2
    assert world.ask()[0]


@pytest.mark.parametrize(
    ("age", "left"),
    [(0.0, 3), (PORT_AGE - 0.1, 3), (PORT_AGE, 0), (10 * PORT_AGE, 0)],
    ids=["new", "young", "old", "idle"],
)
def test_a_port_is_closed_at_its_age_and_an_idle_server_has_none(world: World, age: float, left: int) -> None:
    for _ in range(3):
        world.ask()
    before = list(world.ports._sockets)
    for sock in before:
        sock.waiting.clear()
    world.now += age
    world.ports.retire_old()
    assert (len(world.poller), len(world.ports._sockets)) == (left, left)
    assert world.ports.opened, "the upstream was asked"
    # By the socket: the system may choose the number of a closed port again.
    asked_from = world.ask()[0]
    (new,) = (sock for sock in world.ports._sockets if sock not in before)
    assert new.sock.getsockname()[1] == asked_from


def test_ports_grow_old_one_by_one(world: World) -> None:
    first = world.ask()[0]
    world.now += PORT_AGE / 2
    second = world.ask()[0]
    for sock in world.ports._sockets:
        sock.waiting.clear()
    world.now += PORT_AGE / 2
    world.ports.retire_old()
    assert [sock.sock.getsockname()[1] for sock in world.ports._sockets] == [second]
    assert first != second


def test_an_old_port_takes_no_query_and_waits_for_its_late_replies(world: World) -> None:
    world.ports.most = 2
    before = {world.ask()[0] for _ in range(2)}
    old = list(world.ports._sockets)
    world.now += PORT_AGE
    world.ports.retire_old()
    assert (world.ports._sockets, world.ports._retired) == ([], old)
    assert not before & {world.ask()[0] for _ in range(6)}
    assert world.ports.waiting == 8
    world.ports.close_retired()
    assert len(world.poller) == 4, "replies can still come there"
    for sock in old:
        sock.waiting.clear()
    world.ports.close_retired()
    assert len(world.poller) == 2


def test_while_many_ports_wait_for_late_replies_an_old_one_serves_on(world: World) -> None:
    world.ports.most = 2
    for _ in range(3):
        for _ in range(2):
            world.ask()
        world.now += PORT_AGE
        world.ports.retire_old()
    assert (len(world.ports._sockets), len(world.ports._retired)) == (2, 2)
    world.ports._sockets[0].waiting.clear()
    world.ports.retire_old()
    assert (len(world.ports._sockets), len(world.ports._retired)) == (1, 2), "without late replies it is closed"


def test_a_port_in_the_middle_of_a_batch_is_not_taken_away(world: World) -> None:
    world.ports.post(flight())
    world.now += PORT_AGE
    world.ports.retire_old()
    assert world.ports.flush() == []
    assert world.server.recv(512)[2:] == flight().key


def test_a_batch_that_began_on_a_port_stays_on_it_beyond_its_share(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_ports, "_USES", 2)
    assert len(set(world.ask(10))) == 1


def test_without_descriptors_the_open_sockets_serve_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    open_ports = {world.ask()[0] for _ in range(2)}
    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", out_of_descriptors)
        assert {world.ask()[0] for _ in range(4)} == open_ports
    assert world.ask()[0] not in open_ports


def test_ports_beyond_a_lower_number_are_closed_when_nothing_waits(world: World) -> None:
    for _ in range(8):
        world.ask()
    world.ports.most = 3
    world.ports.close_retired()
    assert len(world.poller) == 8, "replies can still come there"
    for sock in world.ports._sockets + world.ports._retired:
        sock.waiting.clear()
    world.ports.close_retired()
    assert len(world.poller) == 3
    assert len({world.ask()[0] for _ in range(9)}) == 3


def test_without_descriptors_a_used_up_port_serves_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {world.ask()[0] for _ in range(SOCKETS)}
    for sock in world.ports._sockets:
        sock.uses = 1 << 20
    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", out_of_descriptors)
        assert world.ask()[0] in before
    assert world.ask()[0] not in before


def test_without_any_socket_the_error_is_raised(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", out_of_descriptors)
    with pytest.raises(OSError, match="Too many open files"):
        world.ports.post(flight())


def out_of_descriptors(*_: object) -> socket.socket:
    raise OSError(errno.EMFILE, "Too many open files")


def test_an_address_without_a_route_raises_and_leaves_nothing_open(world: World) -> None:
    nowhere = Upstream(Endpoint("255.255.255.255", 53), poller=world.poller, batches=Batches(), receiver=world.told)
    for _ in range(3):
        with pytest.raises(OSError, match=r"denied|unreachable"):
            nowhere.ports.post(flight())
    assert nowhere.ports.flush() == []
    assert len(world.poller) == 0


def test_after_the_end_nothing_is_left_and_nothing_leaves(world: World) -> None:
    world.ask()
    posted: list[Flight] = [flight(), flight()]
    for one in posted:
        world.ports.post(one)
    world.ports.close()
    world.ports.close()
    assert (world.ports.flush(), world.ports.waiting, len(world.poller)) == ([], 0, 0)


def test_ports_of_two_upstreams_are_kept_apart(world: World) -> None:
    with listen_udp(Endpoint("127.0.0.1", 0), flag="test") as server:
        server.settimeout(30)
        other = World(world.poller, server)
        world.ports.post(flight())
        other.ports.post(flight())
        assert (world.ports.flush(), other.ports.flush()) == ([], [])
        assert [one.server.recv(512)[2:] for one in (world, other)] == [flight().key] * 2
        other.ports.close()
        assert isinstance(other.ports, SourcePorts)
        assert world.ask()
