"""Backends: names that resolve, change or vanish, and addresses of the relay itself."""

from __future__ import annotations

import functools
import socket

import pytest
from structlog.testing import capture_logs

from proxy.backends.backend import OWN_LISTENER, Address, Backend, address_of
from proxy.backends.health import Cause, Failure
from proxy.backends.last_addresses import CONFIRM_SECONDS
from proxy.backends.own_listeners import OwnListeners
from proxy.routes import ServicePort
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.host_port import HostPort
from tests.proxy.backends.resolving import NO_SUCH_NAME, SILENCE, TRY_AGAIN

NAMED = HostPort("backend.example.org", 80)


def backend_with(*hosts: str, listeners: tuple[Endpoint, ...] = ()) -> Backend:
    backend = Backend(NAMED, listeners=listeners)
    backend.take([address_of(host, 80) for host in hosts])
    return backend


def test_an_address_is_known_at_once() -> None:
    backend = Backend(HostPort("192.0.2.1", 80), listeners=())
    assert backend.addresses == backend.order() == (Address(socket.AF_INET, ("192.0.2.1", 80)),)


def test_an_ipv6_address_takes_its_form() -> None:
    backend = Backend(HostPort("::1", 80), listeners=())
    assert backend.addresses == (Address(socket.AF_INET6, ("::1", 80, 0, 0)),)


def test_a_scope_becomes_the_number_of_its_interface() -> None:
    name = socket.if_nameindex()[0][1]
    assert address_of(f"fe80::1%{name}", 80).sockaddr == ("fe80::1", 80, 0, socket.if_nametoindex(name))


def test_a_scope_of_no_interface_is_refused_at_the_start() -> None:
    with pytest.raises(StartError, match="fe80::1%nowhere"):
        Backend(HostPort("fe80::1%nowhere", 80), listeners=())


@pytest.mark.parametrize("destination", [NAMED, ServicePort("web", "ingress", "https")], ids=str)
def test_before_the_first_answer_there_is_neither_address_nor_failure(destination: HostPort | ServicePort) -> None:
    backend = Backend(destination, listeners=())
    assert backend.addresses == backend.order() == ()
    assert backend.failure is None


def test_a_change_of_address_is_followed() -> None:
    backend = backend_with("192.0.2.1", "2001:db8::1")
    backend.take([address_of("192.0.2.2", 80)])
    assert backend.addresses == (Address(socket.AF_INET, ("192.0.2.2", 80)),)


@pytest.mark.parametrize("failure", [TRY_AGAIN, SILENCE], ids=lambda failure: str(failure.cause))
def test_without_a_resolver_the_last_addresses_stay_which_is_logged_once(failure: Failure) -> None:
    backend = backend_with("192.0.2.1")
    with capture_logs() as logs:
        for _ in range(3):
            backend.take(failure)
    assert len(backend.addresses) == 1
    assert [(entry["event"], entry["cause"]) for entry in logs] == [
        ("backend not resolved, still using its last addresses", str(failure.cause))
    ]
    assert backend.health.failure is None
    with capture_logs() as logs:
        backend.take([address_of("192.0.2.1", 80)])
        backend.take(failure)
    assert len(logs) == 1


def test_a_service_without_endpoints_has_no_addresses_which_is_logged_once() -> None:
    backend, failure = backend_with("192.0.2.1"), Failure(Cause.NO_ENDPOINTS, "no endpoint is ready")
    with capture_logs() as logs:
        for _ in range(3):
            backend.take(failure)
    assert backend.addresses == ()
    assert backend.failure == failure
    assert [(entry["event"], entry["cause"]) for entry in logs] == [("backend unreachable", "no-endpoints")]


