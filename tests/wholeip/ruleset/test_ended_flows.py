"""Which flows a change of the rules no longer allows."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from wholeip.mappings.mapping import Mapping, OpenPort
from wholeip.mappings.networks import NetworkSet
from wholeip.ruleset.ctnetlink import Flow
from wholeip.ruleset.ended_flows import NO_EGRESS, NewEgress, find_ended, is_ended, is_older, relevant_addresses
from wholeip.ruleset.ruleset import Ruleset, make_ruleset
from wholeip.ruleset.steps import at_once

CLIENT, ADDRESS, SECOND, POD, OTHER_POD = "198.51.100.9", "192.0.2.1", "192.0.2.2", "10.0.0.1", "10.0.0.2"
NEIGHBOUR = "10.0.0.77"
"""The pod of a Service that kube-proxy serves."""


def mapping(address: str = ADDRESS, pod: str = POD, *ports: int, **options: Any) -> Mapping:
    opened = frozenset(OpenPort("tcp", port) for port in ports) if ports or options.pop("closed", False) else None
    values = {"icmp": False, "egress": True, **options}
    return Mapping("default/vm", ip_address(address), ip_address(pod), opened, **values)


def incoming(address: str = ADDRESS, pod: str = POD, protocol: int = 6, port: int = 80, source: str = CLIENT) -> Flow:
    return Flow(source, address, protocol, port, pod, source, b"")


def outgoing(pod: str = POD, address: str = ADDRESS) -> Flow:
    return Flow(pod, CLIENT, 6, 443, CLIENT, address, b"")


WHOLE = [mapping()]
MOVED = [mapping(pod=OTHER_POD)]


@pytest.mark.parametrize(
    ("flow", "before", "after", "expected"),
    [
        pytest.param(incoming(), WHOLE, WHOLE, False, id="nothing changed"),
        pytest.param(incoming(), None, WHOLE, False, id="nothing is wrong, before is unknown"),
        pytest.param(incoming(), WHOLE, [mapping(ADDRESS, POD, 80)], False, id="the port is still listed"),
        pytest.param(incoming(port=81), WHOLE, [mapping(ADDRESS, POD, 80)], True, id="the port is not listed"),
        pytest.param(incoming(protocol=17), WHOLE, [mapping(ADDRESS, POD, 80)], True, id="the protocol is not listed"),
        pytest.param(incoming(protocol=47, port=0), WHOLE, [mapping(ADDRESS, POD, 80)], True, id="it has no ports"),
        pytest.param(incoming(protocol=47, port=0), WHOLE, WHOLE, False, id="it needs none"),
        pytest.param(incoming(protocol=1, port=0), WHOLE, [mapping(closed=True)], True, id="ping is not allowed"),
        pytest.param(
            incoming(protocol=1, port=0), WHOLE, [mapping(closed=True, icmp=True)], False, id="ping is allowed"
        ),
        pytest.param(incoming(port=81), None, [mapping(ADDRESS, POD, 80)], True, id="not listed, before is unknown"),
        pytest.param(incoming(port=81), [], [mapping(ADDRESS, POD, 80)], True, id="not listed, and now its pod's"),
        pytest.param(
            incoming(pod=NEIGHBOUR, port=81), None, [mapping(ADDRESS, POD, 80)], False, id="a neighbour on the address"
        ),
        pytest.param(
            incoming(pod=NEIGHBOUR, port=81), [], [mapping(ADDRESS, POD, 80)], False, id="a neighbour was there before"
        ),
        pytest.param(
            incoming(pod=NEIGHBOUR, port=81),
            [mapping(ADDRESS, POD, 80, 443)],
            [mapping(ADDRESS, POD, 80)],
            False,
            id="a neighbour while another port closes",
        ),
        pytest.param(incoming(pod=NEIGHBOUR), [], WHOLE, True, id="a neighbour on an address that is whole now"),
        pytest.param(
            incoming(pod=ADDRESS, port=81), [], [mapping(ADDRESS, POD, 80)], True, id="it goes past a closed port"
        ),
        pytest.param(incoming(), WHOLE, MOVED, True, id="the address moved"),
        pytest.param(incoming(), None, MOVED, True, id="the address moved before we knew"),
        pytest.param(incoming(pod=OTHER_POD), WHOLE, MOVED, False, id="it is with the new pod already"),
        pytest.param(incoming(), WHOLE, [], True, id="the address is gone"),
        pytest.param(incoming(), None, [], False, id="an address that we know nothing of"),
        pytest.param(incoming(pod="10.0.0.77"), WHOLE, [], False, id="somebody else has it"),
        pytest.param(incoming(pod=ADDRESS), [], WHOLE, True, id="it goes past an address that is ours now"),
        pytest.param(incoming(pod=ADDRESS), WHOLE, [], False, id="it goes past one that was ours"),
        pytest.param(incoming(CLIENT, CLIENT), WHOLE, MOVED, False, id="a flow of others"),
        pytest.param(outgoing(), WHOLE, WHOLE, False, id="the way out is the same"),
        pytest.param(outgoing(), WHOLE, MOVED, True, id="it leaves with the address of another pod"),
        pytest.param(outgoing(), None, MOVED, True, id="it leaves with another's, before is unknown"),
        pytest.param(outgoing(), WHOLE, [], True, id="it leaves with an address that is not its own any more"),
        pytest.param(outgoing(), None, [], False, id="it leaves with an address that is nobody's that we know"),
        pytest.param(outgoing(), WHOLE, [mapping(SECOND)], True, id="it leaves with another address now"),
        pytest.param(outgoing(address="198.51.100.1"), [], WHOLE, False, id="begun with the address of the node"),
        pytest.param(outgoing(address=POD), [], WHOLE, False, id="begun with its own address"),
        pytest.param(incoming(source=POD), WHOLE, WHOLE, False, id="a pod to itself"),
        pytest.param(
            Flow(POD, ADDRESS, 6, 80, POD, ADDRESS, b""), WHOLE, WHOLE, False, id="a pod to itself by its address"
        ),
        pytest.param(Flow(POD, ADDRESS, 6, 80, POD, ADDRESS, b""), WHOLE, MOVED, True, id="itself, and then another"),
    ],
)
def test_a_flow_ends_where_it_is_ours_and_wrong(
    flow: Flow, before: list[Mapping] | None, after: list[Mapping], expected: bool
) -> None:
    assert is_ended(flow, None if before is None else make_ruleset(before), make_ruleset(after)) is expected


def test_addresses_of_before_and_after_are_looked_at() -> None:
    before, after = make_ruleset([mapping()]), make_ruleset([mapping("2001:db8::1", "fd00::1")])
    packed = {ip_address(text).packed for text in (ADDRESS, "2001:db8::1")}
    assert at_once(relevant_addresses([before, after])) == packed
    assert at_once(relevant_addresses([None, make_ruleset([])])) == frozenset()


def test_a_table_of_another_version_has_no_flows_of_ours() -> None:
    assert not is_ended(incoming(), Ruleset("x", {}, frozenset()), Ruleset("x", {}, frozenset()))


INSIDE = NetworkSet(ip_network(text) for text in ("10.0.0.0/8", "169.254.0.0/16"))
NODE = "198.51.100.1"


def begun(protocol: int = 17, *, pod: str = POD, to: str = CLIENT, translated: str = "", source: str = NODE) -> Flow:
    return Flow(pod, to, protocol, 443, translated or to, source, b"")


@pytest.mark.parametrize(
    ("flow", "ends", "with_connections"),
    [
        pytest.param(begun(), True, True, id="UDP with the address of the node"),
        pytest.param(begun(source=POD), True, True, id="UDP with its own address"),
        pytest.param(begun(1), True, True, id="a ping"),
        pytest.param(begun(47), True, True, id="a tunnel"),
        pytest.param(begun(6), False, True, id="TCP"),
        pytest.param(begun(132), False, True, id="SCTP"),
        pytest.param(begun(source=ADDRESS), False, False, id="it has the address already"),
        pytest.param(begun(pod=OTHER_POD), False, False, id="another pod"),
        pytest.param(begun(to=OTHER_POD), False, False, id="to another pod"),
        pytest.param(begun(to="10.96.0.10", translated="10.0.0.9"), False, False, id="to a Service of pods"),
        pytest.param(begun(to="10.96.0.10", translated=CLIENT), True, True, id="to a Service of hosts outside"),
        pytest.param(begun(to="169.254.169.254"), False, False, id="to its own link"),
        pytest.param(incoming(source=CLIENT), False, False, id="a flow that others began"),
    ],
)
def test_a_flow_is_older_than_a_mapping_if_it_would_leave_with_another_address(
    flow: Flow, ends: bool, with_connections: bool
) -> None:
    assert is_older(flow, NewEgress({POD: ADDRESS}, INSIDE)) is ends
    assert is_older(flow, NewEgress({POD: ADDRESS}, INSIDE, connections=True)) is with_connections
    assert not is_older(flow, NO_EGRESS)


def test_a_flow_of_a_mapping_that_came_and_went_ends() -> None:
    nothing, moment = make_ruleset([]), make_ruleset(WHOLE)
    flows = [incoming(), outgoing(), incoming(SECOND)]
    assert at_once(find_ended(flows, [nothing], nothing, NO_EGRESS)) == []
    assert at_once(find_ended(flows, [nothing, moment], nothing, NO_EGRESS)) == flows[:2]
    assert at_once(find_ended(flows, [None, moment], nothing, NO_EGRESS)) == flows[:2]
    assert at_once(find_ended(flows, [nothing, moment], moment, NO_EGRESS)) == []
    assert at_once(relevant_addresses([None, moment, nothing])) == {ip_address(ADDRESS).packed}
