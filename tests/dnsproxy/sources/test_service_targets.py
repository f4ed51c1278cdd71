"""Following the Services of targets: their addresses, their faults, and their limit."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import structlog
import structlog.testing
import trio
from trio.testing import MockClock

from dnsproxy.sources.service_targets import Addresses, ServiceTargets
from tests.kit.faulty_api import SILENCE, Answer, client_in_memory, failure
from tests.kit.live_api import LiveApi

RELAY: Final = "edge/relay"
PATH: Final = "/api/v1/namespaces/edge/services"
Logs = list[Any]


@pytest.fixture
def logs() -> Iterator[Logs]:
    structlog.reset_defaults()
    with structlog.testing.capture_logs() as captured:
        yield captured


@dataclass
class Told:
    api: LiveApi
    targets: ServiceTargets
    changes: list[tuple[str, Addresses]] = field(default_factory=list)
    syncs: int = 0

    @property
    def addresses(self) -> Addresses:
        return self.targets.addresses

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110  # the state of a task, which gives no signal; the clock jumps
            await trio.sleep(0.1)

    async def until_at(self, *addresses: str) -> None:
        await self.until(lambda: self.addresses.get(RELAY, ()) == addresses)


@asynccontextmanager
async def following(
    api: LiveApi, *configured: str, known: Addresses | None = None, most: int = 100
) -> AsyncIterator[Told]:
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:

        def take(key: str, addresses: Addresses) -> None:
            told.changes.append((key, addresses))

        def note() -> None:
            told.syncs += 1

        targets = ServiceTargets(
            client, configured=configured, known=known or {}, on_change=take, on_synced=note, most=most
        )
        told = Told(api, targets)
        nursery.start_soon(told.targets.run)
        yield told
        nursery.cancel_scope.cancel()


def api_with(*addresses: str, key: str = RELAY) -> LiveApi:
    """A server with one Service, or with none."""
    api = LiveApi()
    api.provide("v1", "services")
    if addresses:
        put(api, *addresses, key=key)
    return api


def put(api: LiveApi, *addresses: str, key: str = RELAY, **spec: Any) -> None:
    namespace, _, name = key.partition("/")
    spec = {"clusterIP": addresses[0], "clusterIPs": list(addresses)} if addresses else spec
    api.put("", "services", {"metadata": {"name": name, "namespace": namespace}, "spec": spec})


async def test_both_families_are_reported(autojump_clock: MockClock) -> None:
    async with following(api_with("10.96.0.1", "2001:db8::1"), RELAY) as told:
        await told.until(lambda: told.targets.synced)
        assert told.changes == [(RELAY, {RELAY: ("10.96.0.1", "2001:db8::1")})]
        assert told.targets.faults == {}
        assert [status.kind for status in told.targets.statuses] == ["Service edge/relay"]


async def test_only_the_services_that_are_wanted_are_asked_for(autojump_clock: MockClock) -> None:
    api = api_with("10.96.0.1")
    put(api, "10.96.0.2", key="edge/other")
    async with following(api, RELAY) as told:
        await told.until(lambda: told.targets.synced)
        assert told.addresses == {RELAY: ("10.96.0.1",)}
    assert {one.params["fieldSelector"] for one in api.asked} == {"metadata.name=relay"}


async def test_nothing_wanted_is_synced_at_once_and_asks_for_nothing(autojump_clock: MockClock) -> None:
    api = LiveApi()
    async with following(api) as told:
        assert told.targets.synced
        assert told.targets.consistent
        await trio.sleep(5)
    assert api.asked == []


async def test_a_service_made_anew_has_its_new_address(autojump_clock: MockClock) -> None:
    """A ClusterIP does not change in place: Helm and users delete and create the Service."""
    api = api_with("10.96.0.1")
    async with following(api, RELAY) as told:
        await told.until_at("10.96.0.1")
        api.remove("", "services", RELAY)
        await told.until_at()
        assert told.targets.faults == {RELAY: "there is no such Service"}
        put(api, "10.96.0.2")
        await told.until_at("10.96.0.2")
        assert told.targets.faults == {}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        pytest.param({"clusterIP": "None", "clusterIPs": ["None"]}, "it is headless", id="headless"),
        pytest.param({"type": "ExternalName", "externalName": "x.example.org"}, "it is an External", id="ExternalName"),
        pytest.param({"type": "LoadBalancer"}, "it has no ClusterIP yet", id="without an address"),
        pytest.param({"clusterIPs": 7}, "unreadable: ", id="unreadable"),
    ],
)
async def test_a_service_that_cannot_be_a_target_is_logged_once_and_has_no_address(
    autojump_clock: MockClock, logs: Logs, spec: dict[str, Any], fault: str
) -> None:
    api = api_with("10.96.0.1")
    async with following(api, RELAY) as told:
        await told.until_at("10.96.0.1")
        for _ in range(3):
            put(api, **spec)
            await trio.sleep(1)
        assert told.addresses == {}
        assert told.targets.faults[RELAY].startswith(fault)
        put(api, "10.96.0.3")
        await told.until_at("10.96.0.3")
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == [
        "target has no address; names that point there are forwarded"
    ]


async def test_one_that_is_missing_is_reported_and_found_later(autojump_clock: MockClock, logs: Logs) -> None:
    """Its absence does not delay the start: the cluster was asked."""
    api = api_with()
    async with following(api, RELAY) as told:
        await told.until(lambda: told.targets.synced)
        assert told.targets.consistent
        assert told.targets.faults == {RELAY: "there is no such Service"}
        assert told.changes == []
        put(api, "10.96.0.1")
        await told.until_at("10.96.0.1")
        assert told.targets.faults == {}


async def test_a_change_without_another_address_is_not_reported(autojump_clock: MockClock) -> None:
    """A Service's status and labels change more often than its address."""
    api = api_with("10.96.0.1")
    async with following(api, RELAY) as told:
        await told.until_at("10.96.0.1")
        put(api, "10.96.0.1")
        put(api, "10.96.0.2")
        await told.until_at("10.96.0.2")
        assert [addresses[RELAY] for _, addresses in told.changes] == [("10.96.0.1",), ("10.96.0.2",)]


