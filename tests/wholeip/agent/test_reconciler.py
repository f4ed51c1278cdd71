"""The reconciler between an API server and a kernel in memory, with following.py; no test waits in real time."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from sidecar.values.errors import StartError
from tests.kit.faulty_api import client_in_memory, failure
from tests.kit.live_api import LiveApi
from tests.kit.wholeip_kernel import FakeKernel
from tests.kit.wholeip_objects import READY, WHOLE, ip, node_manifest, port, service_manifest, slice_manifest
from wholeip.agent.following import ClusterFollower
from wholeip.agent.pace import ReconcilePace
from wholeip.agent.reconciler import Reconciler
from wholeip.agent.status import AgentStatus
from wholeip.agent.update import Update
from wholeip.mappings.cluster_state import ClusterState
from wholeip.mappings.mapping import Mapping
from wholeip.mappings.plan import Plan
from wholeip.mappings.reports import Reason
from wholeip.ruleset.nft_errors import Busy, NoAnswer, NotPermitted, Refused
from wholeip.ruleset.ruleset import Ruleset, make_ruleset
from wholeip.ruleset.steps import at_once

LB, POD, POD2 = "192.0.2.1", "10.0.0.1", "10.0.0.2"
SERVICES, SLICES, NODES = "/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices", "/api/v1/nodes"
SLICE_GROUP = "discovery.k8s.io"


def make_api() -> LiveApi:
    api = LiveApi()
    api.provide("v1", "services", "nodes")
    api.provide("discovery.k8s.io/v1", "endpointslices")
    api.provide("networking.k8s.io/v1", "servicecidrs")
    api.put("", "nodes", node_manifest("n1", "198.51.100.1", pods=["10.0.0.0/24"]))
    return api


def put_service(api: LiveApi, name: str = "vm", *ips: str, **options: Any) -> None:
    api.put("", "services", service_manifest(name, *(ips or (LB,)), **{"annotations": WHOLE} | options))


def put_slice(api: LiveApi, owner: str = "vm", *pods: str) -> None:
    api.put(SLICE_GROUP, "endpointslices", slice_manifest(owner, *((one, READY) for one in pods or (POD,)), node="n1"))


def put_many(api: LiveApi, count: int) -> None:
    for number in range(count):
        put_service(api, f"vm{number}", f"192.0.2.{number + 1}")
        put_slice(api, f"vm{number}", f"10.0.0.{number + 1}")


@dataclass
class Node:
    """One node: its kernel, and the agent that runs there."""

    kernel: FakeKernel = field(default_factory=FakeKernel)
    state: ClusterState = field(default_factory=lambda: ClusterState(node="n1"))
    status: AgentStatus = field(default_factory=lambda: AgentStatus(node="n1"))
    advice: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def running(self, api: LiveApi, **options: Any) -> AsyncIterator[None]:
        options = {"advise": lambda _: self.advice} | options
        agent = Reconciler(self.kernel, self.state, self.status, **options)
        known = await agent.begin()
        follower = ClusterFollower(self.state, "cozy-proxy", on_change=agent.wake, expected=known)
        self.status.watches = follower.statuses
        async with client_in_memory(api) as client, trio.open_nursery() as nursery:
            nursery.start_soon(agent.run)
            nursery.start_soon(follower.run, client)
            yield
            nursery.cancel_scope.cancel()

    @property
    def whole(self) -> dict[str, str] | None:
        """The whole addresses in the kernel, and the pods that they belong to."""
        return None if self.kernel.ruleset is None else dict(self.kernel.ruleset.elements["whole_v4"])

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110  # what it looks at is plain state of the code under test
            await trio.sleep(0.001)

    async def until_whole(self, **expected: str) -> None:
        await self.until(lambda: self.whole == {key.replace("_", "."): pod for key, pod in expected.items()})

    async def until_ready(self) -> None:
        await self.until(lambda: not self.status.why_not_ready())


def table(**pods: str) -> Ruleset:
    """A table as an earlier run has left it."""
    return make_ruleset(
        [
            Mapping("default/vm", ip(address.lstrip("_").replace("_", ".")), ip(pod), None, icmp=True, egress=True)
            for address, pod in pods.items()
        ]
    )


async def test_nothing_is_written_before_all_was_read(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    put_service(api)
    put_slice(api)
    for path in (SERVICES, SLICES, NODES):
        api.faults = {path: failure(503, "ServiceUnavailable")}
        with capture_logs():
            async with node.running(api):
                await trio.sleep(5)
                assert node.kernel.applied == []
                assert "503" in node.status.why_not_ready()
                api.faults = {}
                await node.until_whole(**{"192_0_2_1": POD})
                await node.until_ready()
        node = Node()


async def test_the_first_of_nothing_is_an_empty_table(autojump_clock: MockClock) -> None:
    node = Node()
    async with node.running(make_api()):
        await node.until_ready()
    assert node.whole == {}


async def test_changes_are_followed(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    async with node.running(api):
        await node.until_ready()
        put_service(api)
        put_slice(api)
        await node.until_whole(**{"192_0_2_1": POD})
        put_slice(api, "vm", POD2)
        await node.until_whole(**{"192_0_2_1": POD2})
        put_service(api, "vm", "192.0.2.2")
        await node.until_whole(**{"192_0_2_2": POD2})
        put_service(api, "vm", ports=(port(80),), annotations={})
        await node.until_whole()
        assert node.kernel.ruleset is not None
        assert node.kernel.ruleset.elements["ports_v4"] == {f"{LB} . 6 . 80": POD2}
        api.remove(SLICE_GROUP, "endpointslices", "default/vm-ipv4")
        await node.until(lambda: node.kernel.ruleset is not None and not node.kernel.ruleset.elements["ports_v4"])
        api.remove("", "services", "default/vm")
        put_slice(api)
        await trio.sleep(1)
        assert node.kernel.ruleset.elements["addresses_v4"] == {}


async def test_a_burst_of_changes_is_few_transactions(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    async with node.running(api):
        await node.until_ready()
        put_many(api, 100)
        await node.until(lambda: len(node.whole or ()) == 100)
    assert len(node.kernel.applied) < 10


async def test_what_does_not_matter_writes_nothing(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    put_service(api)
    put_slice(api)
    async with node.running(api):
        await node.until_whole(**{"192_0_2_1": POD})
        before = len(node.kernel.applied)
        put_service(api, "vm", spec={"ports": [], "externalTrafficPolicy": "Local"})
        put_service(api, "other", annotations={"switchback.dev/whole-ip": "false"}, ports=())
        await node.until(lambda: node.status.services == 2)
        assert len(node.kernel.applied) == before


async def test_what_an_earlier_run_left_is_kept_where_it_is_right(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    put_service(api)
    put_slice(api, "vm", POD, POD2)
    async with node.running(api):
        await node.until_ready()
    left = node.kernel.ruleset
    again = Node(FakeKernel(left))
    async with again.running(api):
        await again.until_ready()
    assert again.kernel.applied == []
    assert again.kernel.ruleset is left


async def test_a_pod_that_an_earlier_run_chose_keeps_the_address(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node(FakeKernel(table(_192_0_2_1=POD2)))
    put_service(api)
    put_slice(api, "vm", POD, POD2)
    async with node.running(api):
        await node.until_ready()
        assert node.whole == {LB: POD2}
        assert [one.reason for one in node.status.plan.reports] == [Reason.SEVERAL_ENDPOINTS]


async def test_a_delete_that_was_missed_is_made_up_for(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node(FakeKernel(table(_192_0_2_1=POD, _192_0_2_9="10.0.0.9")))
    put_service(api)
    put_slice(api)
    async with node.running(api):
        await node.until_whole(**{"192_0_2_1": POD})
    assert node.status.repaired == 0, "no other program has changed it"


async def test_an_empty_list_is_believed_the_second_time(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node(FakeKernel(table(_192_0_2_1=POD)))
    with capture_logs() as logs:
        async with node.running(api):
            await trio.sleep(1)
            assert node.whole == {LB: POD}
            await node.until_whole()
    assert any(entry["event"].startswith("list lost nearly everything") for entry in logs)


async def test_all_stays_while_the_api_server_is_away(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    put_service(api)
    put_slice(api)
    with capture_logs():
        async with node.running(api):
            await node.until_whole(**{"192_0_2_1": POD})
            api.crash()
            await trio.sleep(20)
            assert node.whole == {LB: POD}
            assert node.status.why_not_ready() == ""
            assert "retrying" in node.status.describe()
            api.remove("", "services", "default/vm")
            api.recover()
            await node.until_whole()


@pytest.mark.parametrize("changed", [None, table(), table(_192_0_2_1="10.0.0.9")], ids=["flushed", "emptied", "moved"])
async def test_what_somebody_else_does_is_undone_at_once(autojump_clock: MockClock, changed: Ruleset | None) -> None:
    api, node = make_api(), Node()
    put_service(api)
    put_slice(api)
    async with node.running(api):
        await node.until_whole(**{"192_0_2_1": POD})
        right = node.kernel.ruleset
        with capture_logs() as logs:
            node.kernel.change(changed)
            began = trio.current_time()
            await node.until(lambda: node.status.repaired == 1)
        assert trio.current_time() - began < 1
        assert node.kernel.ruleset == right
        assert [one["event"] for one in logs if one["log_level"] == "warning"] == [
            "another program had changed the table; it is repaired"
        ]


async def test_a_kernel_that_tells_nothing_is_looked_at_now_and_then(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node(FakeKernel(deaf=NotPermitted("no netlink")))
    put_service(api)
    put_slice(api)
    with capture_logs() as logs:
        async with node.running(api):
            await node.until_whole(**{"192_0_2_1": POD})
            node.kernel.ruleset = None
            began = trio.current_time()
            await node.until_whole(**{"192_0_2_1": POD})
            assert trio.current_time() - began <= ReconcilePace().resync_blind
            await trio.sleep(30)
    assert sum("no notifications from the kernel" in entry["event"] for entry in logs) == 1


async def test_a_silent_change_is_found_by_the_resync(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    async with node.running(api, pace=ReconcilePace(resync=20)):
        await node.until_ready()
        node.kernel.ruleset = None
        await node.until(lambda: node.status.repaired == 1)
    assert node.whole == {}


async def test_somebody_who_does_it_again_and_again_is_answered_at_a_steady_pace(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    with capture_logs():
        async with node.running(api):
            await node.until_ready()
            for _ in range(1000):
                node.kernel.change(None)
                await trio.sleep(0.01)
    assert 5 <= node.status.repaired <= 12


@pytest.mark.parametrize("error", [Refused("File exists", "add x"), Busy("Device or resource busy")])
async def test_what_is_refused_is_tried_again_and_told_once(autojump_clock: MockClock, error: Any) -> None:
    api, node = make_api(), Node()
    async with node.running(api):
        await node.until_ready()
        put_slice(api)
        with capture_logs() as logs:
            node.kernel.failures = [error] * 5
            put_service(api)
            await node.until(lambda: node.status.attempts["failed"] == 1)
            assert not node.status.in_step
            assert "the kernel refuses the rules" in node.status.why_not_ready()
            await node.until_whole(**{"192_0_2_1": POD})
            await node.until_ready()
    events = [entry["event"] for entry in logs]
    assert events.count("the kernel refuses the rules; its table stays") == 1
    assert events.count("the kernel accepts the rules again") == 1
    assert node.status.repaired == 0, "a failure of ours is not a foreign change"


async def test_tries_become_rarer(autojump_clock: MockClock) -> None:
    node = Node()
    node.kernel.failures = [Busy("busy")] * 1000
    with capture_logs():
        async with node.running(make_api()):
            await trio.sleep(50)
    assert 5 < node.status.attempts["failed"] < 12


async def test_a_change_of_the_cluster_is_tried_before_its_time(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    node.kernel.failures = [Busy("busy")] * 20
    with capture_logs():
        async with node.running(api):
            await trio.sleep(40)
            before = node.status.attempts["failed"]
            put_service(api)
            await trio.sleep(2)
            assert node.status.attempts["failed"] == before + 1


@pytest.mark.parametrize(
    ("error", "starts"), [(NotPermitted("no CAP_NET_ADMIN"), False), (Busy("busy"), True)], ids=["for good", "for now"]
)
async def test_a_kernel_that_cannot_be_asked_keeps_the_agent_from_starting(
    autojump_clock: MockClock, error: Any, starts: bool
) -> None:
    node = Node(FakeKernel(failures=[error]))
    with capture_logs():
        if starts:
            async with node.running(make_api()):
                await node.until_ready()
        else:
            with pytest.raises(StartError, match="nftables: no CAP_NET_ADMIN") as caught:
                await Reconciler(node.kernel, node.state, node.status).begin()
            assert caught.value.status == 3


async def test_each_report_is_told_once_while_it_holds(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    with capture_logs() as logs:
        async with node.running(api):
            await node.until_ready()
            put_service(api)
            await node.until(lambda: node.status.services == 1)
            put_service(api, "other", "192.0.2.2")
            await node.until(lambda: node.status.services == 2)
            put_slice(api)
            await node.until_whole(**{"192_0_2_1": POD})
            api.remove(SLICE_GROUP, "endpointslices", "default/vm-ipv4")
            await node.until_whole()
    logged = [entry["service"] for entry in logs if entry["event"] == "Service"]
    assert logged == ["default/vm", "default/other", "default/vm"]


async def test_who_waits_for_reports_hears_of_those_that_may_differ(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    heard: list[tuple[object, list[str]]] = []

    def hear(services: Iterable[str] | None, plan: Plan) -> None:
        heard.append((services, [str(one.reason) for one in plan.reports]))

    put_service(api)
    put_slice(api)
    async with node.running(api, on_reports=hear):
        await trio.sleep(1)
        put_service(api, "later", "192.0.2.2")
        await trio.sleep(1)
        assert heard == [(None, []), ({"default/later"}, ["no-endpoint"])]
        node.kernel.failures = [Busy("no")]
        put_slice(api, "later", POD2)
        await trio.sleep(0.1)
        assert len(heard) == 2, "the kernel does not have the plan"
        await trio.sleep(10)
        assert heard[-1] == (None, [])


async def test_what_is_to_be_set_on_the_node_is_told(autojump_clock: MockClock) -> None:
    node = Node(advice=["set net.ipv4.ip_forward=1"])
    with capture_logs() as logs:
        async with node.running(make_api()):
            await node.until_ready()
            assert node.status.describe().endswith("set net.ipv4.ip_forward=1")
    assert sum(entry["event"] == "an operator must change this" for entry in logs) == 1


async def test_the_end_leaves_the_rules(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    put_service(api)
    put_slice(api)
    async with node.running(api):
        await node.until_whole(**{"192_0_2_1": POD})
    assert node.whole == {LB: POD}


async def test_who_waits_for_transactions_hears_of_each(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    heard: list[Update] = []

    put_service(api)
    async with node.running(api, on_applied=heard.append):
        await node.until_ready()
        put_slice(api)
        await node.until_whole(**{"192_0_2_1": POD})
        await node.until(lambda: len(heard) == len(node.kernel.applied))
    assert heard[0].before is None
    assert heard[-1].desired.ruleset() == node.kernel.ruleset
    assert [one.desired for one in heard[:-1]] == [one.before for one in heard[1:]]


@asynccontextmanager
async def hearing(api: LiveApi, node: Node) -> AsyncIterator[list[Update]]:
    """The updates that the agent applies after the kernel has LB for POD, until the agent ends."""
    heard: list[Update] = []
    put_service(api)
    put_slice(api)
    with capture_logs():
        async with node.running(api, on_applied=heard.append):
            await node.until_whole(**{"192_0_2_1": POD})
            await node.until_ready()
            heard.clear()
            yield heard


async def test_who_waits_for_transactions_hears_of_one_that_was_applied_although_it_failed(
    autojump_clock: MockClock,
) -> None:
    """Else flows of an address that is gone would continue to its pod: nothing shows later that it was ours."""
    api, node = make_api(), Node()
    async with hearing(api, node) as heard:
        node.kernel.late_failures = [NoAnswer("nft did not exit within 30 s"), Busy("busy")]
        api.remove("", "services", "default/vm")
        await node.until(lambda: node.status.attempts["failed"] == 1)
        put_service(api, "vm", "192.0.2.2")
        await node.until_whole(**{"192_0_2_2": POD})
        await node.until_ready()
    (update,) = heard
    known, after = update.rulesets
    assert known is not None
    assert known.elements["whole_v4"] == {LB: POD}
    assert after == node.kernel.ruleset
    assert update.gap


async def test_a_change_reads_and_writes_what_it_is_about_alone(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    put_many(api, 20)
    async with node.running(api):
        await node.until(lambda: len(node.whole or {}) == 20)
        await node.until_ready()
        reads, applied = node.kernel.reads, len(node.kernel.applied)
        put_slice(api, "vm7", "10.0.0.77")
        await node.until(lambda: (node.whole or {})["192.0.2.8"] == "10.0.0.77")
        (transaction,) = node.kernel.applied[applied:]
        assert node.kernel.reads == reads
    assert transaction.whole is None
    assert sorted(transaction.adds) == ["egress_v4", "here_v4", "itself_v4", "whole_v4"]
    assert {len(elements) for elements in (*transaction.adds.values(), *transaction.deletes.values())} == {1}


async def test_the_node_is_looked_at_for_the_families_of_its_mappings(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    asked: list[list[int]] = []

    def advise(families: Iterable[int]) -> list[str]:
        asked.append([*families])
        return []

    put_service(api, "vm", LB, "2001:db8::1")
    async with node.running(api, advise=advise):
        await node.until_ready()
        assert asked[-1] == []
        put_slice(api)
        await node.until(lambda: asked[-1] == [4])
        api.put(SLICE_GROUP, "endpointslices", slice_manifest("vm", ("2001:db8:1::1", READY), family="IPv6"))
        await node.until(lambda: asked[-1] == [4, 6])
        api.remove(SLICE_GROUP, "endpointslices", "default/vm-ipv4")
        await node.until(lambda: asked[-1] == [6])


def without(ruleset: Ruleset, name: str, *keys: str) -> Ruleset:
    elements = {key: value for key, value in ruleset.elements[name].items() if key not in keys}
    return replace(ruleset, elements={**ruleset.elements, name: elements})


def having(ruleset: Ruleset, name: str, **elements: str) -> Ruleset:
    named = {key.lstrip("_").replace("_", "."): value for key, value in elements.items()}
    return replace(ruleset, elements={**ruleset.elements, name: {**ruleset.elements[name], **named}})


FOREIGN: dict[str, Callable[[Ruleset], Ruleset | None]] = {
    "element added": lambda ours: having(ours, "whole_v4", _198_51_100_9="10.0.0.9"),
    "element deleted": lambda ours: without(ours, "whole_v4", "192.0.2.3"),
    "value changed": lambda ours: having(ours, "whole_v4", _192_0_2_3="10.0.0.99"),
    "set flushed": lambda ours: without(ours, "here_v4", *ours.elements["here_v4"]),
    "rule added": lambda ours: replace(ours, static=ours.static | {"rule"}),
    "asleep": lambda ours: replace(ours, static=ours.static | {"unknown"}),
    "table deleted": lambda _: None,
    "all flushed": lambda _: make_ruleset([]),
}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
async def test_a_foreign_change_is_repaired_while_changes_go_on(
    autojump_clock: MockClock, foreign: Callable[[Ruleset], Ruleset | None]
) -> None:
    api, node = make_api(), Node()
    put_many(api, 8)
    with capture_logs():
        async with node.running(api):
            await node.until(lambda: len(node.whole or {}) == 8)
            await node.until_ready()
            assert node.kernel.ruleset is not None
            node.kernel.change(foreign(node.kernel.ruleset))
            for turn in range(20):
                put_slice(api, "vm7", f"10.0.0.{200 + turn}")
                await trio.sleep(0.02)
            await node.until(lambda: node.status.repaired == 1)
            await node.until(lambda: (node.whole or {}).get("192.0.2.8") == "10.0.0.219")
            await trio.sleep(5)
    assert node.kernel.ruleset == make_ruleset(node.status.plan.mappings, cluster=node.state.networks)
    assert node.status.repaired == 1
    assert node.status.attempts["failed"] == 0


async def test_a_change_in_the_middle_of_a_comparison_is_applied_and_not_undone(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    put_many(api, 3)
    async with node.running(api, pace=ReconcilePace(resync=10)):
        await node.until(lambda: len(node.whole or {}) == 3)
        await node.until_ready()

        async def change() -> None:
            node.kernel.meanwhile = None
            put_slice(api, "vm1", "10.0.0.77")
            with trio.fail_after(5):
                await node.until(lambda: (node.whole or {}).get("192.0.2.2") == "10.0.0.77")
            applied.append(len(node.kernel.applied))

        applied: list[int] = []
        node.kernel.meanwhile = change
        await trio.sleep(35)
    assert applied == [len(node.kernel.applied)]
    assert (node.whole or {})["192.0.2.2"] == "10.0.0.77"
    assert node.status.repaired == 0


async def test_what_was_written_meanwhile_is_left_alone_and_the_rest_repaired(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    put_many(api, 3)
    with capture_logs():
        async with node.running(api):
            await node.until(lambda: len(node.whole or {}) == 3)
            await node.until_ready()

            async def change() -> None:
                node.kernel.meanwhile = None
                put_slice(api, "vm1", "10.0.0.77")
                await node.until(lambda: (node.whole or {}).get("192.0.2.2") == "10.0.0.77")

            node.kernel.meanwhile = change
            assert node.kernel.ruleset is not None
            node.kernel.change(having(node.kernel.ruleset, "whole_v4", _192_0_2_1="10.9.9.9", _192_0_2_2="10.9.9.9"))
            await node.until(lambda: node.status.repaired == 1)
    assert node.whole == {"192.0.2.1": "10.0.0.1", "192.0.2.2": "10.0.0.77", "192.0.2.3": "10.0.0.3"}
    assert node.status.attempts["failed"] == 0
    assert node.kernel.applied[-1].adds == {"whole_v4": {"192.0.2.1": "10.0.0.1"}}


async def test_a_large_repair_is_small_transactions_between_which_changes_are_applied(
    autojump_clock: MockClock,
) -> None:
    api, node = make_api(), Node()
    heard: list[Update] = []
    put_many(api, 240)
    with capture_logs():
        async with node.running(api, on_applied=heard.append):
            await node.until(lambda: len(node.whole or {}) == 240)
            await node.until_ready()
            before, told = len(node.kernel.applied), len(heard)
            damaged = make_ruleset([])
            put_slice(api, "new", "10.0.0.250")
            node.kernel.seconds = 0.01
            node.kernel.change(damaged)
            await node.until(lambda: len(node.kernel.applied) > before)
            put_service(api, "new", "198.18.0.1")
            await node.until(lambda: node.status.repaired == 1)
    transactions = node.kernel.applied[before:]
    sizes = [sum(map(len, (*one.deletes.values(), *one.adds.values()))) for one in transactions]
    assert all(one.whole is None for one in transactions)
    assert max(sizes) <= 250
    assert len(sizes) > 4
    (added,) = [place for place, one in enumerate(transactions) if "198.18.0.1" in one.adds.get("whole_v4", {})]
    assert added < len(transactions) - 1, "the change did not wait for the whole repair"
    assert node.kernel.ruleset == make_ruleset(node.status.plan.mappings, cluster=node.state.networks)
    (repair,) = [one for one in heard[told:] if one.services is None]
    assert repair.before == damaged
    assert repair.gap


async def test_a_comparison_reads_nothing_if_the_generation_is_that_of_two_clean_comparisons(
    autojump_clock: MockClock,
) -> None:
    api, node = make_api(), Node()
    put_service(api)
    put_slice(api)
    async with node.running(api, pace=ReconcilePace(resync=5)):
        await node.until_whole(**{"192_0_2_1": POD})
        await trio.sleep(17)
        reads = node.kernel.reads
        await trio.sleep(7)
        assert node.kernel.reads == reads
        put_slice(api, "vm", POD2)
        await trio.sleep(17)
        assert node.kernel.reads == reads + 2, "our own change makes the next ones read"
        node.kernel.ruleset = None
        await node.until(lambda: node.status.repaired == 1)


async def test_a_change_during_a_comparison_does_not_count_as_clean(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    put_service(api)
    put_slice(api)
    with capture_logs():
        async with node.running(api, pace=ReconcilePace(resync=10)):
            await node.until_whole(**{"192_0_2_1": POD})

            async def tamper() -> None:
                await trio.lowlevel.checkpoint()
                node.kernel.meanwhile = None
                node.kernel.ruleset = table()

            node.kernel.meanwhile = tamper
            await node.until(lambda: node.kernel.meanwhile is None)
            await node.until(lambda: node.status.repaired == 1)
    assert node.whole == {"192.0.2.1": POD}


async def test_a_kernel_without_generations_is_read_each_time(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node(FakeKernel(tells_generation=False))
    async with node.running(api, pace=ReconcilePace(resync=10)):
        await node.until_ready()
        reads = node.kernel.reads
        await trio.sleep(55)
        assert node.kernel.reads == reads + 5


async def test_what_a_dump_lacks_only_once_is_not_repaired(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    put_many(api, 3)
    async with node.running(api):
        await node.until(lambda: len(node.whole or {}) == 3)
        await node.until_ready()
        whole, applied = node.kernel.ruleset, len(node.kernel.applied)
        assert whole is not None

        async def resized() -> None:
            await trio.lowlevel.checkpoint()
            node.kernel.meanwhile, node.kernel.ruleset = None, whole

        node.kernel.meanwhile = resized
        reads = node.kernel.reads
        node.kernel.change(without(whole, "whole_v4", "192.0.2.2"))
        await trio.sleep(5)
        assert node.kernel.reads == reads + 2
    assert len(node.kernel.applied) == applied
    assert node.status.repaired == 0


async def test_what_two_dumps_lack_and_a_look_up_finds_is_not_repaired(autojump_clock: MockClock) -> None:
    """A resize may last longer than two dumps."""
    api, node = make_api(), Node()
    put_many(api, 3)
    async with node.running(api, pace=ReconcilePace(resync=10)):
        await node.until(lambda: len(node.whole or {}) == 3)
        await node.until_ready()
        whole, applied = node.kernel.ruleset, len(node.kernel.applied)
        assert whole is not None
        lacking = without(whole, "whole_v4", "192.0.2.2")
        node.kernel.dumped = [lacking, lacking]
        reads = node.kernel.reads
        await trio.sleep(11)
        assert node.kernel.reads >= reads + 2
    assert node.kernel.dumped == []
    assert len(node.kernel.applied) == applied
    assert node.status.repaired == 0


async def test_a_foreign_element_that_a_dump_lacks_once_is_repaired(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    put_many(api, 3)
    with capture_logs():
        async with node.running(api, pace=ReconcilePace(resync=10)):
            await node.until(lambda: len(node.whole or {}) == 3)
            await node.until_ready()
            assert node.kernel.ruleset is not None
            node.kernel.dumped = [node.kernel.ruleset]
            node.kernel.change(having(node.kernel.ruleset, "whole_v4", _198_51_100_9="10.0.0.9"))
            with trio.fail_after(25):
                await node.until(lambda: node.status.repaired == 1)
    assert "198.51.100.9" not in (node.whole or {})


async def test_a_change_that_is_undone_before_the_comparison_looks_is_repaired(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    put_many(api, 3)
    with capture_logs():
        async with node.running(api, pace=ReconcilePace(resync=10)):
            await node.until(lambda: len(node.whole or {}) == 3)
            await node.until_ready()
            before = node.kernel.ruleset
            read_generation = node.kernel.read_generation

            async def late() -> int | None:
                node.kernel.read_generation = read_generation  # type: ignore[method-assign]
                put_slice(api, "vm1", "10.0.0.77")
                await node.until(lambda: (node.whole or {}).get("192.0.2.2") == "10.0.0.77")
                node.kernel.change(before)
                return await read_generation()

            node.kernel.read_generation = late  # type: ignore[method-assign]
            with trio.fail_after(45):
                await node.until(lambda: node.status.repaired == 1)
    assert (node.whole or {})["192.0.2.2"] == "10.0.0.77"


@pytest.mark.parametrize("failing", ["read", "repair"])
async def test_a_comparison_that_fails_is_made_up_for(autojump_clock: MockClock, failing: str) -> None:
    api, node = make_api(), Node()
    put_service(api)
    put_slice(api)
    with capture_logs() as logs:
        async with node.running(api):
            await node.until_whole(**{"192_0_2_1": POD})
            await node.until_ready()

            looks = 0

            async def fail() -> None:
                nonlocal looks
                await trio.lowlevel.checkpoint()
                looks += 1
                if looks == 2:  # the second look confirms what the first one found
                    node.kernel.meanwhile = None
                    node.kernel.failures = [Busy("busy")] * 3

            if failing == "read":
                node.kernel.failures = [Busy("busy")] * 3
            else:
                node.kernel.meanwhile = fail
            node.kernel.change(table())
            await node.until(lambda: node.status.attempts["failed"] == 3)
            assert not node.status.in_step
            await node.until_whole(**{"192_0_2_1": POD})
            await node.until_ready()
    events = [entry["event"] for entry in logs]
    assert events.count("the kernel refuses the rules; its table stays") == 1


async def test_a_table_that_takes_too_long_to_read_is_replaced(autojump_clock: MockClock) -> None:
    api, node = make_api(), Node()
    put_service(api)
    put_slice(api)
    with capture_logs():
        async with node.running(api):
            await node.until_whole(**{"192_0_2_1": POD})
            await node.until_ready()
            node.kernel.failures = [NoAnswer("nft did not exit within 30 s")] * 2
            node.kernel.change(table())
            await node.until_whole(**{"192_0_2_1": POD})
            await node.until_ready()
    assert node.kernel.failures == []
    assert node.kernel.applied[-1].whole is not None
    assert node.status.attempts["failed"] == 1


async def test_a_change_that_meets_a_foreign_one_before_the_comparison_does_is_no_failure(
    autojump_clock: MockClock,
) -> None:
    api, node = make_api(), Node()
    put_service(api)
    put_slice(api)
    with capture_logs():
        async with node.running(api):
            await node.until_whole(**{"192_0_2_1": POD})
            await node.until_ready()

            async def change() -> None:
                node.kernel.meanwhile = None
                put_slice(api, "vm", POD2)
                await node.until_whole(**{"192_0_2_1": POD2})

            node.kernel.meanwhile = change
            node.kernel.change(None)
            await node.until(lambda: node.kernel.meanwhile is None)
            await trio.sleep(5)
    assert node.whole == {"192.0.2.1": POD2}
    assert node.status.attempts["failed"] == 0
    assert node.status.repaired == 1


@pytest.mark.parametrize("notices", [True, False], ids=["the kernel tells", "nobody tells"])
@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(lambda _: None, id="nft flush ruleset"),
        pytest.param(lambda _: table(**{"192_0_2_2": POD2}), id="another mapping in its place"),
    ],
)
async def test_a_service_that_goes_with_a_foreign_change_is_told_with_all_that_the_kernel_had(
    autojump_clock: MockClock, foreign: Callable[[Ruleset], Ruleset | None], notices: bool
) -> None:
    """Else its flows stay translated for as long as they talk: nothing shows later that they were ours."""
    api, node = make_api(), Node()
    async with hearing(api, node) as heard:
        assert node.kernel.ruleset is not None
        left = foreign(node.kernel.ruleset)
        if notices:
            node.kernel.change(left)
        else:
            node.kernel.ruleset = left
        api.remove("", "services", "default/vm")
        await node.until(lambda: not node.status.plan.mappings and node.status.in_step)
        await trio.sleep(20)
    assert node.whole == {}
    # What goes while flows are read is judged at once, as here: all that the kernel had, the other program's too.
    update = functools.reduce(Update.then, heard)
    first, after = update.rulesets
    earlier = [one for one in (first, *at_once(update.between_steps())) if one is not None]
    had = [one.elements["whole_v4"] for one in earlier]
    assert {LB: POD} in had
    assert left is None or left.elements["whole_v4"] in had
    assert after.elements["whole_v4"] == {}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
async def test_what_is_found_while_a_change_is_written_is_repaired_too(
    autojump_clock: MockClock, foreign: Callable[[Ruleset], Ruleset | None]
) -> None:
    api, node = make_api(), Node()
    put_many(api, 8)
    with capture_logs():
        async with node.running(api):
            await node.until(lambda: len(node.whole or {}) == 8)
            await node.until_ready()
            node.kernel.seconds = 1

            async def change() -> None:
                node.kernel.meanwhile = None
                put_slice(api, "vm7", "10.0.0.200")
                await trio.sleep(0.5)

            node.kernel.meanwhile = change
            assert node.kernel.ruleset is not None
            node.kernel.change(foreign(node.kernel.ruleset))
            await trio.sleep(10)
    assert node.status.repaired == 1
    assert node.status.attempts["failed"] == 0
    assert (node.whole or {})["192.0.2.8"] == "10.0.0.200"
    assert node.kernel.ruleset == make_ruleset(node.status.plan.mappings, cluster=node.state.networks)
