"""The ruleset in real kernels: a client, two nodes and four pods, with real sockets. Names: `scene/cluster.py`."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address, ip_network
from typing import Final

import pytest

from proxy.header.v2 import crc32c
from tests.kit.networks import root
from tests.kit.rows import failing
from tests.kit.wholeip_objects import READY, WHOLE, api_service, endpoint_slice, node, service
from tests.wholeip.scene.cluster import (
    CLOSED_PORT,
    CLUSTER,
    FAMILIES,
    NETWORK_PLUGIN,
    OPEN_PORT,
    Cluster,
    address,
    balanced,
    cluster,
    dropped,
    install,
    mapping,
    mappings,
    wait_until,
)
from tests.wholeip.scene.place import Failed, Place
from wholeip.mappings.cluster_state import ClusterState
from wholeip.mappings.mapping import Mapping, OpenPort
from wholeip.mappings.plan import Plan
from wholeip.ruleset.ruleset import changes, format_ruleset, format_transaction, make_ruleset

__all__ = ["root"]
pytestmark = pytest.mark.peer("nft", "ip", "nsenter", "unshare")

WAYS = [
    # who asks, whom, by which address; as whom the other side sees it
    pytest.param("client", "a", "balanced", "own", id="client to a whole address keeps its own"),
    pytest.param("client", "a2", "balanced", "own", id="client to the second address of a pod"),
    pytest.param("client", "b", "balanced", "own", id="client to a listed port"),
    pytest.param("client", "far", "balanced", "own", id="client to a whole address on the other node"),
    pytest.param("node", "a", "balanced", "own", id="node to a whole address"),
    pytest.param("node", "b", "balanced", "own", id="node to a listed port"),
    pytest.param("node", "far", "balanced", "own", id="node to an address of a pod on the other node"),
    pytest.param("far_node", "a", "balanced", "own", id="other node to a whole address"),
    pytest.param("far_node", "b", "balanced", "own", id="other node to a listed port"),
    pytest.param("c", "a", "balanced", "own", id="pod without an address to a whole address"),
    pytest.param("c", "b", "balanced", "own", id="pod without an address to a listed port"),
    pytest.param("c", "far", "balanced", "own", id="pod without an address to an address on the other node"),
    pytest.param("a", "b", "balanced", "own", id="pod with an address to another's"),
    pytest.param("b", "a", "balanced", "own", id="filtered pod to a whole address"),
    pytest.param("a", "far", "balanced", "own", id="pod with an address to one on the other node"),
    pytest.param("far", "a", "balanced", "own", id="pod on the other node to a whole address"),
    pytest.param("far", "b", "balanced", "own", id="pod on the other node to a listed port"),
    pytest.param("a", "a", "balanced", "balanced", id="pod to its own address"),
    pytest.param("b", "b", "balanced", "balanced", id="filtered pod to its own address"),
    pytest.param("far", "far", "balanced", "balanced", id="pod on the other node to its own address"),
    pytest.param("node", "a", "own", "own", id="probe of a node to its pod"),
    pytest.param("node", "b", "own", "own", id="probe of a node to its filtered pod"),
    pytest.param("far_node", "a", "own", "own", id="other node to a pod"),
    pytest.param("c", "a", "own", "own", id="pod without an address to the pod of one"),
    pytest.param("c", "b", "own", "own", id="pod without an address to the filtered pod"),
    pytest.param("a", "c", "own", "own", id="pod with an address to one without"),
    pytest.param("a", "b", "own", "own", id="pod with an address to the pod of another"),
    pytest.param("far", "a", "own", "own", id="pod on the other node to a pod"),
    pytest.param("a", "far", "own", "own", id="pod to a pod on the other node"),
    pytest.param("a", "node", "own", "own", id="pod to its node"),
    pytest.param("a", "far_node", "own", "own", id="pod to the other node"),
    pytest.param("a", "client", "own", "balanced", id="egress of a whole address"),
    pytest.param("b", "client", "own", "balanced", id="egress of a filtered address"),
    pytest.param("far", "client", "own", "balanced", id="egress on the other node"),
    pytest.param("c", "client", "own", "node", id="egress of a pod without an address has its node's"),
]

NODE_PODS = {4: "10.244.0.0/16", 6: "fd00:244::/64"}
FAR = {family: ip_network(address("far", family)) for family in FAMILIES}
ECHO = {4: (1, "08"), 6: (58, "80")}
"""Protocol, and how an echo request begins (RFC 792, RFC 4443)."""
RAW = {
    "ping": ((1, "0800f7fd00010001"), (58, "8000000000010001")),
    "protocol": ((253, "5a"), (253, "5a")),
}
"""Protocol and payload, of IPv4 and IPv6; 253 is for experiments (RFC 3692)."""
STRICT_IPV6 = """
table ip6 strict {
    chain prerouting {
        type filter hook prerouting priority mangle + 10; policy accept;
        icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept
        fib saddr . iif oif missing drop
    }
}
"""


@pytest.fixture(scope="module")
def made(root: None) -> Iterator[Cluster]:  # noqa: ARG001  # skips who is not root
    with cluster() as made:
        install(made)
        yield made


@pytest.fixture
def changing(made: Cluster) -> Iterator[Cluster]:
    """For a test that leaves other rules behind."""
    yield made
    install(made)


def to(name: str, by: str, family: int) -> str:
    return balanced(name, family) if by == "balanced" else address(name, family)


def seen(name: str, as_whom: str, family: int) -> str:
    return address("node", family) if as_whom == "node" else to(name, as_whom, family)


def transact(node: Place, before: list[Mapping], after: list[Mapping]) -> None:
    """Change the kernel's table by element."""
    rulesets = (make_ruleset(before, cluster=CLUSTER), make_ruleset(after, cluster=CLUSTER))
    transaction = changes(*rulesets)
    assert transaction.whole is None
    node.run("nft", "-f", "-", script=format_transaction(transaction))