async def test_an_outage_takes_no_address_away(autojump_clock: MockClock) -> None:
    api = api_with("10.96.0.1")
    async with following(api, RELAY) as told:
        await told.until_at("10.96.0.1")
        api.crash()
        await trio.sleep(30)
        assert told.changes == [(RELAY, {RELAY: ("10.96.0.1",)})]
        api.remove("", "services", RELAY)
        put(api, "10.96.0.2")
        api.recover()
        await told.until_at("10.96.0.2")


async def test_a_configured_service_that_we_may_not_see_is_waited_for(autojump_clock: MockClock) -> None:
    api = api_with("10.96.0.1")
    api.faults[PATH] = failure(403, "Forbidden")
    async with following(api, RELAY) as told:
        await trio.sleep(20)
        assert not told.targets.synced
        assert not told.targets.consistent
        api.faults.clear()
        await told.until(lambda: told.targets.synced)


@pytest.mark.parametrize("answer", [failure(403, "Forbidden"), failure(500, "Error"), Answer([SILENCE])])
async def test_a_service_that_only_an_object_names_delays_the_first_sync_briefly(
    autojump_clock: MockClock, answer: Answer
) -> None:
    """Otherwise any user who may create an object could keep the server from becoming ready."""
    api = api_with("10.96.0.1")
    api.faults["/api/v1/namespaces/secret/services"] = answer
    async with following(api, RELAY) as told:
        told.targets.want(["secret/service"])
        assert not told.targets.synced
        await told.until(lambda: told.targets.consistent)
        syncs = told.syncs
        await told.until(lambda: told.targets.synced)
        assert told.syncs > syncs
        assert told.addresses == {RELAY: ("10.96.0.1",)}
        assert trio.current_time() <= 10


