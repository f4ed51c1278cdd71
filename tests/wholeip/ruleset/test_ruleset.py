"""Mappings become a ruleset, and changes turn one ruleset into another; static_rules.py too."""

from __future__ import annotations

import random
from dataclasses import replace
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.wholeip_kernel import after
from tests.wholeip.ruleset.rulesets import mappings, networks, rulesets
from wholeip.mappings.mapping import Mapping, OpenPort
from wholeip.ruleset.ruleset import (
    TABLE,
    BadMapping,
    Ruleset,
    Transaction,
    changes,
    format_ruleset,
    format_transaction,
    make_ruleset,
    ruleset_steps,
)
from wholeip.ruleset.static_rules import CHAINS, COLLECTIONS

TCP_80 = OpenPort("tcp", 80)


def mapping(
    address: str = "192.0.2.1", endpoint: str = "10.0.0.1", *opened: OpenPort, whole: bool = False, **options: Any
) -> Mapping:
    values = {"icmp": False, "egress": False, "here": False, **options}
    return Mapping(
        "default/vm", ip_address(address), ip_address(endpoint), None if whole else frozenset(opened), **values
    )


def elements(*some: Mapping, **options: Any) -> dict[str, dict[str, str]]:
    """Without what is always there, and without the pods of other nodes."""
    ruleset = make_ruleset(some, **options)
    return {
        name: dict(items)
        for name, items in ruleset.elements.items()
        if items and not name.startswith("elsewhere") and not (name.startswith("cluster") and "cluster" not in options)
    }


@pytest.mark.parametrize(
    ("some", "expected"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param(
            [mapping(whole=True)],
            {"addresses_v4": {"192.0.2.1": ""}, "whole_v4": {"192.0.2.1": "10.0.0.1"}},
            id="a whole address",
        ),
        pytest.param(
            [mapping("2001:db8::1", "fd00::1", whole=True)],
            {"addresses_v6": {"2001:db8::1": ""}, "whole_v6": {"2001:db8::1": "fd00::1"}},
            id="one of IPv6",
        ),
        pytest.param([mapping()], {"addresses_v4": {"192.0.2.1": ""}}, id="nothing is open"),
        pytest.param(
            [mapping("192.0.2.1", "10.0.0.1", TCP_80, OpenPort("udp", 53), OpenPort("sctp", 1))],
            {
                "addresses_v4": {"192.0.2.1": ""},
                "ports_v4": {
                    "192.0.2.1 . 6 . 80": "10.0.0.1",
                    "192.0.2.1 . 17 . 53": "10.0.0.1",
                    "192.0.2.1 . 132 . 1": "10.0.0.1",
                },
            },
            id="ports of each protocol",
        ),
        pytest.param(
            [mapping(icmp=True)],
            {"addresses_v4": {"192.0.2.1": ""}, "icmp_v4": {"192.0.2.1": "10.0.0.1"}},
            id="ping alone",
        ),
        pytest.param(
            [mapping(icmp=True, whole=True)],
            {"addresses_v4": {"192.0.2.1": ""}, "whole_v4": {"192.0.2.1": "10.0.0.1"}},
            id="everything has ping in it",
        ),
        pytest.param(
            [mapping(egress=True)],
            {"addresses_v4": {"192.0.2.1": ""}, "egress_v4": {"10.0.0.1": "192.0.2.1"}},
            id="the way out",
        ),
        pytest.param(
            [mapping("192.0.2.1", here=True), mapping("192.0.2.2", here=True, egress=True)],
            {
                "addresses_v4": {"192.0.2.1": "", "192.0.2.2": ""},
                "egress_v4": {"10.0.0.1": "192.0.2.2"},
                "here_v4": {"10.0.0.1": ""},
                "itself_v4": {"10.0.0.1 . 10.0.0.1": "192.0.2.2"},
            },
            id="a pod meets itself with the address that it leaves with",
        ),
        pytest.param(
            [mapping("192.0.2.10", here=True), mapping("192.0.2.9", here=True)],
            {
                "addresses_v4": {"192.0.2.9": "", "192.0.2.10": ""},
                "here_v4": {"10.0.0.1": ""},
                "itself_v4": {"10.0.0.1 . 10.0.0.1": "192.0.2.9"},
            },
            id="or else with its lowest",
        ),
        pytest.param(
            [mapping("192.0.2.1", "10.0.0.1", TCP_80), mapping("192.0.2.1", "10.0.0.2", OpenPort("tcp", 81))],
            {
                "addresses_v4": {"192.0.2.1": ""},
                "ports_v4": {"192.0.2.1 . 6 . 80": "10.0.0.1", "192.0.2.1 . 6 . 81": "10.0.0.2"},
            },
            id="two pods share an address by port",
        ),
        pytest.param(
            [mapping("192.0.2.1", "10.0.0.1", TCP_80), mapping("192.0.2.1", "10.0.0.2", whole=True)],
            {
                "addresses_v4": {"192.0.2.1": ""},
                "ports_v4": {"192.0.2.1 . 6 . 80": "10.0.0.1"},
                "whole_v4": {"192.0.2.1": "10.0.0.2"},
            },
            id="a port of a whole address",
        ),
    ],
)
def test_mappings_become_elements(some: list[Mapping], expected: dict[str, dict[str, str]]) -> None:
    assert elements(*some) == expected


