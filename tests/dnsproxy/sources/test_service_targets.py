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
SLICES: Final = "/apis/discovery.k8s.io/v1/namespaces/edge/endpointslices"
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
    api.provide("discovery.k8s.io/v1", "endpointslices")
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
        assert [status.kind for status in told.targets.statuses] == [
            "Service edge/relay",
            "EndpointSlices of edge/relay",
        ]


async def test_only_the_services_that_are_wanted_are_asked_for(autojump_clock: MockClock) -> None:
    api = api_with("10.96.0.1")
    put(api, "10.96.0.2", key="edge/other")
    async with following(api, RELAY) as told:
        await told.until(lambda: told.targets.synced)
        assert told.addresses == {RELAY: ("10.96.0.1",)}
    assert {(one.path, one.params.get("fieldSelector"), one.params.get("labelSelector")) for one in api.asked} == {
        (PATH, "metadata.name=relay", None),
        (SLICES, None, "kubernetes.io/service-name=relay"),
    }


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
        assert len(told.targets.statuses) == 2
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


WEB: Final = [{"name": "https", "port": 443}]
UNREADY: Final = "no endpoint of the target is ready; its names are forwarded"
AVAILABLE: Final = "target has addresses"


def put_web(api: LiveApi) -> None:
    put_ports(api, "10.96.0.1")


def put_ports(api: LiveApi, address: str) -> None:
    spec = {"clusterIP": address, "clusterIPs": [address], "ports": WEB}
    api.put("", "services", {"metadata": {"name": "relay", "namespace": "edge"}, "spec": spec})


def put_slice(api: LiveApi, *ready: bool, name: str = "relay-1", **more: Any) -> None:
    labels = {"kubernetes.io/service-name": "relay"}
    endpoints = [{"addresses": ["192.0.2.7"], "conditions": {"ready": one}} for one in ready]
    item = {"metadata": {"name": name, "namespace": "edge", "labels": labels}, "addressType": "IPv4", "ports": WEB}
    api.put("discovery.k8s.io", "endpointslices", {**item, "endpoints": endpoints, **more})


def events_of(logs: Logs) -> list[str]:
    wanted = {UNREADY, AVAILABLE, "target has no address; names that point there are forwarded"}
    return [line["event"] for line in logs if line["event"] in wanted]


async def test_it_is_unready_until_an_endpoint_is_ready_and_each_transition_is_logged_once(
    autojump_clock: MockClock, logs: Logs
) -> None:
    api = api_with()
    put_web(api)
    async with following(api, RELAY) as told:
        await told.until(lambda: told.targets.synced)
        assert told.targets.unready == {RELAY}
        assert told.targets.faults == {RELAY: "its port 443 has no ready endpoint"}
        for ready, fault in (
            ((False,), "its port 443 has no ready endpoint; 1 not ready"),
            ((False, False), "its port 443 has no ready endpoint; 2 not ready"),
            ((True, False), None),
            ((True,), None),
            ((False,), "its port 443 has no ready endpoint; 1 not ready"),
        ):
            put_slice(api, *ready)
            await told.until(lambda fault=fault: told.targets.faults.get(RELAY) == fault)  # type: ignore[misc]
            assert told.targets.unready == (set() if fault is None else {RELAY})
            assert told.addresses == {RELAY: ("10.96.0.1",)}
        api.remove("discovery.k8s.io", "endpointslices", "edge/relay-1")
        await told.until(lambda: told.targets.faults[RELAY].endswith("endpoint"))
    assert len(told.changes) == 3
    assert events_of(logs) == [UNREADY, AVAILABLE, UNREADY]


