"""A followed Service, above all its new endpoints: an API server in memory, and a clock that jumps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from proxy.backends.backend import Backend
from proxy.backends.hold_back import HOLD
from proxy.backends.service_watch import ServiceWatches
from proxy.routes import ServicePort
from tests.kit.faulty_api import client_in_memory
from tests.kit.live_api import LiveApi
from tests.proxy.backends.services import LEAVING, SPACE, put_service, put_slice, serving_api

A, B, C = "192.0.2.1", "192.0.2.2", "192.0.2.3"


def backend_of(service: str = "shop", port: int = 443) -> Backend:
    return Backend(ServicePort(SPACE, service, port), listeners=())


def first_hosts(backend: Backend) -> set[str]:
    """The addresses to which a connection goes if nothing fails."""
    return {order[0].host for order in (backend.order() for _ in range(6)) if order}


@asynccontextmanager
async def watching(api: LiveApi) -> AsyncIterator[ServiceWatches]:
    watches = ServiceWatches()
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:
        nursery.start_soon(watches.run, client)
        yield watches
        nursery.cancel_scope.cancel()


@pytest.fixture
def api() -> LiveApi:
    made = serving_api()
    put_service(made, "shop")
    put_slice(made, "shop", A)
    return made


async def settle() -> None:
    """Events arrive without any time passing; the next timer is a second away at least."""
    await trio.sleep(0.1)


async def test_a_new_endpoint_is_used_when_its_hold_ends(api: LiveApi, autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with watching(api) as watches:
        held, plain = backend_of(), backend_of()
        watches.add(held, holds=True)
        watches.add(plain)
        await settle()
        assert first_hosts(held) == first_hosts(plain) == {A}
        put_slice(api, "shop", A, B)
        await settle()
        assert first_hosts(held) == {A}
        assert first_hosts(plain) == {A, B}
        assert [one.host for one in held.order()] == [A, B]
        await trio.sleep(HOLD - 0.2)
        assert first_hosts(held) == {A}
        await trio.sleep(0.2)
        assert first_hosts(held) == {A, B}


async def test_each_hold_ends_by_itself(api: LiveApi, autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with watching(api) as watches:
        held = backend_of()
        watches.add(held, holds=True)
        await settle()
        put_slice(api, "shop", A, B)
        await trio.sleep(1)
        put_slice(api, "shop", A, B, C)
        await trio.sleep(HOLD - 1 + 0.1)
        assert first_hosts(held) == {A, B}
        await trio.sleep(1)
        assert first_hosts(held) == {A, B, C}


async def test_without_another_endpoint_a_new_one_is_used_at_once(api: LiveApi, autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with watching(api) as watches:
        held = backend_of()
        watches.add(held, holds=True)
        await settle()
        put_slice(api, "shop", A, conditions=LEAVING)
        put_slice(api, "shop", B, name="b")
        await settle()
        assert first_hosts(held) == {A}
        put_slice(api, "shop")
        await settle()
        assert first_hosts(held) == {B}


async def test_the_first_list_of_a_backend_is_used_at_once(api: LiveApi, autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with watching(api) as watches:
        first = backend_of()
        watches.add(first, holds=True)
        await settle()
        put_slice(api, "shop", A, B)
        await settle()
        second = backend_of(port=22)
        watches.add(second, holds=True)
        assert first_hosts(second) == {A, B}, "at once, and without another list"
        assert first_hosts(first) == {A}
