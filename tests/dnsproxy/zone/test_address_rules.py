"""The rules about addresses: which load balancers have one, and the names of their triggers."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.dns.names import format_wire
from dnsproxy.primary.mirror import prepare_rows, put_rows
from dnsproxy.replace.balancers import Balancers, Leads, Network
from dnsproxy.zone.address_rules import make_address_rules, trigger_node
from dnsproxy.zone.content import ZoneContent
from dnsproxy.zone.policy import is_trigger
from dnsproxy.zone.reading import POLICY_TYPES, TransferReader
from dnsproxy.zone.transfer import ZoneVersion, messages, whole
from dnsproxy.zone.zone_records import fits, split_row
from tests.dnsproxy.zone.test_policy import ZONE, Policies, look_up, result_of
from tests.kit.messages import AXFR, parse_host

TARGET: Final = ("10.96.7.7", "fd00::7")
BALANCER: Final = "203.0.113.10"


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        pytest.param("203.0.113.10", "32.10.113.0.203", id="an address"),
        pytest.param("192.0.2.0/24", "24.0.2.0.192", id="a network"),
        pytest.param("128.0.0.0/1", "1.0.0.0.128", id="the shortest prefix"),
        pytest.param("2001:db8::10", "128.10.zz.db8.2001", id="IPv6"),
        pytest.param("2001:db8::", "128.zz.db8.2001", id="zeros at the end"),
        pytest.param("::1", "128.1.zz", id="zeros at the start"),
        pytest.param("::/1", "1.zz", id="nothing but zeros"),
        pytest.param("2001:db8::/32", "32.zz.db8.2001", id="a network of IPv6"),
        pytest.param("1:2:3:4:5:6:7:8", "128.8.7.6.5.4.3.2.1", id="no zeros"),
        pytest.param("1:0:3:4:5:6:7:8", "128.8.7.6.5.4.3.0.1", id="a single zero is written"),
        pytest.param("1:0:0:4:0:0:0:8", "128.8.zz.4.0.0.1", id="the longest run"),
        pytest.param("1:0:0:4:5:0:0:8", "128.8.0.0.5.4.zz.1", id="the first of two runs"),
        pytest.param("::ffff:0:0:1", "128.1.0.0.ffff.zz", id="an IPv6 address that only looks mapped"),
        pytest.param("0.0.0.0/0", None, id="every IPv4 address"),
        pytest.param("::/0", None, id="every IPv6 address"),
        pytest.param("::ffff:203.0.113.10", None, id="an IPv4 address as an IPv6 one"),
        pytest.param("::ffff:203.0.113.0/120", None, id="an IPv4 network as an IPv6 one"),
        pytest.param("::ffff:0:0/96", None, id="all of IPv4 as an IPv6 network"),
    ],
)
def test_a_trigger_is_named_as_bind_names_it(network: str, expected: str | None) -> None:
    node = trigger_node(ip_network(network))
    assert (None if node is None else format_wire(node)) == (f"{expected}.rpz-ip." if expected else None)


def read_trigger(node: bytes) -> Network:
    """The network of a trigger, read label by label."""
    prefix, *labels, last = format_wire(node).removesuffix(".").split(".")
    assert last == "rpz-ip"
    labels.reverse()
    if len(labels) == 4 and "zz" not in labels:
        return IPv4Network(f"{'.'.join(labels)}/{prefix}")
    missing = 9 - len(labels) if "zz" in labels else 0
    groups = [group for label in labels for group in (["0"] * missing if label == "zz" else [label])]
    assert len(groups) == 8
    assert missing != 1, "a single zero has no short form"
    return IPv6Network(f"{':'.join(groups)}/{prefix}")


GROUPS: Final = st.lists(st.sampled_from([0, 0, 0, 1, 0xFFFF, 0xDB8]), min_size=8, max_size=8)


@given(GROUPS, st.integers(1, 128))
def test_every_trigger_of_ipv6_says_its_network_and_fits_in_every_zone(groups: list[int], prefix: int) -> None:
    value = int.from_bytes(b"".join(group.to_bytes(2, "big") for group in groups), "big")
    network = IPv6Network((IPv6Address(value), prefix), strict=False)
    node = trigger_node(network)
    if node is None:
        assert network.subnet_of(IPv6Network("::ffff:0:0/96"))
        return
    assert read_trigger(node) == network
    assert is_trigger(node)
    # As long as the hashed owner of a row in the table zone, whose room table_zone() demands of every zone.
    assert fits(node[:-1], bytes(255 - 51))


@given(st.integers(0, 2**32 - 1), st.integers(1, 32))
def test_every_trigger_of_ipv4_says_its_network(value: int, prefix: int) -> None:
    network = IPv4Network((value, prefix), strict=False)
    node = trigger_node(network)
    assert node is not None
    assert read_trigger(node) == network


def triggers_of(balancers: Balancers, *, conditional: bool = True) -> set[str]:
    rows = make_address_rules(balancers, conditional=conditional, ttl=5).rows
    return {str(read_trigger(node)).removesuffix("/32").removesuffix("/128") for node in rows}


KINDS: Final = {
    "replaced": (Balancers({BALANCER: TARGET}), {BALANCER}, (0, 0)),
    "replaced, IPv6": (Balancers({"2001:DB8::10": TARGET}), {"2001:db8::10"}, (0, 0)),
    "known, with a target": (Balancers({}, {BALANCER: TARGET}), {BALANCER}, (0, 0)),
    "a known network with a target": (Balancers({}, {"192.0.2.0/24": TARGET}), {"192.0.2.0/24"}, (0, 0)),
    "known, with the row's own target": (Balancers({}, {BALANCER: ()}), set(), (0, 1)),
    "a known network": (Balancers({}, {"192.0.2.0/24": ()}), set(), (0, 1)),
    "known without, and replaced": (Balancers({BALANCER: TARGET}, {BALANCER: ()}), {BALANCER}, (0, 0)),
    "replaced by nothing": (Balancers({BALANCER: ()}), set(), (0, 1)),
    "a hostname": (Balancers({"lb.example.net": TARGET}), set(), (1, 0)),
    "a hostname and an address found for it": (
        Balancers({BALANCER: TARGET, "lb.example.net": TARGET}),
        {BALANCER},
        (1, 0),
    ),
    "a target that is no address": (Balancers({BALANCER: ("nowhere",)}), set(), (0, 1)),
    "a target of which one is no address": (Balancers({BALANCER: ("10.96.7.7", "")}), set(), (0, 1)),
    "a network for a target": (Balancers({}, {BALANCER: ("10.96.7.0/24",)}), set(), (0, 1)),
    "a known hostname": (Balancers({}, {"lb.example.net": ()}), set(), (1, 0)),
    "everything": (Balancers({"0.0.0.0/0": TARGET}), set(), (0, 1)),
    "a mapped address": (Balancers({"::ffff:203.0.113.10": TARGET}), set(), (0, 1)),
    "a network with bits of a host": (Balancers({"192.0.2.1/24": TARGET}), set(), (0, 0)),
    "an address with a zone": (Balancers({"fe80::1%eth0": TARGET}), {"fe80::1"}, (0, 0)),
    "no address and no hostname": (Balancers({"": TARGET, "a..b": TARGET, "-": TARGET}, {" ": ()}), set(), (0, 0)),
}


@pytest.mark.parametrize(("balancers", "expected", "left_out"), KINDS.values(), ids=KINDS)
def test_an_address_has_a_trigger_if_replies_for_any_name_may_be_replaced(
    balancers: Balancers, expected: set[str], left_out: tuple[int, int]
) -> None:
    assert triggers_of(balancers) == expected
    rules = make_address_rules(balancers, conditional=True, ttl=5)
    assert (rules.hostnames, rules.addresses) == left_out
    Leads(balancers)  # what has no trigger is no error there either


def test_what_is_known_has_no_trigger_and_is_not_counted_if_no_row_depends_on_public_dns() -> None:
    """Nothing is replaced here then, so resolvers must not either."""
    known = {"203.0.113.11": TARGET, "203.0.113.12": (), "lb.example.net": ()}
    rules = make_address_rules(Balancers({BALANCER: TARGET}, known), conditional=False, ttl=5)
    assert [str(read_trigger(node)) for node in rules.rows] == [f"{BALANCER}/32"]
    assert (rules.hostnames, rules.addresses) == (0, 0)


@pytest.mark.parametrize("target", [TARGET, ("10.96.7.7",), ("fd00::7",)])
def test_a_trigger_has_all_addresses_of_its_target_whatever_its_family(target: tuple[str, ...]) -> None:
    """A family without any is NODATA, and not the load balancer's own address."""
    rules = make_address_rules(Balancers({BALANCER: target, "2001:db8::10": target}), conditional=True, ttl=5)
    assert [len(list(split_row(row))) for row in rules.rows.values()] == [len(target)] * 2


