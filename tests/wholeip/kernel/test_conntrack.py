"""In a real kernel, flows end that a change of the rules no longer allows, and no others; netlink_socket.py too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from tests.kit.networks import Network, root
from tests.wholeip.scene.cluster import (
    CLOSED_PORT,
    CLUSTER,
    FAMILIES,
    OPEN_PORT,
    Cluster,
    address,
    balanced,
    cluster,
    install,
    mapping,
    mappings,
    wait_until,
)
from tests.wholeip.scene.place import Failed
from wholeip.kernel.conntrack import end_flows
from wholeip.mappings.mapping import Mapping, OpenPort
from wholeip.mappings.networks import NetworkSet
from wholeip.ruleset.ended_flows import NO_EGRESS, NewEgress
from wholeip.ruleset.nft_errors import NotPermitted
from wholeip.ruleset.ruleset import Ruleset, changes, format_transaction, make_ruleset

__all__ = ["root"]
pytestmark = pytest.mark.peer("nft", "ip", "nsenter", "unshare", "conntrack")


@pytest.fixture(scope="module")
def made(root: None) -> Iterator[Cluster]:  # noqa: ARG001  # skips who is not root
    with cluster() as made:
        yield made


@pytest.fixture
def scene(made: Cluster) -> Cluster:
    install(made)
    return made


def change(scene: Cluster, after: list[Mapping]) -> int:
    """Make the node's kernel and its flows follow from all mappings to these; how many flows ended."""
    before, desired = (make_ruleset(some, cluster=CLUSTER) for some in (mappings(), after))
    scene.node.run("nft", "-f", "-", script=format_transaction(changes(before, desired)))
    return end(scene, before, desired)


def end(scene: Cluster, before: Ruleset | None, after: Ruleset, egress: NewEgress = NO_EGRESS) -> int:
    with Network(scene.node.process).entered():
        return trio.run(end_flows, before, after, egress)


def without(*names: str) -> list[Mapping]:
    return [one for one in mappings() if one.service not in {f"default/{name}" for name in names}]


def tracked(scene: Cluster, family: int) -> str:
    """As the program conntrack tells it."""
    return scene.node.run("conntrack", "-L", "-f", "ipv4" if family == 4 else "ipv6")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_port_that_is_no_longer_listed_loses_its_flows_and_one_that_is_keeps_them(
    scene: Cluster, family: int
) -> None:
    flows = {}
    for port in (OPEN_PORT, CLOSED_PORT):
        for kind in ("tcp", "udp"):
            flows[kind, port] = scene.client.do("open", kind=kind, address=balanced("a", family), port=port)
            scene.client.do("exchange", number=flows[kind, port])
    egress = scene.a.do("open", kind="tcp", address=address("client", family), port=OPEN_PORT)
    scene.a.do("exchange", number=egress)
    opened = frozenset({OpenPort("tcp", OPEN_PORT)})
    assert change(scene, [*without("a"), mapping("a", family, opened=opened)]) >= 3
    assert scene.client.do("exchange", number=flows.pop(("tcp", OPEN_PORT))) == address("client", family)
    assert scene.a.do("exchange", number=egress) == balanced("a", family)
    left = tracked(scene, family)
    for number in flows.values():
        scene.client.do("send", number=number)
        _, port = scene.client.do("name", number=number)
        assert f"sport={port} " not in left
        scene.client.do("close", number=number)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("known", [True, False], ids=["known before", "unknown before"])
