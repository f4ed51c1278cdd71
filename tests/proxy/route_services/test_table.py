"""The table of routes from Services: laws over any sequence of changes, with sockets that really listen."""

from __future__ import annotations

import functools
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Final

import hypothesis
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from structlog.testing import capture_logs

from proxy.backends.backend import address_of
from proxy.relay.relay import Relay, open_listeners
from proxy.route_services.changes import LAST_RETRY
from proxy.route_services.open_ports import OpenPorts
from proxy.route_services.ports import Fixed
from proxy.route_services.table import RouteTable
from proxy.settings import Settings
from sidecar.kubernetes.errors import Forbidden
from sidecar.kubernetes.follower_status import FollowerState
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from sidecar.kubernetes.relay_routes import RouteService, find_relay_routes
from tests.kit.ports import free_ports
from tests.kit.relaying import V4, read_header, received_in, until
from tests.proxy.route_services.made import OWN, KnownWatches, RealPorts, listening, service

ADDRESS: Final = address_of("192.0.2.1", 443)


@functools.cache
def chosen() -> tuple[int, ...]:
    """Ports for all tests here, the last one for --admin.

    They are chosen when the first test runs: between import and test other programs may take them.
    """
    return tuple(free_ports(4))


def reserved() -> dict[int, str]:
    return {chosen()[3]: "--admin has"}