def publish(policies: Policies, balancers: Balancers) -> int:
    policies.writer.lead(balancers)
    policies.publish()
    return policies.zones.serial


def test_a_change_of_load_balancers_alone_makes_a_version_with_that_difference() -> None:
    policies = Policies()
    policies.put(parse_host("app.example.org 192.0.2.1"))
    first = publish(policies, Balancers())
    assert publish(policies, Balancers({BALANCER: TARGET})) == first + 1
    assert publish(policies, Balancers({BALANCER: TARGET})) == first + 1
    assert look_up(policies.read(), "32.10.113.0.203.rpz-ip") == TARGET
    assert publish(policies, Balancers({"203.0.113.11": TARGET})) == first + 2
    assert sorted(map(format_wire, policies.records())) == ["32.11.113.0.203.rpz-ip.", "app.example.org."]
    difference = result_of(policies.zones.policy.difference(first + 1))
    assert difference is not None
    assert (sum(one.records for one in difference.deleted), sum(one.records for one in difference.added)) == (2, 2)
    assert publish(policies, Balancers()) == first + 3
    assert list(map(format_wire, policies.records())) == ["app.example.org."]


def test_the_first_row_that_depends_on_public_dns_brings_the_triggers_of_what_is_known() -> None:
    policies = Policies()
    host = parse_host("app.example.org 192.0.2.1")
    policies.put(host)
    publish(policies, Balancers({}, {BALANCER: TARGET}))
    assert list(map(format_wire, policies.records())) == ["app.example.org."]
    policies.put(replace(host, claimed=Claimed.VERIFIED))
    policies.publish()
    assert list(map(format_wire, policies.records())) == ["32.10.113.0.203.rpz-ip."]
    policies.put(host)
    policies.publish()
    assert list(map(format_wire, policies.records())) == ["app.example.org."]


