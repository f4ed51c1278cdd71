"""From Services and pods to mappings, also where several Services ask for the same; mapping.py and reports.py too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.wholeip_objects import NEW, NOT_READY, OLD, READY, WHOLE, endpoint_slice, ip, port, service, tcp
from wholeip.mappings.addresses import parse_network
from wholeip.mappings.endpoints import candidates
from wholeip.mappings.mapping import Mapping
from wholeip.mappings.networks import NetworkSet
from wholeip.mappings.plan import NOTHING_IN_USE, InUse, Plan, make_plan
from wholeip.mappings.protected import Protected
from wholeip.mappings.reports import Reason, Report, skipped
from wholeip.mappings.services import read_service
from wholeip.ruleset.ruleset import make_ruleset

LB, LB2, LB6 = "192.0.2.1", "192.0.2.2", "2001:db8::1"
POD, POD2, POD6 = "10.0.0.1", "10.0.0.2", "2001:db8:1::1"
ICMP = {"switchback.dev/allow-icmp": "true"}


def planned(*pairs: tuple[Any, Sequence[Any]], in_use: InUse = NOTHING_IN_USE, **options: Any) -> Plan:
    """The plan of Services, each with its slices."""
    services = [read_service(one) for one, _ in pairs]
    pods = {
        known.key: {version: candidates(slices, version) for version in (4, 6)}
        for known, (_, slices) in zip(services, pairs, strict=True)
    }
    return make_plan(services, pods, in_use=in_use, **options)


def whole(name: str, *ips: Any, **options: Any) -> Any:
    return service(name, *ips, annotations=WHOLE, **options)


def slices(name: str, *pods: str) -> list[Any]:
    four = [(one, READY) for one in pods if ":" not in one]
    six = [(one, READY) for one in pods if ":" in one]
    return [endpoint_slice(name, *four), endpoint_slice(name, *six, family="IPv6")]


def mapping(name: str, address: str, pod: str, **options: Any) -> Mapping:
    given = {"opened": None, "icmp": True, "egress": True} | options
    return Mapping(service=f"default/{name}", address=ip(address), endpoint=ip(pod), **given)


def networks(*texts: str) -> NetworkSet:
    return NetworkSet(map(parse_network, texts))


def reasons(plan: Plan) -> list[tuple[str, Reason]]:
    return [(one.service.removeprefix("default/"), one.reason) for one in plan.reports]


def test_a_service_and_its_pod_are_a_mapping() -> None:
    plan = planned((whole("vm", LB), slices("vm", POD)))
    assert (plan.mappings, plan.reports) == ((mapping("vm", LB, POD),), ())


def test_each_family_has_a_mapping_of_its_own() -> None:
    plan = planned((whole("vm", LB, LB6), slices("vm", POD, POD6)))
    assert (plan.mappings, plan.reports) == ((mapping("vm", LB, POD), mapping("vm", LB6, POD6)), ())


def test_a_family_without_a_pod_is_reported_and_the_other_one_mapped() -> None:
    plan = planned((whole("vm", LB, LB6), slices("vm", POD)))
    assert plan.mappings == (mapping("vm", LB, POD),)
    assert plan.reports == (Report("default/vm", Reason.NO_ENDPOINT, f"{LB6} (IPv6): no pod is ready"),)


def test_nothing_is_mapped_while_no_pod_is_ready() -> None:
    plan = planned((whole("vm", LB), [endpoint_slice("vm", (POD, NOT_READY))]))
    assert plan.mappings == ()
    assert plan.reports[0].detail == f"{LB} (IPv4): no pod is ready; 1 not ready"


def test_a_service_without_any_slice_is_told_what_it_takes() -> None:
    (report,) = make_plan([read_service(whole("vm", LB))], {}).reports
    assert report.detail == f"{LB} (IPv4): no pod is ready; there is no EndpointSlice with its label"


def test_listed_ports_and_icmp_are_in_the_mapping() -> None:
    plan = planned((service("vm", LB, ports=(port(80), port(443)), annotations=ICMP), slices("vm", POD)))
    assert plan.mappings == (mapping("vm", LB, POD, opened=tcp(80, 443), icmp=True),)


def test_a_service_without_ports_lets_nothing_in_and_has_its_egress() -> None:
    plan = planned((service("vm", LB), slices("vm", POD)))
    assert plan.mappings == (mapping("vm", LB, POD, opened=frozenset(), icmp=False),)
    assert reasons(plan) == [("vm", Reason.NO_PORTS)]


def test_two_addresses_of_a_family_go_to_one_pod_and_the_first_one_has_its_egress() -> None:
    plan = planned((whole("vm", LB2, LB), slices("vm", POD, POD2)), in_use=frozenset({(None, ip(LB), ip(POD2))}))
    assert plan.mappings == (mapping("vm", LB2, POD2), mapping("vm", LB, POD2, egress=False))
    assert [reason for _, reason in reasons(plan)] == [Reason.EGRESS_TAKEN, Reason.SEVERAL_ENDPOINTS]
    assert "of the same Service" in plan.reports[0].detail


def test_a_pod_keeps_the_address_and_the_others_are_reported() -> None:
    given = (whole("vm", LB), slices("vm", POD, POD2))
    assert planned(given).mappings == (mapping("vm", LB, POD),)
    kept = planned(given, in_use=planned((whole("vm", LB), slices("vm", POD2))).in_use())
    assert kept.mappings == (mapping("vm", LB, POD2),)
    assert reasons(kept) == [("vm", Reason.SEVERAL_ENDPOINTS)]


def test_the_pod_of_another_service_on_the_address_is_not_what_a_service_has() -> None:
    shared = service("a", LB, ports=(port(80),)), service("b", LB, ports=(port(81),))
    in_use: InUse = frozenset({("default/a", ip(LB), ip(POD)), ("default/b", ip(LB), ip(POD2))})
    plan = planned((shared[0], slices("a", POD)), (shared[1], slices("b", POD, POD2)), in_use=in_use)
    assert plan.in_use() == in_use


@pytest.mark.parametrize(
    ("older", "younger", "shared"),
    [
        pytest.param({"annotations": WHOLE}, {"annotations": WHOLE}, False, id="both want all"),
        pytest.param({"annotations": WHOLE}, {"ports": (port(80),)}, False, id="the older wants all"),
        pytest.param({"ports": (port(80),)}, {"annotations": WHOLE}, False, id="the younger wants all"),
        pytest.param({"ports": (port(80),)}, {"ports": (port(443), port(80))}, False, id="one port is the same"),
        pytest.param({"ports": (port(80),)}, {"ports": (port(443),)}, True, id="other ports"),
        pytest.param({"ports": (port(53),)}, {"ports": (port(53, "UDP"),)}, True, id="other protocols"),
        pytest.param({"ports": ()}, {"ports": (port(53),)}, True, id="no ports"),
    ],
)
def test_an_address_is_shared_only_port_by_port(older: Any, younger: Any, shared: bool) -> None:
    plan = planned(
        (service("b", LB, created=NEW, **younger), slices("b", POD2)),
        (service("a", LB, created=OLD, **older), slices("a", POD)),
    )
    winners = [one.service for one in plan.mappings]
    assert winners == (["default/a", "default/b"] if shared else ["default/a"])
    assert (("b", Reason.ADDRESS_TAKEN) in reasons(plan)) is not shared


def test_who_is_as_old_goes_by_its_name() -> None:
    plan = planned((whole("b", LB), slices("b", POD2)), (whole("a", LB), slices("a", POD)))
    assert [one.service for one in plan.mappings] == ["default/a"]


def test_only_one_of_those_who_share_an_address_answers_icmp() -> None:
    plan = planned(
        (service("a", LB, ports=(port(80),)), slices("a", POD)),
        (service("b", LB, ports=(port(81),), annotations=ICMP, created=NEW), slices("b", POD2)),
        (service("c", LB, ports=(port(82),), annotations=ICMP, created="2027"), slices("c", POD)),
    )
    assert [(one.service, one.icmp) for one in plan.mappings] == [
        ("default/a", False),
        ("default/b", True),
        ("default/c", False),
    ]
    assert ("c", Reason.ICMP_TAKEN) in reasons(plan)


def test_two_services_on_one_pod_both_come_in_and_the_older_has_the_egress() -> None:
    plan = planned(
        (whole("b", LB2, created=NEW), slices("b", POD)),
        (whole("a", LB, created=OLD), slices("a", POD)),
    )
    assert plan.mappings == (mapping("a", LB, POD), mapping("b", LB2, POD, egress=False))
    assert plan.reports == (
        Report(
            "default/b", Reason.EGRESS_TAKEN, f"{LB2}: connections from {POD} leave with {LB} of the older default/a"
        ),
    )


@pytest.mark.parametrize(
    ("address", "pod", "why"),
    [
        pytest.param("192.0.2.100", POD, "192.0.2.100: it is a node's own", id="a node's address"),
        pytest.param(LB, "192.0.2.100", "its pod has the address 192.0.2.100, and it is a node's", id="the host's net"),
        pytest.param("198.51.100.1", POD, "198.51.100.0/24 is protected", id="a network of the operator's"),
        pytest.param(LB, "198.51.100.1", "198.51.100.0/24 is protected", id="a pod in such a network"),
        pytest.param(POD, POD, "it is a pod's own", id="the pod itself"),
        pytest.param(POD2, POD, "it is a pod's own", id="another pod"),
    ],
)
def test_addresses_of_others_are_not_taken_from_them(address: str, pod: str, why: str) -> None:
    protected = Protected(frozenset({ip("192.0.2.100")}), protected=NetworkSet([parse_network("198.51.100.0/24")]))
    plan = planned((whole("vm", address), slices("vm", pod)), (whole("x", LB2), slices("x", POD2)), protected=protected)
    assert [one.service for one in plan.mappings] == ["default/x"]
    assert reasons(plan) == [("vm", Reason.PROTECTED_ADDRESS)]
    assert why in plan.reports[0].detail


@pytest.mark.parametrize(
    ("address", "pod", "reason"),
    [
        pytest.param("10.96.0.10", POD, Reason.CLUSTER_ADDRESS, id="the cluster IP of another Service"),
        pytest.param("10.96.0.1", POD, Reason.CLUSTER_ADDRESS, id="the API server"),
        pytest.param(LB, "10.96.0.10", Reason.CLUSTER_ADDRESS, id="an endpoint that is a cluster IP"),
        pytest.param(LB, "8.8.8.8", Reason.FOREIGN_ENDPOINT, id="an endpoint on the Internet"),
        pytest.param(LB, "10.1.0.1", Reason.FOREIGN_ENDPOINT, id="an endpoint beside the pods"),
    ],
)
def test_addresses_of_the_cluster_are_not_given_to_a_pod(address: str, pod: str, reason: Reason) -> None:
    protected = Protected(api_servers=frozenset({ip("10.96.0.1")}), pods=NetworkSet([parse_network("10.0.0.0/24")]))
    neighbour = whole("dns", LB2, cluster_ips=("10.96.0.10",))
    plan = planned((whole("vm", address), slices("vm", pod)), (neighbour, slices("dns", POD2)), protected=protected)
    assert [one.service for one in plan.mappings] == ["default/dns"]
    assert reasons(plan) == [("vm", reason)]


@pytest.mark.parametrize(
    "protected",
    [
        pytest.param(Protected(pods=networks("10.0.0.0/24")), id="outside the pods"),
        pytest.param(
            Protected(stated=networks("10.0.0.0/8", "192.0.0.0/8"), allowed=networks("192.0.2.0/24")),
            id="in an exception from the networks of the cluster",
        ),
    ],
)
def test_an_endpoint_that_is_no_pod_takes_no_address_from_another_service(protected: Protected) -> None:
    """A slice may list any address, also that of another tenant's load balancer."""
    plan = planned((whole("vm", LB), slices("vm", POD)), (whole("x", LB2), slices("x", LB)), protected=protected)
    assert plan.mappings == (mapping("vm", LB, POD),)
    assert reasons(plan) == [("x", Reason.FOREIGN_ENDPOINT)]


