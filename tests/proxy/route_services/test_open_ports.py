"""The open ports of routes, with sockets that really listen."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from proxy.backends.backend import Backend, address_of
from proxy.header.protocol import ProxyProtocol
from proxy.route_services.changes import FIRST_RETRY
from proxy.route_services.open_ports import AT_ONCE, SWEEP_SECONDS, OpenPorts
from proxy.route_services.ports import Fixed
from proxy.routes import Route
from sidecar.values.endpoints import Endpoint
from sidecar.values.host_port import HostPort
from tests.kit.ports import free_port, free_ports
from tests.proxy.route_services.made import KnownWatches, RealPorts, listening, route


@pytest.fixture
def ports() -> Iterator[RealPorts]:
    made = RealPorts()
    yield made
    made.close()


@pytest.fixture
def watches() -> KnownWatches:
    return KnownWatches(address_of("192.0.2.1", 443))


def events(logs: Sequence[object]) -> list[tuple[str, str]]:
    return [(entry["event"], entry["log_level"]) for entry in logs]  # type: ignore[index]


def test_each_change_is_made_and_logged_once(ports: RealPorts, watches: KnownWatches) -> None:
    opened = OpenPorts(ports, watches, Fixed())
    one, other = free_ports(2)
    before = route(one)
    after = replace(before, exceptions=(("192.0.2.1", ProxyProtocol.NONE),))
    with capture_logs() as logs:
        opened.change_some([before], 0)
        descriptor = ports.descriptor(one)
        opened.change_some([after, route(other)], 1)
        assert ports.descriptor(one) == descriptor
        assert listening({one: 0, other: 0}) == {one, other}
        opened.change_some([after, route(other)], 2)
        opened.change_some([], 3)
        assert listening({one: 0, other: 0}) == set()
    assert events(logs) == [
        ("route opened", "info"),
        ("route changed", "info"),
        ("route opened", "info"),
        ("route closed", "info"),
        ("route closed", "info"),
    ]
    assert logs[0] == {
        "event": "route opened",
        "log_level": "info",
        "listen": f"[::]:{one}",
        "backend": "service:web/shop:443",
        "proxy_protocol": "v1",
        "services": ["switchback/a"],
    }
    assert logs[1]["exceptions"] == {"192.0.2.1": "none"}
    assert watches.backends == {}


def test_a_quiet_process_logs_nothing_that_another_one_logs(ports: RealPorts, watches: KnownWatches) -> None:
    opened = OpenPorts(ports, watches, Fixed(), quiet=True)
    with capture_logs() as logs:
        opened.change_some([route(free_port())], 0)
    assert events(logs) == [("route opened", "debug")]


def test_a_port_in_use_is_tried_again_and_touches_no_other(ports: RealPorts, watches: KnownWatches) -> None:
    opened = OpenPorts(ports, watches, Fixed())
    one, other = free_ports(2)
    wanted = [route(one), route(other, "other")]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", one))
        taken.listen()
        assert opened.change_some(wanted, 10) == 10 + FIRST_RETRY
        assert ports.opened.keys() == {other}
        assert opened.failures[one].startswith(f"cannot listen on [::]:{one}: the address is in use")
        assert {backend.destination for backend in watches.backends} == {wanted[1].backend}
        assert opened.live(wanted[0], "a reason").backend is None
        # Other changes do not bring the next attempt forward.
        assert opened.change_some([wanted[0]], 10.5) == 10 + FIRST_RETRY
        assert opened.change_some([wanted[0]], 10 + FIRST_RETRY) == 10 + 3 * FIRST_RETRY
    assert opened.change_some([wanted[0]], 10 + 3 * FIRST_RETRY) == float("inf")
    assert ports.opened.keys() == {one}
    assert opened.failures == {}


def test_a_port_that_nobody_wants_any_more_is_not_tried_again(ports: RealPorts, watches: KnownWatches) -> None:
    opened = OpenPorts(ports, watches, Fixed())
    one = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", one))
        taken.listen()
        opened.change_some([route(one)], 0)
        assert opened.change_some([], 0) == float("inf")
        assert opened.failures == {}


def test_many_changes_are_made_in_rounds(ports: RealPorts, watches: KnownWatches) -> None:
    opened = OpenPorts(ports, watches, Fixed())
    wanted = [route(port) for port in free_ports(AT_ONCE + 10)]
    assert opened.change_some(wanted, 7) == 7
    assert len(ports.opened) == AT_ONCE
    assert opened.change_some(wanted, 7) == float("inf")
    assert len(ports.opened) == AT_ONCE + 10


def test_where_descriptors_are_scarce_the_ports_that_are_open_stay(ports: RealPorts, watches: KnownWatches) -> None:
    opened = OpenPorts(ports, watches, Fixed(most=1, no_room="no room"))
    one, other = sorted(free_ports(2))
    assert opened.change_some([route(other)], 0) == float("inf")
    assert opened.change_some([route(one), route(other)], 0) == float("inf")
    assert ports.opened.keys() == {other}
    assert opened.problems == {one: "no room"}
    opened.change_some([route(one)], 0)
    assert ports.opened.keys() == {one}
    assert opened.problems == {}


def test_limits_leave_room_for_ports_and_watches(ports: RealPorts, watches: KnownWatches) -> None:
    opened = OpenPorts(ports, watches, Fixed())
    one, other, third = free_ports(3)
    opened.change_some([route(one), route(other), route(third, "other")], 0)
    assert ports.set_aside_last == 3 + 2 * 2
    opened.change_some([route(one)], 0)
    assert ports.set_aside_last == 1 + 2


def test_a_service_that_only_moves_to_another_port_is_watched_all_the_time(
    ports: RealPorts, watches: KnownWatches
) -> None:
    opened = OpenPorts(ports, watches, Fixed())
    one, other = free_ports(2)
    opened.change_some([route(one)], 0)
    (before,) = watches.backends
    opened.change_some([route(other)], 0)
    assert list(watches.backends) == [before]
    opened.change_some([route(other, proxy_protocol=ProxyProtocol.NONE)], 0)
    (after,) = watches.backends
    assert after is not before, "without hold-back"


def test_a_backend_that_clients_wait_for_is_looked_at_again(ports: RealPorts) -> None:
    watches = KnownWatches()
    opened = OpenPorts(ports, watches, Fixed())
    one = free_port()
    opened.change_some([route(one)], 0)
    (backend,) = watches.backends
    backend.when_known(print)
    assert opened.change_some([], 5) == 5 + SWEEP_SECONDS
    backend.forget(print)
    assert opened.change_some([], 6) == float("inf")
    assert watches.backends == {}
    assert ports.set_aside_last == 0


def test_backends_of_flags_and_of_services_leave_out_the_ports_that_open(ports: RealPorts) -> None:
    one, other = free_ports(2)
    by_flag = Backend(HostPort("127.0.0.1", one), listeners=())
    fixed = Fixed(listeners=[Endpoint("127.0.0.1", 1)], backends=[by_flag])
    watches = KnownWatches(address_of("127.0.0.1", one), address_of("127.0.0.1", 1), address_of("192.0.2.1", 1))
    opened = OpenPorts(ports, watches, fixed)
    wanted: list[Route] = [route(one), route(other, "other")]
    opened.change_some(wanted, 0)
    for backend in watches.backends:
        assert [one.host for one in backend.addresses] == ["192.0.2.1"]
    assert by_flag.addresses == ()
    opened.change_some(wanted[1:], 0)
    (left,) = watches.backends
    assert len(left.addresses) == 2
    assert len(by_flag.addresses) == 1
