"""The plan of the final state, whatever the order of the changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.kit.wholeip_objects import (
    NEW,
    NOT_READY,
    OLD,
    READY,
    WHOLE,
    api_service,
    endpoint_slice,
    ip,
    node,
    pod,
    port,
    service,
    service_manifest,
    service_range,
)
from wholeip.mappings.addresses import parse_network
from wholeip.mappings.api_server import ApiService, ServiceRange
from wholeip.mappings.cluster_networks import StatedNetworks
from wholeip.mappings.cluster_state import ClusterState
from wholeip.mappings.mapping import Mapping
from wholeip.mappings.nodes import Node
from wholeip.mappings.plan import Plan
from wholeip.mappings.pods import PodObject, Proof
from wholeip.mappings.reports import Reason
from wholeip.mappings.services import Service

LB, POD, POD2 = "192.0.2.1", "10.0.0.1", "10.0.0.2"


def with_vm(**options: Any) -> ClusterState:
    state = ClusterState(**options)
    state.change_services({"default/vm": service("vm", LB, annotations=WHOLE)})
    state.change_slices({"default/vm-ipv4": endpoint_slice("vm", (POD, READY), node="n1")})
    return state


MAPPING = Mapping("default/vm", ip(LB), ip(POD), None, icmp=True, egress=True)


def test_a_service_and_its_slice_are_a_mapping() -> None:
    assert with_vm().plan().mappings == (MAPPING,)
    assert len(with_vm()) == 1


def test_a_service_that_was_deleted_and_created_again_is_planned_again() -> None:
    state = ClusterState()
    for uid in ("1", "2"):
        manifest = service_manifest("vm", LB, annotations=WHOLE)
        manifest["metadata"]["uid"] = uid
        state.change_services({"default/vm": msgspec.convert(manifest, Service)})
        assert state.take_touched() == {"default/vm"}
        assert state.plan().part("default/vm").uid == uid


def test_the_nodes_are_known_by_name() -> None:
    state = ClusterState(node="n1")
    state.change_nodes({"n1": node("n1", "198.51.100.1"), "n2": node("n2")})
    assert state.nodes == {"n1", "n2"}
    state.change_nodes({"n2": None})
    assert state.nodes == {"n1"}


def test_a_service_that_goes_takes_its_mapping_along() -> None:
    state = with_vm()
    state.change_services({"default/vm": None})
    assert state.plan() == Plan()


def test_slices_without_a_service_are_nothing_until_it_comes() -> None:
    state = with_vm()
    state.change_services({"default/vm": None})
    state.change_services({"default/vm": service("vm", LB, annotations=WHOLE)})
    assert state.plan().mappings == (MAPPING,)


def test_a_slice_that_changes_its_owner_leaves_the_first_one() -> None:
    state = with_vm()
    state.change_slices({"default/vm-ipv4": endpoint_slice("other", (POD, READY))})
    assert [one.reason for one in state.plan().reports] == [Reason.NO_ENDPOINT]


def test_a_slice_that_goes_or_cannot_be_read_is_none() -> None:
    for gone in (None, Unreadable(ObjectMeta("vm-ipv4", "default"), "Expected `array`")):
        state = with_vm()
        state.change_slices({"default/vm-ipv4": gone})
        assert state.plan().mappings == ()
        state.change_slices({"default/vm-ipv4": gone})


def test_what_was_never_there_may_go() -> None:
    state = ClusterState()
    state.change_services({"default/vm": None})
    state.change_slices({"default/vm-ipv4": None})
    state.change_nodes({"n1": None})
    assert state.plan().mappings == ()


def test_a_node_keeps_its_address_and_loses_it_when_it_goes() -> None:
    state = with_vm()
    state.change_nodes({"n1": node("n1", LB)})
    assert [one.reason for one in state.plan().reports] == [Reason.PROTECTED_ADDRESS]
    state.change_nodes({"n1": None})
    assert state.plan().mappings == (MAPPING,)


def test_the_networks_of_the_cluster_are_stated_ones_pods_and_nodes() -> None:
    state = ClusterState(stated=StatedNetworks((parse_network("10.96.0.0/12"),)))
    state.change_nodes({"n1": node("n1", "192.0.2.9", pods=["10.244.0.0/24"]), "n2": node("n2", "2001:db8::9")})
    assert {str(one) for one in state.networks} == {"10.96.0.0/12", "10.244.0.0/24", "192.0.2.9/32", "2001:db8::9/128"}
    state.change_nodes({"n1": None})
    assert {str(one) for one in state.networks} == {"10.96.0.0/12", "2001:db8::9/128"}


def test_an_address_that_the_api_server_gets_later_is_taken_from_a_service() -> None:
    state = with_vm()
    state.take_touched()
    state.add_api_addresses(frozenset({ip(LB), ip("192.0.2.99")}))
    assert state.take_touched() == {"default/vm"}
    assert [one.reason for one in state.plan().reports] == [Reason.CLUSTER_ADDRESS]
    assert state.api_addresses == {ip(LB), ip("192.0.2.99")}


def test_what_the_cluster_does_not_say_is_asked_of_the_operator() -> None:
    state = ClusterState(node="n1")
    assert [one.partition(":")[0] for one in state.advise()] == [
        "the cluster shows no Node n1",
        "no network of the cluster's pods is known",
    ]
    state.change_nodes({"n1": node("n1")})
    assert len(list(state.advise())) == 1
    state.change_nodes({"n1": node("n1", pods=["10.244.0.0/24"])})
    assert list(state.advise()) == []
    assert len(list(ClusterState(stated=StatedNetworks((parse_network("10.0.0.0/8"),))).advise())) == 0


CLUSTER_CHANGES: list[Any] = [
    pytest.param("change_nodes", node("n2", pods=["192.0.2.0/28"]), id="pods get a network that has it"),
    pytest.param("change_nodes", node("n2", pods=["10.9.0.0/16"]), id="pods get a network that its pod is not in"),
    pytest.param("change_ranges", service_range("192.0.2.0/28"), id="Services get a range that has it"),
    pytest.param("change_ranges", service_range("10.0.0.0/28"), id="Services get a range that has its pod"),
    pytest.param("change_api_services", api_service(LB), id="the API server has it as its cluster IP"),
    pytest.param("change_api_services", api_service("192.0.2.9"), id="it is beside the API server's cluster IP"),
    pytest.param(
        "change_api_slices",
        endpoint_slice("kubernetes", (LB, READY), name="kubernetes"),
        id="the API server has it as its own",
    ),
    pytest.param("change_services", service("other", cluster_ips=(LB,)), id="another Service has it as its cluster IP"),
]


@pytest.mark.parametrize(("change", "appears"), CLUSTER_CHANGES)
def test_what_the_cluster_shows_takes_a_mapping_and_gives_it_back(change: str, appears: Any) -> None:
    state = with_vm()
    state.take_touched()
    for value, mapped in ((appears, ()), (None, (MAPPING,))):
        getattr(state, change)({"default/one": value})
        assert "default/vm" in state.take_touched()
        assert state.plan_of({"default/vm", "default/one"}, state.plan().in_use()).mappings == mapped


def test_what_the_cluster_shows_of_other_networks_touches_no_service() -> None:
    state = with_vm()
    state.change_nodes({"n1": node("n1", pods=["10.0.0.0/24"])})
    state.take_touched()
    state.change_nodes({"n2": node("n2", "192.0.2.9", pods=["10.0.1.0/24"])})
    state.change_ranges({"kubernetes": service_range("10.96.0.0/16")})
    state.change_api_services({"default/kubernetes": api_service("10.96.0.1")})
    assert state.take_touched() == set()
    assert state.plan().mappings == (MAPPING,)


def test_the_plan_is_for_one_node() -> None:
    assert not with_vm(node="n2").plan().mappings[0].here


def test_networks_of_the_operator_are_protected() -> None:
    assert with_vm(stated=StatedNetworks(protected=(parse_network("192.0.2.0/24"),))).plan().mappings == ()


def verifying(*addresses: str) -> ClusterState:
    state = with_vm(proof=Proof.VERIFIED)
    state.change_pods({"default/vm-pod": pod("vm-pod", *addresses)})
    state.take_touched()
    return state


@pytest.mark.parametrize(
    ("change", "mapped"),
    [
        pytest.param({"default/vm-pod": pod("vm-pod", POD2)}, False, id="another address"),
        pytest.param({"default/vm-pod": None}, False, id="deleted"),
        pytest.param({"default/vm-pod": pod("vm-pod", POD, phase="Succeeded")}, False, id="ended"),
        pytest.param({"default/vm-pod": Unreadable(ObjectMeta("vm-pod", "default"), "bad")}, False, id="unreadable"),
        pytest.param({"default/vm-pod": pod("vm-pod", "2001:db8::9", POD)}, True, id="one more address"),
        pytest.param({"default/other": pod("other", POD2)}, True, id="another Pod"),
        pytest.param({"other/vm-pod": None}, True, id="a Pod of another namespace"),
    ],
)
def test_a_pod_that_loses_the_address_loses_the_mapping(change: Any, mapped: bool) -> None:
    state = verifying(POD)
    assert state.plan().mappings == (MAPPING,)
    state.change_pods(change)
    assert state.take_touched() == (set() if mapped else {"default/vm"})
    assert state.plan().mappings == ((MAPPING,) if mapped else ())


def test_a_pod_that_gets_its_address_later_gets_the_mapping() -> None:
    state = verifying()
    assert [one.reason for one in state.plan().reports] == [Reason.FOREIGN_ENDPOINT]
    state.change_pods({"default/vm-pod": pod("vm-pod", POD)})
    assert state.take_touched() == {"default/vm"}
    assert state.plan().mappings == (MAPPING,)


def test_pods_touch_nothing_if_they_are_not_compared() -> None:
    state = with_vm()
    state.take_touched()
    state.change_pods({"default/vm-pod": pod("vm-pod", POD2)})
    assert state.take_touched() == set()
    assert state.plan().mappings == (MAPPING,)


class AnyOrder(RuleBasedStateMachine):
    """Random changes; at each moment the plan is that of a state which learned everything at once."""

    proof = Proof.REFERENCED

    def __init__(self) -> None:
        super().__init__()
        self.state = ClusterState(node="n1", proof=self.proof)
        self.pods: dict[str, PodObject] = {}
        self.services: dict[str, Service | Unreadable] = {}
        self.slices: dict[str, EndpointSlice | Unreadable] = {}
        self.nodes: dict[str, Node] = {}
        self.ranges: dict[str, ServiceRange] = {}
        self.api: dict[str, ApiService] = {}
        self.plan = Plan()
        """Kept up to date by the touched Services alone."""

    @rule(
        name=st.sampled_from("abc"),
        ips=st.lists(st.sampled_from([LB, "192.0.2.2", "2001:db8::1", "x"]), max_size=2),
        annotations=st.sampled_from([{}, WHOLE]),
        created=st.sampled_from([OLD, NEW]),
        ports=st.lists(st.builds(port, st.integers(1, 3)), max_size=2),
    )
    def put_service(self, name: str, **options: Any) -> None:
        found = service(name, *options.pop("ips"), **options)
        self.services[f"default/{name}"] = found
        self.state.change_services({f"default/{name}": found})

    @rule(name=st.sampled_from("abc"))
    def break_service(self, name: str) -> None:
        broken = Unreadable(ObjectMeta(name, "default"), "broken")
        self.services[f"default/{name}"] = broken
        self.state.change_services({f"default/{name}": broken})

    @rule(name=st.sampled_from("abc"))
    def delete_service(self, name: str) -> None:
        self.services.pop(f"default/{name}", None)
        self.state.change_services({f"default/{name}": None})

    @rule(
        name=st.sampled_from("pqr"),
        owner=st.sampled_from("abc"),
        pods=st.lists(st.tuples(st.sampled_from([POD, POD2]), st.sampled_from([READY, NOT_READY])), max_size=2),
    )
    def put_slice(self, name: str, owner: str, pods: Any) -> None:
        found = endpoint_slice(owner, *pods, name=name)
        self.slices[f"default/{name}"] = found
        self.state.change_slices({f"default/{name}": found})

    @rule(name=st.sampled_from("abc"), addresses=st.lists(st.sampled_from([POD, POD2]), max_size=2))
    def put_pod(self, name: str, addresses: list[str]) -> None:
        key = f"default/{name}-pod"
        self.pods[key] = pod(f"{name}-pod", *addresses)
        self.state.change_pods({key: self.pods[key]})

    @rule(name=st.sampled_from("abc"))
    def delete_pod(self, name: str) -> None:
        self.pods.pop(f"default/{name}-pod", None)
        self.state.change_pods({f"default/{name}-pod": None})

    @rule(name=st.sampled_from("pqr"))
    def delete_slice(self, name: str) -> None:
        self.slices.pop(f"default/{name}", None)
        self.state.change_slices({f"default/{name}": None})

    @rule(name=st.sampled_from(["n1", "n2"]), address=st.sampled_from([LB, "192.0.2.9", POD]))
    def put_node(self, name: str, address: str) -> None:
        self.nodes[name] = node(name, address)
        self.state.change_nodes({name: self.nodes[name]})

    @rule(
        name=st.sampled_from(["n1", "n2"]),
        pods=st.lists(st.sampled_from(["10.0.0.0/31", "10.0.0.0/24", "192.0.2.0/30", "2001:db8::/64"]), max_size=2),
    )
    def put_network(self, name: str, pods: list[str]) -> None:
        self.nodes[name] = node(name, pods=pods)
        self.state.change_nodes({name: self.nodes[name]})

    @rule(ranges=st.lists(st.sampled_from(["192.0.2.0/31", "10.0.0.2/32", "2001:db8::/64"]), max_size=2))
    def put_range(self, ranges: list[str]) -> None:
        self.ranges = {"kubernetes": service_range(*ranges)}
        self.state.change_ranges(self.ranges)

    @rule(cluster_ips=st.lists(st.sampled_from([LB, POD2, "198.51.100.1"]), max_size=2))
    def put_api_service(self, cluster_ips: list[str]) -> None:
        self.api = {"default/kubernetes": api_service(*cluster_ips)}
        self.state.change_api_services(self.api)

    @rule(name=st.sampled_from(["n1", "n2"]))
    def delete_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.state.change_nodes({name: None})

    @invariant()
    def is_the_plan_of_the_final_state(self) -> None:
        at_once = ClusterState(node="n1", proof=self.proof)
        at_once.change_pods(self.pods)
        at_once.change_api_services(self.api)
        at_once.change_ranges(self.ranges)
        at_once.change_nodes(self.nodes)
        at_once.change_slices(dict(reversed(self.slices.items())))
        at_once.change_services(dict(reversed(self.services.items())))
        assert self.state.plan() == at_once.plan()
        touched = self.state.take_touched()
        untouched = self.plan.parts.keys() - touched
        new = at_once.plan()
        assert {one: self.plan.part(one) for one in untouched} == {one: new.part(one) for one in untouched}
        self.plan = new
        assert set(self.state.networks) == set(at_once.networks)


class AnyOrderVerified(AnyOrder):
    """The same with the addresses of Pods."""

    proof = Proof.VERIFIED


TestAnyOrder = AnyOrder.TestCase
TestAnyOrderVerified = AnyOrderVerified.TestCase
TestAnyOrderVerified.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