async def test_a_service_that_goes_while_it_is_unready_and_comes_back_ready(
    autojump_clock: MockClock, logs: Logs
) -> None:
    api = api_with()
    put_web(api)
    async with following(api, RELAY) as told:
        await told.until(lambda: told.targets.unready == {RELAY})
        api.remove("", "services", RELAY)
        await told.until(lambda: not told.targets.unready)
        assert told.targets.faults == {RELAY: "there is no such Service"}
        assert told.addresses == {}
        put_slice(api, True)
        put_ports(api, "10.96.0.2")
        await told.until_at("10.96.0.2")
        assert (told.targets.unready, told.targets.faults) == (frozenset(), {})
    # The Service may arrive before the news of its endpoint.
    assert [event for event in events_of(logs) if event != UNREADY][-1] == AVAILABLE


async def test_an_outage_keeps_what_is_ready_and_what_is_not(autojump_clock: MockClock) -> None:
    for ready in (True, False):
        api = api_with()
        put_web(api)
        put_slice(api, ready)
        async with following(api, RELAY) as told:
            await told.until(lambda told=told: told.targets.synced)  # type: ignore[misc]
            before = told.targets.unready
            assert before == (set() if ready else {RELAY})
            api.crash()
            await trio.sleep(10)
            assert told.targets.unready == before
            put_slice(api, not ready)
            api.recover()
            await told.until(lambda told=told, before=before: told.targets.unready != before)  # type: ignore[misc]


async def test_an_address_of_an_earlier_run_becomes_unready_once_both_were_read(autojump_clock: MockClock) -> None:
    api = api_with()
    put_web(api)
    put_slice(api, False)
    api.faults[SLICES] = failure(500, "Error")
    async with following(api, RELAY, known={RELAY: ("10.96.0.1",)}) as told:
        await trio.sleep(2)
        assert (told.addresses, told.changes) == ({RELAY: ("10.96.0.1",)}, [])
        api.faults.clear()
        await told.until(lambda: told.targets.unready == {RELAY})
        assert told.changes == [(RELAY, {RELAY: ("10.96.0.1",)})]


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        pytest.param(failure(403, "Forbidden"), 1, id="RBAC hides them"),
        pytest.param(failure(404, "NotFound"), 8, id="an API server without them"),
        pytest.param(failure(500, "Error"), 8, id="errors"),
    ],
)
async def test_without_its_slices_the_addresses_count_and_that_is_said(
    autojump_clock: MockClock, logs: Logs, answer: Answer, seconds: float
) -> None:
    """As before an upgrade that brings the right to read them."""
    api = api_with()
    put_web(api)
    api.faults[SLICES] = answer
    async with following(api, RELAY) as told:
        await told.until(lambda: told.targets.synced)
        assert trio.current_time() <= seconds
        assert told.targets.consistent
        assert (told.addresses, told.targets.unready) == ({RELAY: ("10.96.0.1",)}, frozenset())
        assert told.targets.faults[RELAY].startswith("its EndpointSlices cannot be read")
        await trio.sleep(20)
        assert len([line for line in logs if "EndpointSlices cannot" in line["event"]]) == 1
        api.faults.clear()
        await told.until(lambda: told.targets.unready == {RELAY})
        put_slice(api, True)
        await told.until(lambda: not told.targets.unready)
        assert told.targets.faults == {}


async def test_one_that_no_object_names_any_more_is_not_unready_either(autojump_clock: MockClock) -> None:
    api = api_with()
    put_web(api)
    async with following(api) as told:
        told.targets.want([RELAY])
        await told.until(lambda: told.targets.unready == {RELAY})
        told.targets.leave([RELAY])
        assert (told.targets.unready, told.targets.faults, told.addresses) == (frozenset(), {}, {})
        assert told.changes[-1] == (RELAY, {})


async def test_slices_that_never_come_delay_the_first_sync_briefly(autojump_clock: MockClock) -> None:
    api = api_with()
    put_web(api)
    api.faults[SLICES] = Answer([SILENCE])
    async with following(api, RELAY) as told:
        await told.until(lambda: told.targets.synced)
        assert trio.current_time() <= 8
        assert told.addresses == {RELAY: ("10.96.0.1",)}