def hear(place: Place, number: int, *, starts: str, within: str = "") -> list[str]:
    """The next packet that starts so and has this in it; others of its protocol come to the same socket."""
    while True:
        source, payload = place.do("hear", number=number)
        if payload.startswith(starts) and within in payload:
            return [source, payload]


def attempt(place: Place, what: str, target: str) -> int | None:
    """Begin what is not going to arrive."""
    with contextlib.suppress(Failed):  # the node itself gets it at once
        if what in RAW:
            protocol, payload = RAW[what][":" in target]
            place.do("send_raw", address=target, protocol=protocol, payload=payload)
            return None
        number = int(place.do("open", kind=what, address=target, port=CLOSED_PORT, wait=False))
        if what == "udp":
            place.do("send", number=number)
        return number
    return None


@contextmanager
def reverse_path_filter(node: Place, value: int) -> Iterator[None]:
    """On every interface: the kernel takes the higher of `all` and the interface's own."""
    names = ("all", "uplink", "pod_a", "pod_b", "pod_c")
    before = {name: node.run("cat", f"/proc/sys/net/ipv4/conf/{name}/rp_filter").strip() for name in names}
    node.sysctl(**{f"ipv4/conf/{name}/rp_filter": value for name in names})
    if value == 1:
        node.run("nft", "-f", "-", script=STRICT_IPV6)
    yield
    node.sysctl(**{f"ipv4/conf/{name}/rp_filter": int(before[name]) for name in names})
    if value == 1:
        node.run("nft", "delete", "table", "ip6", "strict")


def sctp_init(source: int, target: int) -> str:
    """An INIT (RFC 9260 section 3.3.2) with its checksum, which connection tracking looks at."""
    chunk = struct.pack("!BBHIIHHI", 1, 0, 20, 7, 65535, 1, 1, 1)
    header = struct.pack("!HHI", source, target, 0)
    return (header + struct.pack("<I", crc32c(header + bytes(4) + chunk)) + chunk).hex()