async def test_one_that_an_object_names_is_followed_until_none_does(autojump_clock: MockClock) -> None:
    api = api_with("10.96.0.1")
    put(api, "10.96.0.2", key="shop/edge")
    async with following(api, RELAY) as told:
        await told.until_at("10.96.0.1")
        told.targets.want(["shop/edge", RELAY])
        await told.until(lambda: "shop/edge" in told.addresses)
        told.targets.leave(["shop/edge", RELAY])
        assert told.addresses == {RELAY: ("10.96.0.1",)}
        assert told.changes[-1] == ("shop/edge", {RELAY: ("10.96.0.1",)})
        assert len(told.targets.statuses) == 1
        asked = len(api.asked)
        put(api, "10.96.0.3", key="shop/edge")
        await trio.sleep(20)
        assert len(api.asked) == asked
        told.targets.want(["shop/edge"])
        await told.until(lambda: told.addresses.get("shop/edge") == ("10.96.0.3",))


async def test_no_more_than_so_many_are_followed_because_objects_name_them(
    autojump_clock: MockClock, logs: Logs
) -> None:
    """Configured ones are not counted, and a dropped one makes room for the next."""
    keys = [f"shop/s{number}" for number in range(5)]
    api = api_with("10.96.0.1")
    for number, key in enumerate(keys):
        put(api, f"10.96.1.{number}", key=key)
    async with following(api, RELAY, most=2) as told:
        told.targets.want(keys)
        await told.until(lambda: len(told.addresses) == 3)
        assert set(told.addresses) == {RELAY, *keys[:2]}
        assert told.targets.faults == {
            keys[2]: "it is not followed, nor are 2 others: objects name more than 2 Services"
        }
        told.targets.leave([keys[0], keys[3]])
        await told.until(lambda: keys[2] in told.addresses)
        assert set(told.addresses) == {RELAY, keys[1], keys[2]}
        assert told.targets.faults == {keys[4]: "it is not followed: objects name more than 2 Services"}
        told.targets.leave(keys)
        assert told.targets.faults == {}
        assert set(told.addresses) == {RELAY}
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == [
        "objects name too many Services; names that point to the others are forwarded"
    ]


KNOWN: Final = {RELAY: ("10.96.0.9",), "shop/edge": ("10.96.0.8",)}


async def test_an_address_from_an_earlier_run_counts_until_the_service_was_read(autojump_clock: MockClock) -> None:
    api = api_with("10.96.0.1")
    api.crash()
    async with following(api, RELAY, known=KNOWN) as told:
        await trio.sleep(30)
        assert told.addresses == {RELAY: ("10.96.0.9",)}
        assert not told.targets.synced
        api.recover()
        await told.until_at("10.96.0.1")
    assert [key for key, _ in told.changes] == [RELAY]


async def test_an_address_that_is_still_right_is_no_change(autojump_clock: MockClock) -> None:
    async with following(api_with("10.96.0.9"), RELAY, known=KNOWN) as told:
        await told.until(lambda: told.targets.synced)
        assert told.changes == []


async def test_a_service_gone_since_the_earlier_run_is_asked_for_twice(autojump_clock: MockClock) -> None:
    async with following(api_with(), RELAY, known=KNOWN) as told:
        await told.until(lambda: told.targets.synced)
        assert told.changes == [(RELAY, {})]
        assert told.targets.faults == {RELAY: "there is no such Service"}
        assert trio.current_time() >= 2


async def test_a_list_that_is_empty_for_a_moment_costs_no_address(autojump_clock: MockClock) -> None:
    api = api_with()
    async with following(api, RELAY, known=KNOWN) as told:
        await told.until(lambda: bool(api.asked))
        await trio.sleep(1)
        put(api, "10.96.0.9")
        await told.until(lambda: told.targets.synced)
        assert told.changes == []


async def test_what_was_known_of_a_service_is_not_believed_again_after_it_was_read(autojump_clock: MockClock) -> None:
    api = api_with("10.96.0.1")
    api.faults["/api/v1/namespaces/shop/services"] = failure(500, "Error")
    async with following(api, RELAY, known=KNOWN) as told:
        told.targets.want(["shop/edge"])
        assert told.addresses["shop/edge"] == ("10.96.0.8",)
        told.targets.leave(["shop/edge"])
        told.targets.want(["shop/edge"])
        await trio.sleep(1)
        assert "shop/edge" not in told.addresses