class Clock:
    """The time that a backend reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("proxy.backends.backend.monotonic", lambda: self.now)


def test_a_vanished_name_loses_its_addresses_when_a_later_answer_confirms_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, backend = Clock(monkeypatch), backend_with("192.0.2.1")
    with capture_logs() as logs:
        for answer in (NO_SUCH_NAME, NO_SUCH_NAME, SILENCE, NO_SUCH_NAME):
            backend.take(answer)
            assert len(backend.addresses) == 1
            assert backend.failure is None
        clock.now += CONFIRM_SECONDS
        backend.take(NO_SUCH_NAME)
        assert backend.addresses == ()
        assert backend.failure == NO_SUCH_NAME
        backend.take(NO_SUCH_NAME)
    vanished = "the backend's name has vanished, using its last addresses until that is confirmed"
    assert [entry["event"] for entry in logs] == [
        vanished,
        "backend not resolved, still using its last addresses",
        vanished,
        "backend unreachable",
    ]


def test_a_name_that_comes_back_is_doubted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, backend = Clock(monkeypatch), backend_with("192.0.2.1")
    for _ in range(3):
        backend.take(NO_SUCH_NAME)
        clock.now += CONFIRM_SECONDS
        backend.take([address_of("192.0.2.1", 80)])
        backend.take(NO_SUCH_NAME)
        assert len(backend.addresses) == 1
        backend.take([address_of("192.0.2.1", 80)])


def test_a_name_that_never_existed_is_reported_at_once() -> None:
    backend = Backend(NAMED, listeners=())
    backend.take(NO_SUCH_NAME)
    assert backend.failure == NO_SUCH_NAME


def test_a_callback_is_called_once_by_the_next_answer_or_failure() -> None:
    for answer in ([address_of("192.0.2.1", 80)], NO_SUCH_NAME, []):
        backend = Backend(NAMED, listeners=())
        called: list[str] = []
        forgotten = functools.partial(called.append, "forgotten")
        backend.when_known(functools.partial(called.append, "waited"))
        backend.when_known(forgotten)
        backend.forget(forgotten)
        for _ in range(2):
            backend.take(answer)
        assert called == ["waited"]


@pytest.mark.parametrize(
    ("listener", "address"),
    [
        pytest.param(Endpoint("127.0.0.1", 80), "127.0.0.1", id="the same address"),
        pytest.param(Endpoint("::", 80), "127.0.0.1", id="loopback and every address"),
        pytest.param(Endpoint("0.0.0.0", 80), "127.0.0.2", id="loopback and every IPv4 address"),
    ],
)
def test_an_address_of_a_listener_is_never_dialled(listener: Endpoint, address: str) -> None:
    backend = backend_with(address, listeners=(listener,))
    assert backend.addresses == ()
    assert backend.failure is OWN_LISTENER
    backend.take([address_of("192.0.2.1", 80)])
    assert backend.failure is None
    with capture_logs() as logs:
        for _ in range(3):
            backend.take([address_of(address, 80), address_of("192.0.2.1", 80)])
    assert [found.host for found in backend.addresses] == ["192.0.2.1"]
    assert [entry["event"] for entry in logs] == ["excluded an address of the backend, a listener of this relay"]


def test_a_listener_on_all_addresses_excludes_every_local_address() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # No packet leaves: connecting a datagram socket only chooses a route.
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this computer has no route, so no address but loopback")
        own = probe.getsockname()[0]
    backend = Backend(HostPort(own, 80), listeners=(Endpoint("::", 80),))
    assert backend.failure is not None
    assert backend.failure.cause is Cause.OWN_LISTENER
    assert Backend(HostPort(own, 81), listeners=(Endpoint("::", 80),)).failure is None


def test_an_address_that_failed_is_tried_last_and_fresh_ones_are_asked_for() -> None:
    backend = backend_with("192.0.2.1", "192.0.2.2")
    first, second = backend.addresses
    assert not backend.outdated.is_set()
    backend.demote(first)
    assert backend.outdated.is_set()
    assert [backend.order() for _ in range(3)] == [(second, first)] * 3
    backend.note_connected(first)
    assert {backend.order()[0] for _ in range(2)} == {first, second}


def test_a_listener_that_comes_excludes_an_address_until_it_goes() -> None:
    backend = backend_with("127.0.0.1", "192.0.2.1")
    with capture_logs() as logs:
        backend.set_listeners(OwnListeners([Endpoint("::", 80), Endpoint("::", 443)]))
        assert [one.host for one in backend.addresses] == ["192.0.2.1"]
        backend.set_listeners(OwnListeners([Endpoint("::", 80)]))
        backend.set_listeners(OwnListeners([Endpoint("::", 443)]))
        assert [one.host for one in backend.addresses] == ["127.0.0.1", "192.0.2.1"]
    assert [entry["event"] for entry in logs] == ["excluded an address of the backend, a listener of this relay"]


def test_a_backend_that_becomes_the_relay_itself_says_so_and_recovers() -> None:
    backend = backend_with("127.0.0.1")
    with capture_logs() as logs:
        backend.set_listeners(OwnListeners([Endpoint("::", 80)]))
    assert backend.addresses == ()
    assert backend.failure is OWN_LISTENER is backend.health.failure
    assert [entry["cause"] for entry in logs] == ["own-listener"]
    backend.set_listeners(OwnListeners())
    assert backend.failure is None
    assert [one.host for one in backend.addresses] == ["127.0.0.1"]


@pytest.mark.parametrize("failure", [NO_SUCH_NAME, SILENCE], ids=lambda failure: str(failure.cause))
def test_listeners_that_change_before_the_first_answer_bring_no_address(failure: Failure) -> None:
    backend = Backend(NAMED, listeners=())
    backend.set_listeners(OwnListeners([Endpoint("::", 80)]))
    assert backend.failure is None
    backend.take(failure)
    backend.set_listeners(OwnListeners())
    assert backend.addresses == ()
    assert backend.failure is failure


def test_held_addresses_are_tried_last_and_own_ones_among_them_never() -> None:
    backend = Backend(NAMED, listeners=[Endpoint("127.0.0.1", 80)])
    backend.take([address_of("192.0.2.1", 80)], held=[address_of("192.0.2.2", 80), address_of("127.0.0.1", 80)])
    assert [[one.host for one in backend.order()] for _ in range(2)] == [["192.0.2.1", "192.0.2.2"]] * 2
    backend.set_listeners(OwnListeners())
    assert {next(one.host for one in backend.order()) for _ in range(3)} == {"192.0.2.1"}
    assert len(backend.order()) == 3


def test_a_client_that_waits_for_addresses_is_known() -> None:
    backend = Backend(NAMED, listeners=())
    assert not backend.is_awaited
    backend.when_known(print)
    assert backend.is_awaited
    backend.take([address_of("192.0.2.1", 80)])
    assert not backend.is_awaited