def test_an_address_that_moves_takes_its_flows_from_the_pod_both_ways(scene: Cluster, known: bool, family: int) -> None:
    incoming = scene.client.do("open", kind="udp", address=balanced("a", family), port=OPEN_PORT)
    outgoing = scene.a.do("open", kind="udp", address=address("client", family), port=OPEN_PORT)
    for place, number in ((scene.client, incoming), (scene.a, outgoing)):
        place.do("exchange", number=number)
    moved = [*without("a"), mapping("a", family, "c")]
    before, after = (make_ruleset(some, cluster=CLUSTER) for some in (mappings(), moved))
    scene.node.run("nft", "-f", "-", script=format_transaction(changes(before, after)))
    assert end(scene, before if known else None, after) >= 2
    heard = scene.c.do("listen_raw", family=family, protocol=17)
    scene.client.do("send", number=incoming)
    assert scene.c.do("hear", number=heard)[0] == address("client", family)
    assert scene.a.do("exchange", number=outgoing) != balanced("a", family)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_address_that_is_no_longer_ours_loses_the_flows_that_we_translated(scene: Cluster, family: int) -> None:
    number = scene.client.do("open", kind="tcp", address=balanced("a", family), port=OPEN_PORT)
    scene.client.do("exchange", number=number)
    assert f"src={address('a', family)} " in tracked(scene, family)
    assert change(scene, without("a")) >= 1
    _, port = scene.client.do("name", number=number)
    assert f"sport={port} " not in tracked(scene, family)
    scene.client.do("close", number=number)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_flow_that_went_past_an_address_before_it_was_ours_is_judged_anew(scene: Cluster, family: int) -> None:
    """Without rules the node sends it back to where it came from, and goes on so as long as the flow is used."""
    before, after = make_ruleset(without("a"), cluster=CLUSTER), make_ruleset(mappings(), cluster=CLUSTER)
    scene.node.run("nft", "-f", "-", script=format_transaction(changes(None, before)))
    number = scene.client.do("open", kind="udp", address=balanced("a", family), port=OPEN_PORT)
    scene.client.do("send", number=number)
    _, port = scene.client.do("name", number=number)
    wait_until(lambda: f"sport={port} " in tracked(scene, family))
    scene.node.run("nft", "-f", "-", script=format_transaction(changes(before, after)))
    assert end(scene, before, after) >= 1
    assert answered(scene, number) == address("client", family)
    scene.client.do("close", number=number)


@pytest.mark.parametrize("known", [True, False], ids=["known before", "unknown before"])
@pytest.mark.parametrize("family", FAMILIES)
def test_another_service_on_the_same_address_keeps_its_flows(scene: Cluster, known: bool, family: int) -> None:
    """As kube-proxy serves it, on a port that ours does not list."""
    ip, target = ("ip", address("c", 4)) if family == 4 else ("ip6", f"[{address('c', 6)}]")
    script = f"""table {ip} kube-proxy {{
        chain services {{
            type nat hook prerouting priority dstnat; policy accept;
            {ip} daddr {balanced("b", family)} tcp dport {CLOSED_PORT} dnat to {target}:{CLOSED_PORT}
        }}
    }}"""
    scene.node.run("nft", "-f", "-", script=script)
    number = scene.client.do("open", kind="tcp", address=balanced("b", family), port=CLOSED_PORT)
    scene.client.do("exchange", number=number)
    flow = flow_of(scene, "client", number, family)
    ports = frozenset({OpenPort("tcp", OPEN_PORT), OpenPort("udp", OPEN_PORT), OpenPort("udp", 9)})
    after = make_ruleset([*without("b"), mapping("b", family, opened=ports)], cluster=CLUSTER)
    end(scene, make_ruleset(mappings(), cluster=CLUSTER) if known else None, after)
    assert flow_of(scene, "client", number, family) == flow
    scene.node.run("nft", "delete", "table", ip, "kube-proxy")
    scene.client.do("close", number=number)


def answered(scene: Cluster, number: int) -> str:
    """An ICMP error of the first attempt may still reach the socket."""
    try:
        return str(scene.client.do("exchange", number=number))
    except Failed:
        return str(scene.client.do("exchange", number=number))


def flow_of(scene: Cluster, who: str, number: int, family: int) -> str:
    """The kernel's identity of a flow, or nothing if it has ended."""
    source, port = scene.place(who).do("name", number=number)
    listing = scene.node.run("conntrack", "-L", "-o", "id", "-f", "ipv4" if family == 4 else "ipv6")
    lines = [line for line in listing.splitlines() if f" src={source} " in line and f" sport={port} " in line]
    return "".join(word for line in lines for word in line.split() if word.startswith("id="))