def udp_packet(source: str, target: str, source_port: int, target_port: int) -> str:
    """The beginning of one that was sent, as an ICMP error quotes it."""
    addresses = ip_address(source).packed + ip_address(target).packed
    datagram = struct.pack("!HHHH", source_port, target_port, 1400, 0)
    if ":" in source:
        return (struct.pack("!IHBB", 6 << 28, 1400, 17, 64) + addresses + datagram).hex()
    header = struct.pack("!BBHHHBBH", 0x45, 0, 1420, 1, 0x4000, 64, 17, 0) + addresses
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return (header[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + header[12:] + datagram).hex()


def source(packet: str) -> str:
    """Whom a captured packet says that it is from, or nothing where it is no IP."""
    octets = bytes.fromhex(packet)
    length, offset = {4: (4, 12), 6: (16, 8)}.get(octets[0] >> 4, (0, 0))
    return str(ip_address(octets[offset : offset + length])) if length else ""


def destination(packet: str) -> str:
    """Whom it is to."""
    octets = bytes.fromhex(packet)
    length, offset = {4: (4, 16), 6: (16, 24)}.get(octets[0] >> 4, (0, 0))
    return str(ip_address(octets[offset : offset + length])) if length else ""


def passed_to(target: str, place: Place, number: int) -> set[str]:
    """In which directions packets to an address passed; how many is left open, because TCP sends a lost one again."""
    return {way for way, packet in place.do("captured", number=number) if destination(packet) == target}


@pytest.mark.parametrize(("who", "whom", "by", "as_whom"), WAYS)
def test_traffic_arrives_and_is_seen_as(made: Cluster, who: str, whom: str, by: str, as_whom: str) -> None:
    def check(kind: str, family: int) -> None:
        answer = made.place(who).do("ask", kind=kind, address=to(whom, by, family), port=OPEN_PORT)
        assert answer == seen(who, as_whom, family)

    assert failing(check, ["tcp", "udp"], FAMILIES) == []


@pytest.mark.parametrize(("who", "whom", "by", "as_whom"), [way for way in WAYS if way.values[1] != "b"])
def test_ping_is_answered_from_the_address_that_was_asked_and_seen_as(
    made: Cluster, who: str, whom: str, by: str, as_whom: str
) -> None:
    target = made.place("a" if whom == "a2" else whom)
    for family in FAMILIES:
        heard = target.do("listen_raw", family=family, protocol=ECHO[family][0])
        asked = to(whom, by, family)
        assert made.place(who).do("ping", address=asked) == asked
        assert hear(target, heard, starts=ECHO[family][1])[0] == seen(who, as_whom, family)
        target.do("close", number=heard)


@pytest.mark.parametrize("rp_filter", [0, 1, 2])
def test_every_way_works_with_reverse_path_filtering(made: Cluster, rp_filter: int) -> None:
    """IPv6 has no such setting; the rule that distributions use for it stands in where it is strict."""
    with reverse_path_filter(made.node, rp_filter):
        for way in WAYS:
            who, whom, by, as_whom = (str(value) for value in way.values)
            for family in FAMILIES:
                answer = made.place(who).do("ask", kind="tcp", address=to(whom, by, family), port=OPEN_PORT)
                assert answer == seen(who, as_whom, family), way.id


@pytest.mark.parametrize("who", ["client", "far_node", "c", "a", "b"])
@pytest.mark.parametrize("what", ["tcp", "udp", "ping", "protocol"])
def test_what_a_filtered_address_does_not_list_is_dropped_where_it_enters(made: Cluster, what: str, who: str) -> None:
    node = made.place("far_node" if who == "far_node" else "node")

    def check(family: int) -> None:
        before, uplink = dropped(node), node.do("capture", interface="uplink")
        number = attempt(made.place(who), what, balanced("b", family))
        wait_until(lambda: dropped(node) > before)
        if number is not None:
            assert what == "udp" or not made.place(who).do("is_connected", number=number)
            made.place(who).do("close", number=number)
        passed = passed_to(balanced("b", family), node, uplink)
        assert passed == ({"in"} if who == "client" else set()), "it went out again"
        node.do("close", number=uplink)

    assert failing(check, FAMILIES) == []


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("what", ["tcp", "udp"])
def test_what_a_filtered_address_does_not_list_is_refused_to_its_node(made: Cluster, what: str, family: int) -> None:
    before = dropped(made.node)
    number = attempt(made.node, what, balanced("b", family))
    wait_until(lambda: dropped(made.node) > before)
    if number is not None:
        made.node.do("close", number=number)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_filter_holds_for_the_address_alone_and_not_for_the_pod(made: Cluster, family: int) -> None:
    for who in ("node", "far_node", "c", "a", "far"):
        for kind in ("tcp", "udp"):
            place = made.place(who)
            assert place.do("ask", kind=kind, address=address("b", family), port=CLOSED_PORT) == address(who, family)
        assert made.place(who).do("ping", address=address("b", family)) == address("b", family)


@pytest.mark.parametrize("family", FAMILIES)
def test_ping_comes_in_to_a_filtered_address_where_it_is_allowed(changing: Cluster, family: int) -> None:
    opened = frozenset({OpenPort("tcp", OPEN_PORT)})
    without, allowed = (mapping("b", family, opened=opened, icmp=icmp) for icmp in (False, True))
    others = [one for one in mappings() if one.service != without.service]
    transact(changing.node, mappings(), [*others, without])
    transact(changing.node, [*others, without], [*others, allowed])
    for who in ("client", "node", "c", "b"):
        assert changing.place(who).do("ping", address=balanced("b", family)) == balanced("b", family)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("protocol", [132, 253], ids=["SCTP", "a protocol that nothing knows"])
def test_a_whole_address_has_every_protocol_both_ways(made: Cluster, protocol: int, family: int) -> None:
    packet = sctp_init(OPEN_PORT + family, CLOSED_PORT) if protocol == 132 else b"anything".hex()
    for sender, receiver, sent_to, from_whom in (
        (made.client, made.a, balanced("a", family), address("client", family)),
        (made.b, made.client, address("client", family), balanced("b", family)),
    ):
        heard = receiver.do("listen_raw", family=family, protocol=protocol)
        sender.do("send_raw", address=sent_to, protocol=protocol, payload=packet)
        assert receiver.do("hear", number=heard) == [from_whom, packet]
        receiver.do("close", number=heard)


@pytest.mark.parametrize("family", FAMILIES)
def test_sctp_comes_in_to_a_filtered_address_by_its_port(made: Cluster, family: int) -> None:
    heard, before = made.b.do("listen_raw", family=family, protocol=132), dropped(made.node)
    closed, opened = (sctp_init(4000 + family, port) for port in (CLOSED_PORT, OPEN_PORT))
    for packet in (closed, opened):
        made.client.do("send_raw", address=balanced("b", family), protocol=132, payload=packet)
    assert made.b.do("hear", number=heard) == [address("client", family), opened]
    assert dropped(made.node) == before + 1
    made.b.do("close", number=heard)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["a", "b"])
