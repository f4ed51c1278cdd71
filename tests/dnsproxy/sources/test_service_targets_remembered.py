"""The addresses of Services that a snapshot remembers: they count until the API server has answered for each."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone
from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import trio
from trio.testing import MockClock

from dnsproxy.sources.service_targets import ServiceTargets
from tests.sidecar.kubernetes.faulty_api import Answer, FaultyApi, client_in_memory, failure, page

RELAY: Final = {"edge/relay": ("192.0.2.30",)}


def service(address: str) -> dict[str, Any]:
    metadata = {"name": "relay", "namespace": "edge", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"clusterIP": address, "clusterIPs": [address]}}


class Told:
    """What was told, and whether all Services have been asked for."""

    def __init__(self, api: FaultyApi) -> None:
        self.api = api
        self.addresses: list[Mapping[str, tuple[str, ...]]] = []
        self.targets: ServiceTargets | None = None

    @property
    def synced(self) -> bool:
        return self.targets is not None and self.targets.synced

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110  # the state of a task, which gives no signal; the clock jumps
            await trio.sleep(0.1)


@asynccontextmanager
async def remembering(*lists: Answer, wanted: Sequence[str] = ("edge/relay",)) -> AsyncIterator[Told]:
    told = Told(FaultyApi(lists))
    async with client_in_memory(told.api) as client, trio.open_nursery() as nursery:
        told.targets = ServiceTargets(client, on_change=lambda *change: told.addresses.append(change[-1]), known=RELAY)
        told.targets.want(wanted)
        nursery.start_soon(told.targets.run)
        yield told
        nursery.cancel_scope.cancel()


async def test_a_service_that_is_where_it_was_is_no_change(autojump_clock: MockClock) -> None:
    async with remembering(page(service("192.0.2.30"))) as told:
        await told.until(lambda: told.synced)
        assert told.addresses == []


async def test_a_service_that_moved_is_told(autojump_clock: MockClock) -> None:
    async with remembering(page(service("192.0.2.31"))) as told:
        await told.until(lambda: told.synced)
        assert told.addresses == [{"edge/relay": ("192.0.2.31",)}]


async def test_a_service_that_is_gone_is_told_after_a_second_look(autojump_clock: MockClock) -> None:
    async with remembering(page(), page()) as told:
        await told.until(lambda: told.synced)
        assert told.addresses == [{}]
        assert trio.current_time() >= 2


async def test_a_list_that_is_empty_for_a_moment_changes_nothing(autojump_clock: MockClock) -> None:
    async with remembering(page(), page(service("192.0.2.30"))) as told:
        await told.until(lambda: told.synced)
        assert told.addresses == []


async def test_nothing_changes_while_the_server_is_away(autojump_clock: MockClock) -> None:
    async with remembering(failure(503, "Unavailable")) as told:
        await told.until(lambda: len(told.api.listed) >= 2)
        assert told.addresses == []
        assert not told.synced