NAMES = st.sampled_from("abc")
TARGETS: st.SearchStrategy[int | str] = st.deferred(lambda: st.sampled_from([*chosen(), "x"]))
PORTS = st.deferred(lambda: st.sampled_from(chosen()))
ROUTED = st.deferred(lambda: st.sampled_from(chosen()[:3]))
SERVICES = st.builds(
    service,
    NAMES,
    st.tuples(st.just(443), TARGETS),
    st.tuples(st.just(22), PORTS),
    to=st.sampled_from([None, "web/shop", "mq/mqtt", "bad", f"{OWN}/a"]),
    created=st.sampled_from(["", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"]),
    proxy_protocol=st.sampled_from(["v1", "v2", "none", "pass", "v3"]),
    endpoint_headers=st.sampled_from(["", "443@192.0.2.1=none"]),
)


def table_of(ports: Any, watches: KnownWatches, **fixed: Any) -> RouteTable:
    """A table whose Services have been listed."""
    table = RouteTable(OpenPorts(ports, watches, Fixed(**fixed)), reserved=reserved())
    table.status.synced = True
    return table


class AnySequence(RuleBasedStateMachine):
    """Services come, change and go, and other programs take and free ports."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.ports = RealPorts()
        self.stack.callback(self.ports.close)
        self.watches = KnownWatches(ADDRESS)
        self.table = table_of(self.ports, self.watches)
        self.services: dict[str, RouteService | Unreadable] = {}
        self.taken: dict[int, socket.socket] = {}
        self.now = 0.0

    def teardown(self) -> None:
        for one in self.taken.values():
            one.close()
        self.stack.close()

    @initialize()
    def nothing(self) -> None:
        self.pass_time()

    @rule(changed=SERVICES)
    def put(self, changed: dict[str, RouteService]) -> None:
        self.services |= changed
        self.table.take(changed)

    @rule(name=NAMES)
    def garble(self, name: str) -> None:
        one = Unreadable(ObjectMeta(name, OWN), "ports is a text")
        self.services[f"{OWN}/{name}"] = one
        self.table.take({f"{OWN}/{name}": one})

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        self.services.pop(f"{OWN}/{name}", None)
        self.table.take({f"{OWN}/{name}": None})

    @rule(port=ROUTED)
    def occupy(self, port: int) -> None:
        if port not in self.taken and port not in self.ports.opened:
            self.taken[port] = one = socket.socket()
            one.bind((V4, port))
            one.listen()

    @rule(port=ROUTED)
    def leave(self, port: int) -> None:
        if port in self.taken:
            self.taken.pop(port).close()

    @rule()
    def pass_time(self) -> None:
        self.now += LAST_RETRY
        while self.table.step(self.now) <= self.now:
            pass

    @invariant()
    def the_open_ports_are_the_wanted_ones_but_for_those_in_use(self) -> None:
        self.pass_time()
        found = find_relay_routes(self.services, reserved=reserved())
        wanted = {one.listen: one for one in found.routes}
        assert self.ports.opened.keys() == wanted.keys() - self.taken.keys()
        assert listening(self.ports.opened) == self.ports.opened.keys()
        for port, (route, backend) in self.ports.opened.items():
            one = wanted[port]
            assert str(route.backend) == str(backend.destination) == f"service:{one.namespace}/{one.backend}:{one.port}"
            assert (str(route.proxy_protocol), route.stated_port) == (one.header, one.port)
            assert {address: str(header) for address, header in route.exceptions} == one.endpoint_headers
            assert self.watches.backends[backend] is (one.header in {"v1", "v2"})
        assert set(self.watches.backends) == {backend for _, backend in self.ports.opened.values()}

    @invariant()
    def every_fault_is_named_at_its_service(self) -> None:
        self.pass_time()
        found = find_relay_routes(self.services, reserved=reserved())
        expected = {key: list(why) for key, why in found.faults.items()}
        told = {key: [one for one in why if "cannot listen" not in one] for key, why in self.table.faults.items()}
        assert {key: why for key, why in told.items() if why} == expected
        closed = {service for one in found.routes if one.listen in self.taken for service in one.services}
        assert {key for key, why in self.table.faults.items() if any("cannot listen" in one for one in why)} == closed
        shown = {one.route.listen.port: one.backend is not None for one in self.table.routes}
        assert shown == {one.listen: one.listen not in self.taken for one in found.routes}


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = hypothesis.settings(max_examples=40, stateful_step_count=15, deadline=None)


@asynccontextmanager
async def relaying_services(addresses: Any) -> AsyncIterator[tuple[Relay, RouteTable]]:
    """A real relay without a route of a flag, and its table."""
    settings = Settings(routes=())
    relay = Relay(settings, open_listeners(settings))
    table = table_of(relay, KnownWatches(*addresses))
    async with trio.open_nursery() as nursery:
        await nursery.start(relay.serve)
        nursery.start_soon(table.keep, trio.Event())
        yield relay, table
        nursery.cancel_scope.cancel()


@hypothesis.settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(SERVICES, NAMES), max_size=8))
def test_a_connection_that_was_opened_before_all_changes_passes_octets_after_each(
    changes: list[dict[str, RouteService] | str],
) -> None:
    async def play() -> None:
        with trio.socket.socket() as backend:
            await backend.bind((V4, 0))
            backend.listen()
            async with relaying_services([address_of(V4, backend.getsockname()[1])]) as (relay, table):
                services: dict[str, RouteService | Unreadable] = {**service("a", (443, chosen()[0]))}
                table.take(services)
                await until(lambda: relay.listeners)
                client = trio.socket.socket()
                await client.connect((V4, chosen()[0]))
                served, _ = await backend.accept()
                with client, served:
                    assert (await read_header(served)).destination is not None
                    for change in changes:
                        changed: Mapping[str, RouteService | None] = (
                            {f"{OWN}/{change}": None} if isinstance(change, str) else change
                        )
                        table.take(changed)
                        services |= {key: one for key, one in changed.items() if one is not None}
                        services = {key: one for key, one in services.items() if changed.get(key, one) is not None}
                        wanted = {one.listen for one in find_relay_routes(services, reserved=reserved()).routes}
                        await until(lambda wanted=wanted: {one.endpoint.port for one in relay.listeners} == wanted)
                        await client.send(b"ping")
                        assert await received_in(served, 4) == b"ping"
                        await served.send(b"pong")
                        assert await received_in(client, 4) == b"pong"

    trio.run(play)


@pytest.fixture
def ports() -> Iterator[RealPorts]:
    made = RealPorts()
    yield made
    made.close()


async def test_before_a_whole_list_nothing_opens_and_the_reason_is_told(ports: RealPorts) -> None:
    table = table_of(ports, KnownWatches(ADDRESS))
    table.status.synced = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(table.keep, trio.Event())
        table.take(service("a", (443, chosen()[0])))
        await trio.testing.wait_all_tasks_blocked()
        assert ports.opened == {}
        assert table.waits() == "waiting for the route Services: syncing"
        table.status.state, table.status.error = FollowerState.RETRYING, Forbidden("403: no")
        assert table.waits() == "waiting for the route Services: retrying: 403: no"
        table.status.synced = True
        table.wake()
        await until(lambda: table.waits() is None)
        assert ports.opened.keys() == {chosen()[0]}
        # An outage later on changes nothing.
        table.wake()
        await trio.testing.wait_all_tasks_blocked()
        assert table.waits() is None
        nursery.cancel_scope.cancel()


async def test_after_a_list_without_routes_there_is_nothing_to_wait_for(ports: RealPorts) -> None:
    table = table_of(ports, KnownWatches(ADDRESS))
    assert table.waits() is not None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(table.keep, trio.Event())
        await until(lambda: table.waits() is None)
        nursery.cancel_scope.cancel()
    assert table.routes == []


async def test_a_relay_that_stops_opens_and_closes_no_port(ports: RealPorts) -> None:
    table = table_of(ports, KnownWatches(ADDRESS))
    stopping = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(table.keep, stopping)
        table.take(service("a", (443, chosen()[0])))
        await until(lambda: ports.opened)
        stopping.set()
        table.take({f"{OWN}/a": None, **service("b", (443, chosen()[1]))})
    assert ports.opened.keys() == {chosen()[0]}


async def test_a_port_in_use_is_opened_when_it_is_free(
    ports: RealPorts,
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    table = table_of(ports, KnownWatches(ADDRESS))
    async with trio.open_nursery() as nursery:
        with socket.socket() as taken:
            taken.bind((V4, chosen()[0]))
            taken.listen()
            nursery.start_soon(table.keep, trio.Event())
            table.take(service("a", (443, chosen()[0])))
            await trio.sleep(10)
            assert table.failures.keys() == {chosen()[0]}
        await trio.sleep(LAST_RETRY)
        assert ports.opened.keys() == {chosen()[0]}
        nursery.cancel_scope.cancel()


def test_each_new_fault_is_logged_once(ports: RealPorts) -> None:
    table = table_of(ports, KnownWatches(ADDRESS))
    with capture_logs() as logs:
        table.take(service("a", (443, "https")))
        for now in range(3):
            table.step(now)
        table.take(service("b", (443, chosen()[3])))
        table.step(3)
        table.take(service("a", (443, chosen()[0])))
        table.step(4)
        table.take(service("a", (443, "https")))
        table.step(5)
    told = [(entry["service"], entry["fault"]) for entry in logs if entry["event"] == "a route Service has a fault"]
    name = "the targetPort of port 443 is 'https'; name a number from 1 to 65535"
    assert told == [
        (f"{OWN}/a", name),
        (f"{OWN}/b", f"the targetPort of port 443 is {chosen()[3]}, which --admin has"),
        (f"{OWN}/a", name),
    ]
    assert {entry["log_level"] for entry in logs if "fault" in entry} == {"warning"}


def test_what_another_process_cannot_open_is_a_fault_of_the_service_here(ports: RealPorts) -> None:
    table = table_of(ports, KnownWatches(ADDRESS))
    table.take(service("a", (443, chosen()[0])))
    table.step(0)
    with capture_logs() as logs:
        for _ in range(3):
            table.note_elsewhere("worker 2", {chosen()[0]: "no file descriptor is left", 1: "of no route"})
    fault = "port 443: worker 2: no file descriptor is left"
    assert table.faults == {f"{OWN}/a": [fault]}
    assert [(entry["service"], entry["fault"]) for entry in logs] == [(f"{OWN}/a", fault)]
    (shown,) = table.routes
    assert shown.problem == "worker 2: no file descriptor is left"
    assert shown.backend is not None
    table.note_elsewhere("worker 2", {})
    assert table.faults == {}


def test_a_port_that_no_process_can_open_is_one_fault(ports: RealPorts) -> None:
    table = table_of(ports, KnownWatches(ADDRESS))
    with socket.socket() as taken, capture_logs() as logs:
        taken.bind((V4, chosen()[0]))
        taken.listen()
        table.take(service("a", (443, chosen()[0])))
        table.step(0)
        table.note_elsewhere("worker 1", dict(table.failures))
    assert len(table.faults[f"{OWN}/a"]) == 1
    assert len([entry for entry in logs if "fault" in entry]) == 1