def test_a_datagram_in_fragments_comes_in_whole_and_goes_out_so(made: Cluster, name: str, family: int) -> None:
    for who, target, as_whom in (
        ("client", balanced(name, family), address("client", family)),
        (name, address("client", family), balanced(name, family)),
    ):
        number = made.place(who).do("open", kind="udp", address=target, port=OPEN_PORT)
        assert made.place(who).do("exchange", number=number, size=5000) == as_whom
        made.place(who).do("close", number=number)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["a", "b"])
def test_path_mtu_discovery_reaches_the_pod_also_where_ping_does_not(made: Cluster, name: str, family: int) -> None:
    pod = made.place(name)
    number = pod.do("open", kind="udp", address=address("client", family), port=OPEN_PORT)
    pod.do("exchange", number=number)
    _, port = pod.do("name", number=number)
    too_big = udp_packet(balanced(name, family), address("client", family), port, OPEN_PORT)
    kind, code = (3, 4) if family == 4 else (2, 0)
    made.client.do(
        "icmp_error", address=balanced(name, family), kind=kind, code=code, rest=1300 + family, embedded=too_big
    )
    wait_until(lambda: pod.do("mtu", number=number) == 1300 + family)
    pod.do("close", number=number)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["a", "b"])
def test_an_icmp_error_of_no_flow_is_dropped(made: Cluster, name: str, family: int) -> None:
    before = dropped(made.node)
    unknown = udp_packet(balanced(name, family), address("client", family), 1, 1)
    kind, code = (3, 4) if family == 4 else (2, 0)
    made.client.do("icmp_error", address=balanced(name, family), kind=kind, code=code, rest=1300, embedded=unknown)
    wait_until(lambda: dropped(made.node) == before + 1)