@pytest.mark.parametrize(
    ("of_pod", "planned_for", "here"),
    [
        pytest.param("n1", "n1", True, id="here"),
        pytest.param("n2", "n1", False, id="elsewhere"),
        pytest.param(None, "n1", True, id="nobody says where"),
        pytest.param("n2", None, True, id="planned for no node"),
    ],
)
def test_a_pod_is_here_or_on_another_node(of_pod: str | None, planned_for: str | None, here: bool) -> None:
    plan = planned((whole("vm", LB), [endpoint_slice("vm", (POD, READY), node=of_pod)]), node=planned_for)
    assert plan.mappings == (mapping("vm", LB, POD, here=here),)


def test_services_that_are_skipped_are_counted_by_reason_and_notes_are_not() -> None:
    reports = [
        Report("default/a", Reason.NO_ENDPOINT, "one"),
        Report("default/a", Reason.NO_ENDPOINT, "two"),
        Report("default/b", Reason.NO_ENDPOINT, "one"),
        Report("default/b", Reason.EGRESS_TAKEN, "a note"),
    ]
    assert skipped(reports) == {"no-endpoint": 2}


_ADDRESSES = st.sampled_from([LB, LB2, LB6, POD, "192.0.2.100", "127.0.0.1"])
_PORTS = st.lists(st.builds(port, st.integers(1, 3), st.sampled_from(["TCP", "UDP"])), max_size=2)
_WORLD = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.lists(_ADDRESSES, max_size=3),
        _PORTS,
        st.sampled_from([{}, WHOLE, ICMP]),
        st.sampled_from([OLD, NEW]),
        st.lists(st.sampled_from([POD, POD2, POD6, LB, "192.0.2.100"]), max_size=3),
    ),
    max_size=4,
    unique_by=lambda one: one[0],
)