def test_a_pod_is_elsewhere_if_no_mapping_says_that_it_runs_here() -> None:
    made = make_ruleset(
        [
            mapping("192.0.2.1", "10.0.0.1", here=True),
            mapping("192.0.2.2", "10.0.0.1"),
            mapping("192.0.2.3", "10.0.0.2"),
            mapping("2001:db8::1", "fd00::1"),
        ]
    ).elements
    assert [made[f"elsewhere_{version}"] for version in ("v4", "v6")] == [{"10.0.0.2": ""}, {"fd00::1": ""}]


@pytest.mark.parametrize(
    ("given_networks", "expected"),
    [
        pytest.param(["10.0.0.0/9", "10.128.0.0/9"], {"10.0.0.0/8"}, id="neighbours are one"),
        pytest.param(["10.0.0.0/8", "10.244.0.0/16"], {"10.0.0.0/8"}, id="one in another is gone"),
        pytest.param(["192.0.2.7/32"], {"192.0.2.7"}, id="one address is an address"),
        pytest.param([], set(), id="none"),
    ],
)
def test_networks_do_not_overlap_and_links_and_groups_are_never_outside(
    given_networks: list[str], expected: set[str]
) -> None:
    made = make_ruleset([], cluster=map(ip_network, given_networks)).elements
    assert set(made["cluster_v4"]) == expected | {"169.254.0.0/16", "224.0.0.0/4", "255.255.255.255"}
    assert set(made["cluster_v6"]) == {"fe80::/10", "ff00::/8"}


@pytest.mark.parametrize(
    ("some", "message"),
    [
        pytest.param([mapping("192.0.2.1", "fd00::1")], "two families", id="an address and a pod of two families"),
        pytest.param(
            [mapping("2001:db8::1%x; flush ruleset", "fd00::1")], "scope", id="rules in the scope of an address"
        ),
        pytest.param([mapping("2001:db8::1", "fd00::1%eth0")], "scope", id="a pod with a scope"),
        pytest.param(
            [mapping(whole=True), mapping("192.0.2.1", "10.0.0.2", whole=True)], "belongs to", id="two have all of one"
        ),
        pytest.param(
            [mapping("192.0.2.1", "10.0.0.1", TCP_80), mapping("192.0.2.1", "10.0.0.2", TCP_80)],
            "belongs to",
            id="two have a port of one",
        ),
        pytest.param(
            [mapping(icmp=True), mapping("192.0.2.1", "10.0.0.2", icmp=True)],
            "belongs to",
            id="two have the ping of one",
        ),
        pytest.param(
            [mapping(egress=True), mapping("192.0.2.2", egress=True)],
            "belongs to",
            id="a pod leaves with two addresses",
        ),
        pytest.param(
            [mapping("192.0.2.1", "192.0.2.2"), mapping("192.0.2.2")],
            "address of one",
            id="an address is another's pod",
        ),
        pytest.param([mapping("192.0.2.1", "192.0.2.1")], "address of one", id="an address is its own pod"),
    ],
)
def test_mappings_that_cannot_be_rules_are_refused(some: list[Mapping], message: str) -> None:
    for ordered in (some, some[::-1]):
        with pytest.raises(BadMapping, match=message):
            make_ruleset(ordered)


@pytest.mark.parametrize("name", ["", "1", "a b", "x; flush ruleset", "x{", "Ä", "a" * 65, "x\n", "-x"])
def test_a_table_has_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a table"):
        make_ruleset([], table=name)


def test_no_step_has_all_networks_of_a_cluster() -> None:
    """A cluster may have thousands of nodes, each with an address and a network of pods."""
    nodes = [ip_network(f"198.18.{one}.9/32") for one in range(200)]
    assert len(list(ruleset_steps([], cluster=nodes))) >= len(nodes)


