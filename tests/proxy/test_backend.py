"""Backends: names that resolve, change, vanish, or are ourselves."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from structlog.testing import capture_logs

from proxy import backend as backend_module
from proxy.backend import Address, Backend
from proxy.readiness import Cause
from proxy.routes import Destination
from sidecar.endpoints import Endpoint
from sidecar.errors import StartError
from tests.proxy.relaying import until
from tests.proxy.resolving import NO_SUCH_NAME, TRY_AGAIN, PlayedResolver, played_resolver

NAMED = Destination("backend.example.org", 80)


@asynccontextmanager
async def resolved(
    monkeypatch: pytest.MonkeyPatch, *, listeners: tuple[Endpoint, ...] = ()
) -> AsyncIterator[tuple[Backend, PlayedResolver]]:
    """A backend whose name is looked up again without a pause."""
    monkeypatch.setattr(backend_module, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(backend_module, "FRESH_SECONDS", 0.02)
    with played_resolver() as resolver:
        backend = Backend(NAMED, listeners=listeners)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(backend.keep_resolved)
            yield backend, resolver
            nursery.cancel_scope.cancel()


async def test_an_address_is_known_at_once_and_never_looked_up() -> None:
    backend = Backend(Destination("192.0.2.1", 80), listeners=())
    await backend.keep_resolved()
    assert backend.addresses == (Address(socket.AF_INET, ("192.0.2.1", 80)),)


async def test_an_ipv6_address_takes_its_form() -> None:
    backend = Backend(Destination("::1", 80), listeners=())
    assert backend.addresses == (Address(socket.AF_INET6, ("::1", 80, 0, 0)),)


async def test_a_scope_of_no_interface_is_refused_at_the_start() -> None:
    with pytest.raises(StartError, match="fe80::1%nowhere"):
        Backend(Destination("fe80::1%nowhere", 80), listeners=())


async def test_a_change_of_address_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with resolved(monkeypatch) as (backend, resolver):
        resolver.set(["192.0.2.1", "2001:db8::1"])
        await until(lambda: len(backend.addresses) == 2)
        resolver.set(["192.0.2.2"])
        await until(lambda: backend.addresses == (Address(socket.AF_INET, ("192.0.2.2", 80)),))


async def test_while_the_resolver_is_away_the_last_addresses_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    async with resolved(monkeypatch) as (backend, resolver):
        resolver.set(["192.0.2.1"])
        await until(lambda: backend.addresses != ())
        with capture_logs() as logs:
            resolver.set(TRY_AGAIN)
            asked = resolver.asked
            await until(lambda: resolver.asked > asked + 3)
        assert len(backend.addresses) == 1
        assert [entry["event"] for entry in logs] == ["backend not resolved, its last addresses stay"]
        assert backend.health.failure is None


async def test_a_name_that_is_gone_has_no_addresses_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async with resolved(monkeypatch) as (backend, resolver):
        resolver.set(["192.0.2.1"])
        await until(lambda: backend.addresses != ())
        with capture_logs() as logs:
            resolver.set(NO_SUCH_NAME)
            await until(lambda: backend.failure is not None)
            asked = resolver.asked
            await until(lambda: resolver.asked > asked + 3)
        assert backend.addresses == ()
        assert backend.failure is not None
        assert backend.failure.cause is Cause.DNS_NXDOMAIN
        assert [(entry["event"], entry["cause"]) for entry in logs] == [("backend unreachable", "dns-nxdomain")]


async def test_a_look_up_that_takes_too_long_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_module, "LOOKUP_SECONDS", 0.01)
    async with resolved(monkeypatch) as (backend, _):
        await until(lambda: backend.failure is not None)
        assert backend.failure is not None
        assert backend.failure.cause is Cause.DNS_TIMEOUT


async def test_a_name_that_no_resolver_takes_is_an_error_and_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async with resolved(monkeypatch) as (backend, resolver):
        monkeypatch.setattr(resolver, "getaddrinfo", refuse_name)
        resolver.set(["192.0.2.1"])
        await until(lambda: backend.failure is not None and backend.failure.cause is Cause.DNS_ERROR)


async def refuse_name(*_: object) -> None:
    raise UnicodeError("label empty or too long")


@pytest.mark.parametrize(
    ("listener", "address"),
    [
        pytest.param(Endpoint("127.0.0.1", 80), "127.0.0.1", id="the same address"),
        pytest.param(Endpoint("::", 80), "127.0.0.1", id="loopback and every address"),
        pytest.param(Endpoint("0.0.0.0", 80), "127.0.0.2", id="loopback and every IPv4 address"),
    ],
)
async def test_an_address_of_ours_is_never_dialled(
    monkeypatch: pytest.MonkeyPatch, listener: Endpoint, address: str
) -> None:
    async with resolved(monkeypatch, listeners=(listener,)) as (backend, resolver):
        resolver.set([address])
        await until(lambda: backend.failure is not None)
        assert backend.failure is not None
        assert backend.failure.cause is Cause.OWN_LISTENER
        resolver.set([address, "192.0.2.1"])
        await until(lambda: backend.failure is None)
        assert [found.target[0] for found in backend.addresses] == ["192.0.2.1"]


async def test_every_address_of_this_computer_is_ours_for_a_listener_on_all() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # No packet leaves: connecting a datagram socket only chooses a route.
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this computer has no route, so no address but loopback")
        own = probe.getsockname()[0]
    backend = Backend(Destination(own, 80), listeners=(Endpoint("::", 80),))
    assert backend.failure is not None
    assert backend.failure.cause is Cause.OWN_LISTENER
    assert Backend(Destination(own, 81), listeners=(Endpoint("::", 80),)).failure is None


async def test_a_duplicate_address_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with resolved(monkeypatch) as (backend, resolver):
        resolver.set(["192.0.2.1", "192.0.2.1"])
        await until(lambda: backend.addresses != ())
        assert len(backend.addresses) == 1


async def test_an_address_that_failed_goes_behind_the_others() -> None:
    backend = Backend(NAMED, listeners=())
    first, second = (Address(socket.AF_INET, (host, 80)) for host in ("192.0.2.1", "192.0.2.2"))
    backend.addresses = (first, second)
    backend.demote(first)
    assert backend.addresses == (second, first)
    backend.demote(Address(socket.AF_INET, ("192.0.2.3", 80)))
    assert backend.addresses == (second, first)
