"""Which backends routes share, and how long each is followed."""

from __future__ import annotations

import pytest

from proxy.backends.backend import address_of
from proxy.backends.own_listeners import OwnListeners
from proxy.header.protocol import ProxyProtocol
from proxy.route_services.backends import RouteBackends
from sidecar.values.endpoints import Endpoint
from tests.proxy.route_services.made import KnownWatches, route

V1, V2, NONE = ProxyProtocol.V1, ProxyProtocol.V2, ProxyProtocol.NONE


@pytest.fixture
def watches() -> KnownWatches:
    return KnownWatches(address_of("127.0.0.1", 443), address_of("192.0.2.1", 443))


def test_routes_to_one_service_port_share_a_backend_if_both_hold_back_or_neither(watches: KnownWatches) -> None:
    backends = RouteBackends(watches, OwnListeners())
    by_v1, by_v2, by_none, other = (
        backends.take(one)
        for one in (route(1), route(2, proxy_protocol=V2), route(3, proxy_protocol=NONE), route(4, "other"))
    )
    assert by_v1 is by_v2
    assert len({by_v1, by_none, other}) == 3
    assert watches.backends == {by_v1: True, by_none: False, other: True}
    assert backends.services == 2


def test_a_backend_is_followed_until_its_last_route_has_gone(watches: KnownWatches) -> None:
    backends = RouteBackends(watches, OwnListeners())
    backend = backends.take(route(1))
    assert backends.take(route(2)) is backend
    backends.give_back(route(1))
    assert not backends.sweep()
    assert backend in watches.backends
    backends.give_back(route(2))
    assert backends.take(route(3)) is backend, "taken again before a sweep"
    assert not backends.sweep()
    assert backend in watches.backends
    backends.give_back(route(3))
    assert not backends.sweep()
    assert watches.backends == {}
    assert backends.take(route(1)) is not backend


def test_a_backend_for_whose_addresses_clients_wait_is_followed_for_longer() -> None:
    watches = KnownWatches()
    backends = RouteBackends(watches, OwnListeners())
    backend = backends.take(route(1))
    backend.when_known(print)
    backends.give_back(route(1))
    assert backends.sweep()
    assert backend in watches.backends
    backend.forget(print)
    assert not backends.sweep()
    assert watches.backends == {}


def test_a_backend_leaves_out_the_listeners_that_are_there_and_those_that_come(watches: KnownWatches) -> None:
    backends = RouteBackends(watches, OwnListeners([Endpoint("::", 443)]))
    backend = backends.take(route(1))
    assert [one.host for one in backend.addresses] == ["192.0.2.1"]
    backends.set_listeners(OwnListeners())
    assert len(backend.addresses) == 2
    backends.set_listeners(OwnListeners([Endpoint("::", 443)]))
    assert [one.host for one in backend.addresses] == ["192.0.2.1"]