def test_neighbour_discovery_for_an_address_is_left_to_who_announces_it(made: Cluster) -> None:
    """Sent to the address itself, as a router does that knows the neighbour already (RFC 4861 section 7.3.3)."""
    mine, target = balanced("b", 6), ip_address(balanced("b", 6)).packed.hex()
    made.node.ip(f"addr add {mine}/128 dev uplink nodad\n")
    try:
        # The kernel has it as its own a moment after it took it.
        wait_until(lambda: f"local {mine} " in made.node.run("ip", "-6", "route", "show", "table", "local"))
        advertised = made.client.do("listen_raw", family=6, protocol=58)
        made.client.do("send_raw", address=mine, protocol=58, payload=f"8700000000000000{target}", hops=255)
        assert hear(made.client, advertised, starts="88", within=target)[0] == mine
        assert made.client.do("ask", kind="tcp", address=mine, port=OPEN_PORT) == address("client", 6)
        made.client.do("close", number=advertised)
    finally:
        made.node.ip(f"addr del {mine}/128 dev uplink\n")


def test_neighbour_discovery_for_an_address_that_the_node_has_not_goes_nowhere(made: Cluster) -> None:
    before, uplink = dropped(made.node), made.node.do("capture", interface="uplink")
    solicitation = "8700000000000000" + ip_address(balanced("b", 6)).packed.hex()
    made.client.do("send_raw", address=balanced("b", 6), protocol=58, payload=solicitation, hops=255)
    wait_until(lambda: dropped(made.node) == before + 1)
    assert passed_to(balanced("b", 6), made.node, uplink) == {"in"}
    made.node.do("close", number=uplink)


@pytest.mark.parametrize("family", FAMILIES)
def test_replies_and_icmp_errors_to_a_pod_of_one_node_pass_through_another(changing: Cluster, family: int) -> None:
    """If the other node's pods are not known to be in the cluster, pod a reaches them with its address."""
    less = [network for network in CLUSTER if not network.overlaps(FAR[network.version])]
    ruleset = make_ruleset(mappings(), cluster=less)
    changing.node.run("nft", "-f", "-", script=format_ruleset(ruleset))
    answer = changing.a.do("ask", kind="tcp", address=address("far", family), port=OPEN_PORT)
    assert answer == balanced("a", family)
    number = changing.a.do("open", kind="udp", address=address("far", family), port=1)
    with pytest.raises(Failed, match="refused"):
        changing.a.do("exchange", number=number)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_packet_of_no_flow_does_not_leave_with_the_address_of_the_pod(made: Cluster, family: int) -> None:
    near, before = made.client.do("capture", interface="near"), dropped(made.node, "untracked")
    no_segment = struct.pack("!HHIIBBHHH", 1, 1, 0, 0, 0x50, 0, 0, 0, 0).hex()  # TCP without a flag or a checksum
    made.a.do("send_raw", address=address("client", family), protocol=6, payload=no_segment)
    wait_until(lambda: dropped(made.node, "untracked") == before + 1)
    made.a.do("ask", kind="tcp", address=address("client", family), port=OPEN_PORT)
    sources = {source(packet) for _, packet in made.client.do("captured", number=near)}
    assert balanced("a", family) in sources
    assert address("a", family) not in sources
    made.client.do("close", number=near)