@pytest.mark.parametrize("connections", [False, True], ids=["connections stay", "connections end"])
@pytest.mark.parametrize("family", FAMILIES)
def test_flows_of_a_pod_to_the_outside_end_when_it_gets_its_address_and_no_others(
    scene: Cluster, family: int, connections: bool
) -> None:
    before, after = make_ruleset(without("a", "a2"), cluster=CLUSTER), make_ruleset(mappings(), cluster=CLUSTER)
    scene.node.run("nft", "-f", "-", script=format_transaction(changes(None, before)))
    flows = [
        (who, kind, whom, scene.place(who).do("open", kind=kind, address=address(whom, family), port=OPEN_PORT))
        for who, whom in (("a", "client"), ("a", "c"), ("a", "far"), ("b", "client"), ("c", "client"))
        for kind in ("udp", "tcp")
    ]
    for who, _, _, number in flows:
        scene.place(who).do("exchange", number=number)
    assert scene.a.do("exchange", number=flows[0][3]) == address("node", family)
    known = {(who, number): flow_of(scene, who, number, family) for who, _, _, number in flows}
    assert all(known.values())
    scene.node.run("nft", "-f", "-", script=format_transaction(changes(before, after)))
    egress = NewEgress({address("a", family): balanced("a", family)}, NetworkSet(CLUSTER), connections=connections)
    end(scene, before, after, egress)
    ended = [
        (who, kind, whom)
        for who, kind, whom, number in flows
        if flow_of(scene, who, number, family) != known[who, number]
    ]
    assert ended == [("a", "udp", "client"), *([("a", "tcp", "client")] if connections else [])]
    assert scene.a.do("exchange", number=flows[0][3]) == balanced("a", family)
    if not connections:
        assert scene.a.do("exchange", number=flows[1][3]) == address("node", family)
    for who, _, _, number in flows[2:]:
        scene.place(who).do("exchange", number=number)
    for who, _, _, number in flows:
        scene.place(who).do("close", number=number)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("bind_any", [0, 1], ids=["bound here", "bound anywhere"])
def test_the_flows_of_a_node_do_not_end_if_a_pod_in_its_network_gets_an_address(
    scene: Cluster, bind_any: int, family: int
) -> None:
    """With ip_nonlocal_bind, which keepalived needs, a program may bind addresses of others too."""
    scene.node.sysctl(**{"ipv4/ip_nonlocal_bind": bind_any, "ipv6/ip_nonlocal_bind": bind_any})
    pod = scene.a.do("open", kind="udp", address=address("client", family), port=OPEN_PORT)
    scene.a.do("exchange", number=pod)
    known_pod = flow_of(scene, "a", pod, family)
    number = scene.node.do("open", kind="udp", address=address("client", family), port=OPEN_PORT)
    scene.node.do("exchange", number=number)
    known = flow_of(scene, "node", number, family)
    ruleset = make_ruleset(mappings(), cluster=CLUSTER)
    addresses = {address("node", family): balanced("a2", family), address("a", family): balanced("a2", family)}
    end(scene, ruleset, ruleset, NewEgress(addresses, NetworkSet()))
    assert flow_of(scene, "node", number, family) == known
    assert flow_of(scene, "a", pod, family) != known_pod
    scene.node.do("close", number=number)
    scene.a.do("close", number=pod)
    scene.node.sysctl(**{"ipv4/ip_nonlocal_bind": 0, "ipv6/ip_nonlocal_bind": 0})


def test_nothing_ends_where_nothing_changed(scene: Cluster) -> None:
    numbers = [
        scene.client.do("open", kind="tcp", address=balanced(name, family), port=OPEN_PORT)
        for family in FAMILIES
        for name in ("a", "a2", "b")
    ]
    itself = scene.a.do("open", kind="tcp", address=balanced("a", 4), port=OPEN_PORT)
    ruleset = make_ruleset(mappings(), cluster=CLUSTER)
    end(scene, None, ruleset)  # what other tests have left
    assert end(scene, ruleset, ruleset) == 0
    for number in numbers:
        scene.client.do("exchange", number=number)
    assert scene.a.do("exchange", number=itself) == balanced("a", 4)


def test_flows_are_for_who_may_change_the_network_to_end(scene: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*, group: int | None = None) -> trio.socket.SocketType:  # noqa: ARG001
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("wholeip.kernel.conntrack.netfilter_socket", refused)
    ruleset = make_ruleset(mappings(), cluster=CLUSTER)
    with pytest.raises(NotPermitted):
        end(scene, None, ruleset)
