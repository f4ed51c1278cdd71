"""Random changes of a cluster, failures of API server and kernel, and restarts: the kernel ends with the plan."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from trio.testing import MockClock

from tests.kit.wholeip_kernel import FakeKernel
from tests.kit.wholeip_objects import (
    LEAVING,
    NEW,
    NOT_READY,
    OLD,
    READY,
    WHOLE,
    endpoint_slice,
    node,
    node_manifest,
    port,
    service,
    service_manifest,
    slice_manifest,
)
from tests.wholeip.agent.test_reconciler import SLICE_GROUP, Node, make_api
from wholeip.mappings.cluster_state import ClusterState
from wholeip.ruleset.nft_errors import Busy, NftFailed, NoAnswer, Refused
from wholeip.ruleset.ruleset import Ruleset, make_ruleset

ADDRESSES = ["192.0.2.1", "192.0.2.2", "2001:db8::1", "bad"]
PODS = ["10.0.0.1", "10.0.0.2", "192.0.2.1", "192.0.2.9"]
CONDITIONS = [READY, NOT_READY, LEAVING]


@dataclass
class World:
    """A cluster, one node of it, and what the cluster holds, for comparison."""

    api: Any = field(default_factory=make_api)
    kernel: FakeKernel = field(default_factory=FakeKernel)
    held: dict[tuple[str, str], Any] = field(default_factory=dict)
    """By kind and key, as programs read it."""
    node: Node = field(default_factory=Node)
    running: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        self.node = Node(self.kernel)
        await self.running.enter_async_context(self.node.running(self.api))

    async def put_service(self, name: str, ips: list[str], ports: list[int], whole: bool, created: str) -> None:
        options: dict[str, Any] = {
            "ports": [port(one) for one in ports],
            "annotations": WHOLE if whole else {},
            "created": created,
        }
        self.api.put("", "services", service_manifest(name, *ips, **options))
        self.held["services", f"default/{name}"] = service(name, *ips, **options)

    async def put_slice(self, name: str, pod: str, condition: int) -> None:
        # One pod each: which of several is chosen is a matter of history.
        self.api.put(SLICE_GROUP, "endpointslices", slice_manifest(name, (pod, CONDITIONS[condition]), name=name))
        self.held["endpointslices", f"default/{name}"] = endpoint_slice(name, (pod, CONDITIONS[condition]), name=name)

    async def put_node(self, address: str) -> None:
        self.api.put("", "nodes", node_manifest("n2", address))
        self.held["nodes", "n2"] = node("n2", address)

    async def remove(self, kind: str, key: str) -> None:
        if self.held.pop((kind, key), None) is not None:
            self.api.remove(SLICE_GROUP if kind == "endpointslices" else "", kind, key)

    async def lose_api(self) -> None:
        self.api.crash()

    async def find_api(self) -> None:
        self.api.recover()

    async def flush(self) -> None:
        self.kernel.change(None)

    async def flush_silently(self) -> None:
        self.kernel.ruleset = None

    async def tamper(self, address: str, pod: str) -> None:
        present = self.kernel.ruleset
        if present is not None:
            changed = {**present.elements, "whole_v4": {address: pod}}
            self.kernel.change(Ruleset(present.table, changed, present.static))

    async def fail(self, errors: list[NftFailed]) -> None:
        self.kernel.failures = [*errors]

    async def restart(self) -> None:
        self.kernel.failures = []
        await self.running.aclose()
        await self.start()

    async def wait(self, seconds: float) -> None:
        await trio.sleep(seconds)

    def expected(self) -> Ruleset:
        state = ClusterState(node="n1")
        state.change_nodes({"n1": node("n1", "198.51.100.1", pods=["10.0.0.0/24"])})
        for (kind, key), one in self.held.items():
            change: Any = {
                "services": state.change_services,
                "endpointslices": state.change_slices,
                "nodes": state.change_nodes,
            }
            change[kind]({key: one})
        return make_ruleset(state.plan().mappings, cluster=state.networks)


_names = st.sampled_from("abc")
_services = st.tuples(
    *(_names, st.lists(st.sampled_from(ADDRESSES), max_size=2), st.lists(st.integers(1, 2), max_size=2)),
    *(st.booleans(), st.sampled_from([OLD, NEW])),
)
_errors = st.lists(st.sampled_from([Busy("busy"), Refused("no"), NoAnswer("late")]), min_size=1, max_size=3)
_steps = st.one_of(
    st.tuples(st.just(World.put_service), _services),
    st.tuples(st.just(World.put_slice), st.tuples(_names, st.sampled_from(PODS), st.integers(0, 2))),
    st.tuples(st.just(World.put_node), st.tuples(st.sampled_from(["192.0.2.9", "192.0.2.2"]))),
    st.tuples(st.just(World.remove), st.tuples(st.just("services"), _names.map("default/{}".format))),
    st.tuples(st.just(World.remove), st.tuples(st.just("endpointslices"), _names.map("default/{}".format))),
    st.tuples(st.just(World.remove), st.just(("nodes", "n2"))),
    st.tuples(
        st.sampled_from([World.lose_api, World.find_api, World.flush, World.flush_silently, World.restart]), st.just(())
    ),
    st.tuples(st.just(World.tamper), st.tuples(st.just("192.0.2.7"), st.sampled_from(PODS))),
    st.tuples(st.just(World.fail), st.tuples(_errors)),
    st.tuples(st.just(World.wait), st.tuples(st.sampled_from([0.0, 0.005, 0.5, 5.0]))),
)


async def play(steps: list[tuple[Callable[..., Any], tuple[Any, ...]]]) -> None:
    world = World()
    await world.start()
    async with world.running:
        for step, arguments in steps:
            await step(world, *arguments)
        world.api.recover()
        world.kernel.failures = []
        expected = world.expected()
        with trio.fail_after(300):
            while world.kernel.ruleset != expected or world.node.status.why_not_ready():  # noqa: ASYNC110
                await trio.sleep(0.1)
        # What is still on its way arrives, though it may lead back to the same; and there it stays.
        await trio.sleep(70)
        applied = len(world.kernel.applied)
        await trio.sleep(70)
        assert world.kernel.ruleset == expected
        assert len(world.kernel.applied) == applied


@settings(max_examples=50, deadline=None)
@given(st.lists(_steps, max_size=20))
def test_whatever_happened_the_kernel_has_the_plan_of_the_final_state(steps: Any) -> None:
    with capture_logs():
        trio.run(play, steps, clock=MockClock(autojump_threshold=0))