@settings(max_examples=40)
@given(mappings(), networks, st.randoms())
def test_the_order_of_mappings_and_saying_them_twice_change_nothing(
    some: list[Mapping], cluster: frozenset[Any], shuffled: random.Random
) -> None:
    others = [*some, *some]
    shuffled.shuffle(others)
    made, again = make_ruleset(some, cluster=cluster), make_ruleset(others, cluster=cluster)
    assert made == again
    assert format_ruleset(made) == format_ruleset(again)


@settings(max_examples=50)
@given(rulesets(), rulesets())
def test_applying_the_changes_to_the_current_gives_the_desired(current: Ruleset, desired: Ruleset) -> None:
    assert after(current, changes(current, desired)) == desired
    assert after(None, changes(None, desired)) == desired
    assert not changes(desired, desired)
    assert bool(changes(current, desired)) == (current != desired)


@settings(max_examples=50)
@given(rulesets(), rulesets())
def test_only_what_differs_is_written(current: Ruleset, desired: Ruleset) -> None:
    transaction = changes(current, desired)
    assert transaction.whole is None
    for name, items in desired.elements.items():
        assert transaction.adds.get(name, {}).items() == items.items() - current.elements[name].items()
        assert transaction.deletes.get(name, {}).items() == current.elements[name].items() - items.items()
    assert all(transaction.adds.values())
    assert all(transaction.deletes.values())


@pytest.mark.parametrize(
    "current",
    [
        pytest.param(None, id="there is no table"),
        pytest.param(replace(make_ruleset([]), static=frozenset()), id="its chains differ"),
        pytest.param(make_ruleset([], table="another"), id="it is another table"),
    ],
)
def test_the_whole_table_is_made_where_elements_would_not_do(current: Ruleset | None) -> None:
    desired = make_ruleset([mapping(whole=True)])
    assert changes(current, desired) == Transaction(TABLE, whole=desired)
    assert format_transaction(changes(current, desired)) == format_ruleset(desired)


def test_a_table_that_is_read_with_sets_missing_or_more_of_them_is_changed_all_the_same() -> None:
    desired = make_ruleset([mapping(whole=True)])
    current = Ruleset(TABLE, {"addresses_v4": {}, "more": {"192.0.2.1": ""}})
    transaction = changes(current, desired)
    assert transaction.deletes == {"more": {"192.0.2.1": ""}}
    assert transaction.adds["whole_v4"] == {"192.0.2.1": "10.0.0.1"}


def test_deletes_go_before_adds() -> None:
    before, then = (make_ruleset([mapping("192.0.2.1", pod, whole=True)]) for pod in ("10.0.0.1", "10.0.0.2"))
    assert format_transaction(changes(before, then)) == (
        f"delete element inet {TABLE} whole_v4 {{ 192.0.2.1 }}\n"
        f"delete element inet {TABLE} elsewhere_v4 {{ 10.0.0.1 }}\n"
        f"add element inet {TABLE} whole_v4 {{ 192.0.2.1 : 10.0.0.2 }}\n"
        f"add element inet {TABLE} elsewhere_v4 {{ 10.0.0.2 }}\n"
    )


@settings(max_examples=100)
@given(rulesets(), rulesets())
def test_the_size_of_a_transaction_is_the_number_of_elements_in_its_script(before: Ruleset, then: Ruleset) -> None:
    transaction = changes(before, then)
    listed = [line for line in format_transaction(transaction).splitlines() if " element " in line]
    assert transaction.size == sum(1 + line.count(", ") for line in listed)
    assert changes(None, then).size == sum(map(len, then.elements.values()))


@settings(max_examples=30)
@given(rulesets())
def test_nothing_but_plain_signs_is_written(ruleset: Ruleset) -> None:
    text = format_ruleset(ruleset)
    assert text.isascii()
    assert ";" not in "".join(line for line in text.splitlines() if "policy" not in line)


def test_every_rule_has_a_comment_that_nft_takes_and_that_tells_it_from_others() -> None:
    comments = [rule.comment() for chain in CHAINS for rule in chain.rules]
    assert max(map(len, comments)) < 128  # NFT_USERDATA_RULE_COMMENT of nft
    assert not any('"' in comment for comment in comments)


@pytest.mark.parametrize("version", ["v4", "v6"])
def test_both_families_have_the_same_sets_and_rules(version: str) -> None:
    other = {"v4": "v6", "v6": "v4"}[version]
    names = {collection.name for collection in COLLECTIONS}
    assert all(name.replace(version, other) in names for name in names)
    for chain in CHAINS:
        purposes = [rule.purpose for rule in chain.rules if f"_{version}" in rule.text]
        assert purposes == [rule.purpose for rule in chain.rules if f"_{other}" in rule.text]
