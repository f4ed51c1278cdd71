"""Updates: planning the touched Services gives the same table as planning all of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.kit.wholeip_kernel import after
from tests.kit.wholeip_objects import LEAVING, NEW, NOT_READY, OLD, READY, WHOLE, endpoint_slice, node, port, service
from wholeip.agent.update import BETWEEN, DesiredTable, Update, update_from, whole_update
from wholeip.mappings.cluster_state import ClusterState
from wholeip.mappings.nodes import Node
from wholeip.mappings.plan import NOTHING_IN_USE
from wholeip.mappings.reports import Reason
from wholeip.mappings.services import Service
from wholeip.ruleset.ruleset import Ruleset, changes
from wholeip.ruleset.steps import at_once

LB, LB2, POD, POD2, POD3 = "192.0.2.1", "192.0.2.2", "10.0.0.1", "10.0.0.2", "10.0.0.3"
LB6, POD6 = "2001:db8::1", "2001:db8:1::1"
ICMP = {"switchback.dev/allow-icmp": "true"}


class World:
    """A cluster, and a node that follows it step by step."""

    def __init__(self) -> None:
        self.state = ClusterState(node="n1")
        self.services: dict[str, Service | Unreadable] = {}
        self.slices: dict[str, EndpointSlice | Unreadable] = {}
        self.nodes: dict[str, Node] = {}
        self.state.take_touched()
        self.target: DesiredTable = whole_update(None, self.state, NOTHING_IN_USE).desired
        self.ruleset: Ruleset = self.target.ruleset()

    def put_service(self, name: str, *ips: str, **options: Any) -> None:
        self._keep(self.services, self.state.change_services, f"default/{name}", service(name, *ips, **options))

    def break_service(self, name: str) -> None:
        broken = Unreadable(ObjectMeta(name, "default"), "broken")
        self._keep(self.services, self.state.change_services, f"default/{name}", broken)

    def delete_service(self, name: str) -> None:
        self._keep(self.services, self.state.change_services, f"default/{name}", None)

    def put_slice(self, owner: str, *pods: Any, name: str = "", family: str = "IPv4") -> None:
        found = endpoint_slice(owner, *pods, name=name or owner, family=family, node="n1")
        self._keep(self.slices, self.state.change_slices, f"default/{name or owner}", found)

    def delete_slice(self, name: str) -> None:
        self._keep(self.slices, self.state.change_slices, f"default/{name}", None)

    def put_node(self, name: str, address: str, *networks: str) -> None:
        self._keep(self.nodes, self.state.change_nodes, name, node(name, address, pods=networks))

    def delete_node(self, name: str) -> None:
        self._keep(self.nodes, self.state.change_nodes, name, None)

    def _keep(self, held: Any, change: Any, key: str, found: Any) -> None:
        held.pop(key, None)
        if found is not None:
            held[key] = found
        change({key: found})

    def step(self) -> Update:
        """Take it, and compare it with one from nothing for a state that learned everything at once."""
        known = self.target
        step = update_from(known, self.state)
        at_once = ClusterState(node="n1")
        at_once.change_nodes(self.nodes)
        at_once.change_slices(dict(reversed(self.slices.items())))
        at_once.change_services(dict(reversed(self.services.items())))
        whole = whole_update(self.ruleset, at_once, known.plan.in_use())
        assert step.desired == whole.desired
        assert step.desired.plan.mappings == whole.desired.plan.mappings
        assert step.desired.plan.reports == whole.desired.plan.reports
        transaction = changes(*step.rulesets)
        assert transaction == changes(*whole.rulesets)
        self.ruleset = after(self.ruleset, transaction)
        assert self.ruleset == step.desired.ruleset()
        assert step.services is not None
        assert step.services >= {key for key in self.services if step.desired.plan.part(key) != known.plan.part(key)}
        self.target = step.desired
        return step

    @property
    def whole(self) -> dict[str, str]:
        return dict(self.ruleset.elements["whole_v4"])


def pair(older: str = LB, younger: str = LB2, older_pod: str = POD, younger_pod: str = POD2) -> World:
    """Two Services with a pod each, and a third one that has nothing to do with them."""
    world = World()
    for name, address, pod, created in (
        ("older", older, older_pod, OLD),
        ("younger", younger, younger_pod, NEW),
        ("apart", "192.0.2.77", "10.0.0.77", OLD),
    ):
        world.put_service(name, address, annotations=WHOLE, created=created)
        world.put_slice(name, (pod, READY))
    world.step()
    return world


def test_a_change_is_a_step_for_what_it_touches_alone() -> None:
    world = pair()
    world.put_slice("older", (POD3, READY))
    step = world.step()
    assert step.services == {"default/older"}
    assert changes(*step.rulesets).adds["whole_v4"] == {LB: POD3}
    assert world.whole == {LB: POD3, LB2: POD2, "192.0.2.77": "10.0.0.77"}


@pytest.mark.parametrize(
    ("before", "change", "whole"),
    [
        pytest.param(
            {"younger": LB}, lambda one: one.delete_service("older"), {LB: POD2}, id="the younger gets the address"
        ),
        pytest.param(
            {"younger": LB},
            lambda one: one.put_service("older", LB2, annotations=WHOLE, created=OLD),
            {LB2: POD, LB: POD2},
            id="the older gets another address",
        ),
        pytest.param({"younger": LB}, lambda one: one.delete_slice("older"), {LB: POD2}, id="the older loses its pod"),
        pytest.param(
            {"younger": LB},
            lambda one: one.put_service("younger", LB, annotations=WHOLE, created="2025"),
            {LB: POD2},
            id="the younger becomes the older",
        ),
        pytest.param(
            {"younger_pod": POD},
            lambda one: one.put_slice("older", (POD3, READY)),
            {LB: POD3, LB2: POD},
            id="two on one pod, and one of them changes its pod",
        ),
        pytest.param(
            {}, lambda one: one.put_slice("younger", (POD, READY)), {LB: POD, LB2: POD}, id="both come to be on one pod"
        ),
        pytest.param(
            {},
            lambda one: one.put_slice("younger", (LB, READY)),
            {},
            id="an address becomes the other's pod",
        ),
        pytest.param(
            {"younger_pod": LB},
            lambda one: one.put_slice("younger", (POD2, READY)),
            {LB: POD, LB2: POD2},
            id="and is it no more",
        ),
        pytest.param({}, lambda one: one.put_node("n2", LB), {LB2: POD2}, id="a node has the address"),
        pytest.param({}, lambda one: one.put_node("n2", POD), {LB2: POD2}, id="a node has the pod's"),
    ],
)
def test_those_who_share_an_address_are_planned_again_together(before: Any, change: Any, whole: dict[str, str]) -> None:
    world = pair(**before)
    change(world)
    world.step()
    assert {address: pod for address, pod in world.whole.items() if address != "192.0.2.77"} == whole | (
        {LB2: LB} if whole == {} else {}
    )


def test_networks_of_nodes_come_and_go_by_themselves() -> None:
    world = pair()
    world.put_node("n1", "198.51.100.1", "10.0.0.0/24")
    assert world.step().services == {"default/older", "default/younger", "default/apart"}, "the first of the pods"
    world.put_node("n2", "198.51.100.2", "10.1.0.0/16")
    step = world.step()
    assert step.services == set()
    assert changes(*step.rulesets).adds == {"cluster_v4": {"10.1.0.0/16": "", "198.51.100.2": ""}}
    world.delete_node("n2")
    assert changes(*world.step().rulesets).deletes == {"cluster_v4": {"10.1.0.0/16": "", "198.51.100.2": ""}}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda _: None, id="none"),
        pytest.param(lambda one: one.put_service("older", LB, annotations=WHOLE, created=OLD), id="the same Service"),
        pytest.param(lambda one: one.put_slice("older", (POD, READY)), id="the same slice"),
        pytest.param(lambda one: one.put_slice("nobody", (POD, READY)), id="a slice of no Service"),
        pytest.param(lambda one: one.delete_service("unknown"), id="what was not there goes"),
        pytest.param(lambda one: one.put_node("n2", "not an address"), id="a node without an address"),
    ],
)
def test_what_changes_nothing_is_no_step(change: Any) -> None:
    world = pair()
    change(world)
    step = world.step()
    assert not changes(*step.rulesets)
    assert step.services is not None
    assert step.services <= {"default/nobody"}


def test_a_pod_keeps_the_address_while_it_is_ready() -> None:
    world = pair()
    world.put_slice("older", (POD3, READY))
    world.step()
    world.put_slice("older", (POD, READY), (POD3, READY))
    world.step()
    assert world.whole[LB] == POD3


def test_one_that_comes_changes_what_it_shares_nothing_with() -> None:
    """It takes the address of the second one, and the third gets the egress of the pod that the second loses."""
    world = pair(younger_pod=POD3, older_pod=POD3)
    world.put_service("first", LB, annotations=WHOLE, created="2025")
    world.put_slice("first", (POD2, READY))
    step = world.step()
    assert step.services == {"default/first", "default/older", "default/younger"}
    assert world.ruleset.elements["egress_v4"][POD3] == LB2
    assert [one.egress for one in world.target.plan.part("default/younger").mappings] == [True]


def test_a_step_and_a_later_one_for_everything_are_one_for_everything() -> None:
    world = pair()
    known, before = world.target, world.ruleset
    world.put_slice("older", (POD3, READY))
    both = world.step().then(whole_update(None, world.state, NOTHING_IN_USE))
    assert both.rulesets == (before, world.ruleset)
    assert both.before is known
    assert whole_update(None, world.state, NOTHING_IN_USE).then(both).rulesets == (None, world.ruleset)


class AnySteps(RuleBasedStateMachine):
    """Random changes, of which one or a few make a step."""

    @initialize(patience=st.integers(1, 4))
    def begin(self, patience: int) -> None:
        self.world, self.patience, self.changes = World(), patience, 0
        self.first = self.world.ruleset
        self.steps: Update | None = None

    @rule(
        name=st.sampled_from("abcd"),
        ips=st.lists(st.sampled_from([LB, LB2, LB6, POD, "x"]), max_size=2),
        annotations=st.sampled_from([{}, WHOLE, WHOLE, ICMP]),
        created=st.sampled_from([OLD, NEW]),
        ports=st.lists(st.builds(port, st.integers(1, 3)), max_size=2),
    )
    def put_service(self, name: str, ips: list[str], **options: Any) -> None:
        self.world.put_service(name, *ips, **options)

    @rule(name=st.sampled_from("abcd"))
    def break_service(self, name: str) -> None:
        self.world.break_service(name)

    @rule(name=st.sampled_from("abcd"))
    def delete_service(self, name: str) -> None:
        self.world.delete_service(name)

    @rule(
        name=st.sampled_from("pqrs"),
        owner=st.sampled_from("abcd"),
        pods=st.lists(
            st.tuples(st.sampled_from([POD, POD2, POD3, LB2]), st.sampled_from([READY, READY, NOT_READY, LEAVING])),
            max_size=3,
        ),
    )
    def put_slice(self, name: str, owner: str, pods: Any) -> None:
        self.world.put_slice(owner, *pods, name=name)

    @rule(owner=st.sampled_from("abcd"))
    def put_slice_of_ipv6(self, owner: str) -> None:
        self.world.put_slice(owner, (POD6, READY), name=f"{owner}6", family="IPv6")

    @rule(name=st.sampled_from("pqrs"))
    def delete_slice(self, name: str) -> None:
        self.world.delete_slice(name)

    @rule(name=st.sampled_from(["n1", "n2"]), address=st.sampled_from([LB, POD, POD2, "198.51.100.1"]))
    def put_node(self, name: str, address: str) -> None:
        self.world.put_node(name, address, "10.0.0.0/24" if name == "n1" else "10.0.1.0/24")

    @rule(name=st.sampled_from(["n1", "n2"]))
    def delete_node(self, name: str) -> None:
        self.world.delete_node(name)

    @invariant()
    def comes_to_the_same_as_everything(self) -> None:
        self.changes += 1
        if self.changes % self.patience == 0:
            step = self.world.step()
            self.steps = self.steps.then(step) if self.steps else step
            assert after(self.first, changes(*self.steps.rulesets)) == self.world.ruleset


TestAnySteps = AnySteps.TestCase
TestAnySteps.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


def test_the_pods_that_get_an_address_are_those_whose_flows_may_lack_it() -> None:
    world = pair()
    world.put_slice("older", (POD3, READY))
    moved = world.step()
    assert moved.new_egress == {POD3: LB}
    world.put_service("younger", "192.0.2.8", annotations=WHOLE, created=NEW)
    assert world.step().new_egress == {POD2: "192.0.2.8"}
    world.put_service("older", LB, ports=(port(80),), created=OLD)
    assert world.step().new_egress == {}, "only its ports are different"


def test_what_came_and_went_between_two_updates_is_told_with_both() -> None:
    """Else the flows of an address that a Service had for a moment would continue."""
    world = pair()
    world.put_service("apart", "192.0.2.78", annotations=WHOLE)
    first = world.step()
    world.put_service("older", "192.0.2.9", annotations=WHOLE, created=OLD)
    moved = world.step()
    world.put_service("older", LB, annotations=WHOLE, created=OLD)
    every = first.then(moved).then(world.step())
    (between,) = at_once(every.between_steps())
    assert between.elements["whole_v4"] == {"192.0.2.9": POD}
    assert every.then(world.step()).between == every.between, "nothing else"


def test_a_pod_that_lost_its_address_for_a_moment_may_have_flows_without_it() -> None:
    world = pair()
    world.put_slice("older", (POD, NOT_READY))
    away = world.step()
    assert away.new_egress == {}
    world.put_slice("older", (POD, READY))
    assert away.then(world.step()).new_egress == {POD: LB}


def test_only_the_last_tables_between_many_updates_are_kept() -> None:
    world = pair()
    world.put_service("older", "192.0.2.9", annotations=WHOLE, created=OLD)
    every = world.step()
    for number in range(BETWEEN + 9):
        world.put_service("older", f"198.18.0.{number}", annotations=WHOLE, created=OLD)
        every = every.then(world.step())
    found = [dict(one.elements["whole_v4"]) for one in at_once(every.between_steps())]
    assert found == [{f"198.18.0.{number}": POD} for number in range(8, BETWEEN + 8)]


def test_updates_of_different_services_keep_nothing_between_them() -> None:
    world = pair()
    world.put_slice("older", (POD3, READY))
    first = world.step()
    world.put_slice("younger", ("10.0.0.4", READY))
    assert first.then(world.step()).between == ()


def test_between_two_updates_of_all_services_the_whole_table_is_told_once() -> None:
    world = pair()
    first = whole_update(None, world.state, NOTHING_IN_USE)
    every = first.then(first).then(first)
    assert every.between == (first.desired,)
    assert at_once(every.between_steps()) == [world.ruleset]
    assert changes(*every.rulesets).whole == world.ruleset


def test_after_a_gap_the_flows_of_all_pods_may_lack_their_address() -> None:
    world = pair()
    every = {POD: LB, POD2: LB2, "10.0.0.77": "192.0.2.77"}
    gap = whole_update(world.ruleset, world.state, world.target.plan.in_use())
    assert gap.new_egress == every
    world.put_slice("older", (POD, READY), (POD3, READY))
    assert gap.then(world.step()).new_egress == every
    assert world.step().then(gap).new_egress == every


def test_a_pod_elsewhere_has_no_flows_here_until_it_comes() -> None:
    world = pair()
    world.slices["default/older"] = endpoint_slice("older", (POD, READY), name="older", node="n2")
    world.state.change_slices({"default/older": world.slices["default/older"]})
    assert world.step().new_egress == {}
    world.put_slice("older", (POD, READY))
    assert world.step().new_egress == {POD: LB}


def test_no_pod_is_said_to_have_an_address_that_is_refused() -> None:
    world = pair()
    world.put_slice("older", (POD, READY), (POD3, READY))
    world.step()
    world.put_node("n1", LB)
    world.step()
    world.put_slice("apart", ("10.0.0.78", READY))
    world.step()
    reasons = {one.reason for one in world.target.plan.part("default/older").reports}
    assert reasons == {Reason.PROTECTED_ADDRESS}


def test_a_pod_that_is_refused_gives_the_address_to_another_at_once() -> None:
    world = pair()
    world.put_slice("older", (POD, READY), ("10.0.0.0", READY))
    world.step()
    assert world.whole[LB] == POD
    world.put_node("n2", POD)
    world.step()
    assert world.whole[LB] == "10.0.0.0"