def _world(drawn: Any) -> list[tuple[Any, list[Any]]]:
    return [
        (service(name, *ips, ports=ports, annotations=annotations, created=created), slices(name, *pods))
        for name, ips, ports, annotations, created, pods in drawn
    ]


@given(_WORLD, st.randoms())
def test_every_plan_is_a_ruleset_and_the_same_in_any_order(drawn: Any, random: Any) -> None:
    protected = Protected(frozenset({ip("192.0.2.100")}))
    world = _world(drawn)
    plan = planned(*world, protected=protected)
    random.shuffle(world)
    assert planned(*world, protected=protected) == plan
    # make_ruleset refuses contradictions.
    make_ruleset(plan.mappings)
    assert not {one.address for one in plan.mappings} & {one.endpoint for one in plan.mappings}
    assert not {ip("192.0.2.100"), ip("127.0.0.1")} & {
        two for one in plan.mappings for two in (one.address, one.endpoint)
    }


@given(_WORLD)
def test_a_plan_that_is_in_use_stays_as_it_is(drawn: Any) -> None:
    world = _world(drawn)
    plan = planned(*world)
    assert planned(*world, in_use=plan.in_use()) == plan


@given(_WORLD, _WORLD)
def test_where_each_service_has_one_pod_the_past_does_not_matter(before: Any, now: Any) -> None:
    single = [(*one[:5], one[5][:1]) for one in now]
    assert planned(*_world(single), in_use=planned(*_world(before)).in_use()) == planned(*_world(single))