@pytest.mark.parametrize("change", ["by element", "as a whole", "removed and made again"])
@pytest.mark.parametrize("kind", ["tcp", "udp"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_flow_outlives_a_change_of_the_rules(changing: Cluster, change: str, kind: str, family: int) -> None:
    inwards = changing.client.do("open", kind=kind, address=balanced("a", family), port=OPEN_PORT)
    outwards = changing.b.do("open", kind=kind, address=address("client", family), port=OPEN_PORT)
    rules = mappings()
    for _ in range(3):
        assert changing.client.do("exchange", number=inwards) == address("client", family)
        assert changing.b.do("exchange", number=outwards) == balanced("b", family)
        if change == "by element":
            transact(changing.node, rules, rules := [] if rules else mappings())
        elif change == "as a whole":
            install(changing)
        else:
            changing.node.run("nft", "flush", "ruleset")
            install(changing)
    changing.client.do("close", number=inwards)
    changing.b.do("close", number=outwards)
    if change == "removed and made again":
        changing.node.run("nft", "-f", "-", script=NETWORK_PLUGIN)


@pytest.mark.parametrize("family", FAMILIES)
def test_two_pods_swap_their_addresses_in_one_transaction(changing: Cluster, family: int) -> None:
    before = [mapping("a", family), mapping("b", family)]
    after = [mapping("a", family, "b"), mapping("b", family, "a")]
    rest = [one for one in mappings() if one.address.version != family]
    transact(changing.node, mappings(), [*rest, *before])
    transact(changing.node, [*rest, *before], [*rest, *after])
    for pod, name in (("b", "a"), ("a", "b")):
        heard = changing.place(pod).do("listen_raw", family=family, protocol=254)
        changing.client.do("send_raw", address=balanced(name, family), protocol=254, payload="5a")
        assert changing.place(pod).do("hear", number=heard) == [address("client", family), "5a"]
        answer = changing.place(pod).do("ask", kind="tcp", address=address("client", family), port=OPEN_PORT)
        assert answer == balanced(name, family)
        changing.place(pod).do("close", number=heard)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_listed_port_goes_before_the_whole_address_and_two_pods_share_one_by_port(
    changing: Cluster, family: int
) -> None:
    """Told apart by what is open: pod c serves a port that no other does."""
    changing.c.do("serve", port=9000 + family)
    shared = [
        mapping("a", family),
        mapping("a", family, "c", opened=frozenset({OpenPort("tcp", 9000 + family)}), egress=False),
    ]
    rest = [one for one in mappings() if one.address.version != family]
    transact(changing.node, mappings(), [*rest, *shared])
    for port in (9000 + family, OPEN_PORT):
        answer = changing.client.do("ask", kind="tcp", address=balanced("a", family), port=port)
        assert answer == address("client", family)


@pytest.mark.parametrize("family", FAMILIES)
def test_from_outside_by_the_wrong_node_a_pod_sees_that_node(changing: Cluster, family: int) -> None:
    """As with externalTrafficPolicy Cluster: the reply of a pod on another node has to find its way back."""
    width = 32 if family == 4 else 128
    route = f"{balanced('far', family)}/{width} via"
    changing.client.ip(f"route replace {route} {address('node', family)}\n")
    try:
        answer = changing.client.do("ask", kind="tcp", address=balanced("far", family), port=OPEN_PORT)
        assert answer == address("node", family)
    finally:
        changing.client.ip(f"route replace {route} {address('far_node', family)}\n")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pod_in_the_network_of_its_node_leaves_the_node_its_address(changing: Cluster, family: int) -> None:
    whole_node = mapping("a2", family, "node")
    transact(changing.node, mappings(), [one for one in mappings() if one.service != whole_node.service] + [whole_node])
    answer = changing.client.do("ask", kind="tcp", address=balanced("a2", family), port=OPEN_PORT)
    assert answer == address("client", family)
    answer = changing.node.do("ask", kind="tcp", address=address("client", family), port=OPEN_PORT)
    assert answer == address("node", family)


API_SERVER: Final = {4: "10.96.0.1", 6: "fd00:96::1"}
"""Its cluster IP, which the node's proxy translates to pod c."""


def planned_by_tenants(family: int) -> Plan:
    """What a node plans if one tenant's status has the API server's address, and another's slice a host outside."""
    state = ClusterState()
    state.change_nodes({"node": node("node", address("node", family), pods=[NODE_PODS[family]])})
    state.change_api_services({"default/kubernetes": api_service(API_SERVER[family])})
    wanted = {
        "taken": (API_SERVER[family], address("b", family)),
        "foreign": (balanced("a2", family), address("client", family)),
        "neighbour": (balanced("a", family), address("a", family)),
    }
    for name, (given, pod) in wanted.items():
        state.change_services({f"default/{name}": service(name, given, annotations=WHOLE)})
        slices = endpoint_slice(name, (pod, READY), family=f"IPv{family}")
        state.change_slices({f"default/{name}": slices})
    return state.plan()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_status_with_the_address_of_the_api_server_moves_no_packet_and_no_neighbour(
    changing: Cluster, family: int
) -> None:
    ip, own = "ip" if family == 4 else "ip6", address("c", family)
    proxy = f"""table {ip} services {{
        chain prerouting {{
            type nat hook prerouting priority dstnat; policy accept;
            {ip} daddr {API_SERVER[family]} dnat to {own}
        }}
    }}"""
    changing.node.run("nft", "-f", "-", script=proxy)
    port = OPEN_PORT + 100 + family
    changing.c.do("serve", port=port)
    ruleset = make_ruleset(planned_by_tenants(family).mappings, cluster=CLUSTER)
    changing.node.run("nft", "-f", "-", script=format_ruleset(ruleset))
    # Pod b, which the tenant's Service has, does not listen there.
    for who, seen_as in (("a", address("a", family)), ("b", address("b", family))):
        asked = changing.place(who).do("ask", kind="tcp", address=API_SERVER[family], port=port)
        assert asked == seen_as
    neighbour = changing.client.do("ask", kind="tcp", address=balanced("a", family), port=OPEN_PORT)
    assert neighbour == address("client", family)
    left_as = changing.a.do("ask", kind="tcp", address=address("client", family), port=OPEN_PORT)
    assert left_as == balanced("a", family)
    changing.node.run("nft", "delete", "table", ip, "services")


def test_our_rules_go_before_those_of_a_proxy_for_services(changing: Cluster) -> None:
    """At the priorities that kube-proxy's chains have."""
    changing.node.run(
        "nft",
        "-f",
        "-",
        script=f"""table ip kube-proxy {{
            chain nat-prerouting {{
                type nat hook prerouting priority dstnat; policy accept;
                ip daddr {balanced("a", 4)} dnat to {address("c", 4)}
            }}
            chain nat-postrouting {{
                type nat hook postrouting priority srcnat; policy accept;
                ip saddr {address("a", 4)} masquerade
            }}
        }}""",
    )
    # A protocol that no other test has used: its flow would go on as it was.
    heard = changing.a.do("listen_raw", family=4, protocol=251)
    changing.client.do("send_raw", address=balanced("a", 4), protocol=251, payload="5a")
    assert changing.a.do("hear", number=heard) == [address("client", 4), "5a"]
    asked = changing.a.do("ask", kind="tcp", address=address("client", 4), port=OPEN_PORT)
    assert asked == balanced("a", 4)
    changing.a.do("close", number=heard)
    changing.node.run("nft", "delete", "table", "ip", "kube-proxy")


@pytest.mark.parametrize("family", FAMILIES)
def test_another_service_on_the_same_address_sees_its_clients(changing: Cluster, family: int) -> None:
    """As kube-proxy serves it with externalTrafficPolicy Local, on a port that ours does not list."""
    ip, target = ("ip", address("c", 4)) if family == 4 else ("ip6", f"[{address('c', 6)}]")
    script = f"""table {ip} kube-proxy {{
        chain services {{
            type nat hook prerouting priority dstnat; policy accept;
            {ip} daddr {balanced("b", family)} tcp dport {CLOSED_PORT} dnat to {target}
        }}
    }}"""
    changing.node.run("nft", "-f", "-", script=script)
    for port in (CLOSED_PORT, OPEN_PORT):
        seen_as = changing.client.do("ask", kind="tcp", address=balanced("b", family), port=port)
        assert seen_as == address("client", family)
    changing.node.run("nft", "delete", "table", ip, "kube-proxy")
