"""Which Services are watched, and for how long: an API server in memory, and a clock that jumps."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from sidecar.kubernetes.watch_policy import DEFAULT_PACE
from tests.kit.live_api import LiveApi
from tests.proxy.backends.services import SPACE, put_service, put_slice, serving_api
from tests.proxy.backends.test_followed_service import A, B, api, backend_of, first_hosts, settle, watching

__all__ = ["api"]

SERVICES = f"/api/v1/namespaces/{SPACE}/services"


def lists_of(api: LiveApi, service: str) -> int:
    """How often a Service was listed."""
    return sum(one.params.get("fieldSelector") == f"metadata.name={service}" for one in api.listed)


async def test_the_ports_of_a_service_share_its_watches_until_the_last_has_gone(
    api: LiveApi,
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    async with watching(api) as watches:
        one, other, held = backend_of(), backend_of(port=22), backend_of()
        watches.add(one)
        watches.add(other)
        watches.add(held, holds=True)
        await settle()
        assert first_hosts(one) == first_hosts(other) == first_hosts(held) == {A}
        assert len(watches) == lists_of(api, "shop") == 1
        watches.remove(one)
        watches.remove(held)
        put_slice(api, "shop", B)
        await settle()
        assert first_hosts(other) == {B}
        assert first_hosts(one) == {A}, "it has the last addresses, for the connections that still begin"
        watches.remove(other)
        assert len(watches) == 0
        before = len(api.asked)
        await trio.sleep(DEFAULT_PACE.watch_timeout + 5)
        assert len(api.asked) == before, "no watch is renewed"


async def test_a_service_that_is_needed_again_is_read_anew(api: LiveApi, autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with watching(api) as watches:
        before = backend_of()
        watches.add(before)
        await settle()
        watches.remove(before)
        put_slice(api, "shop", B)
        after = backend_of()
        watches.add(after)
        assert first_hosts(after) == set()
        await settle()
        assert first_hosts(after) == {B}
        assert first_hosts(before) == {A}


async def test_a_service_that_is_left_before_its_first_list_is_not_asked_for(autojump_clock: MockClock) -> None:  # noqa: ARG001
    api = serving_api()
    put_service(api, "shop")
    async with watching(api) as watches:
        backend = backend_of()
        watches.add(backend)
        watches.remove(backend)
        await settle()
        assert api.asked == []