@pytest.mark.parametrize("another", [False, True], ids=["of an empty content", "of one with other triggers"])
def test_another_primary_that_mirrors_the_zone_has_its_triggers(another: bool) -> None:
    policies = Policies()
    policies.put(parse_host("app.example.org 192.0.2.1"), parse_host("**.apps.example.org 192.0.2.2"))
    publish(policies, Balancers({BALANCER: TARGET, "2001:db8::10": TARGET}))
    policy = policies.zones.policy
    version = ZoneVersion(ZONE, policy.serial, ttl=5)
    reader = TransferReader(ZONE, known=None, types=POLICY_TYPES)
    for body in messages(version, whole(version, result_of(policy.pieces())), rtype=AXFR, reply=0x8400):
        for _ in reader.read(b"\0\0" + body):
            pass
    mirrored = ZoneContent()
    if another:
        rules = make_address_rules(Balancers({"203.0.113.99": TARGET}), conditional=True, ttl=5)
        for node, row in rules.rows.items():
            mirrored.put(node, row)
    rows = result_of(prepare_rows(mirrored, reader.transfer(), by_node=True))
    for _ in put_rows(mirrored, rows):
        pass
    found = {key: set(split_row(mirrored.get(key) or b"")) for key in mirrored.keys()}  # noqa: SIM118  # no mapping
    assert found == {key: set(split_row(row)) for key, row in policies.records().items()}
