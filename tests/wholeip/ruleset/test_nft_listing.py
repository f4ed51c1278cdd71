"""nft's listing is parsed; anything foreign in it makes a difference and never an error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholeip.ruleset.nft_listing import NoListing, parse_listing
from wholeip.ruleset.ruleset import TABLE, make_ruleset

EMPTY = make_ruleset([])
OURS = {"family": "inet", "table": TABLE}
SET = {**OURS, "name": "addresses_v4", "type": "ipv4_addr", "handle": 1}
CHAIN = {**OURS, "name": "prerouting", "handle": 2, "type": "nat", "hook": "prerouting", "prio": -105}


def listing(*objects: Any) -> str:
    return json.dumps({"nftables": [{"metainfo": {"version": "1.0.6"}}, {"table": {"name": TABLE}}, *objects]})


@pytest.mark.parametrize(
    "text",
    ["", "not JSON", "[]", "1", "{}", '{"nftables": 1}', '{"nftables": null}', "[" * 100_000, '{"nftables": {}}', "\0"],
    ids=[
        "empty",
        "words",
        "a list",
        "a number",
        "no objects",
        "a number of objects",
        "null",
        "deep",
        "an object",
        "nul",
    ],
)
def test_what_is_no_listing_is_refused(text: str) -> None:
    with pytest.raises(NoListing):
        parse_listing(text, TABLE)


@pytest.mark.parametrize(
    ("item", "elements"),
    [
        pytest.param({"set": SET}, {"addresses_v4": {}}, id="an empty set"),
        pytest.param({"set": {**SET, "elem": ["192.0.2.1"]}}, {"addresses_v4": {"192.0.2.1": ""}}, id="an address"),
        pytest.param(
            {"set": {**SET, "elem": ["2001:DB8:0::1"]}}, {"addresses_v4": {"2001:db8::1": ""}}, id="written otherwise"
        ),
        pytest.param(
            {"map": {**SET, "map": "ipv4_addr", "elem": [["192.0.2.1", "10.0.0.1"]]}},
            {"addresses_v4": {"192.0.2.1": "10.0.0.1"}},
            id="a map",
        ),
        pytest.param(
            {"map": {**SET, "map": "ipv4_addr", "elem": [[{"concat": ["192.0.2.1", "sctp", 80]}, "10.0.0.1"]]}},
            {"addresses_v4": {"192.0.2.1 . 132 . 80": "10.0.0.1"}},
            id="a protocol by name",
        ),
        pytest.param(
            {"map": {**SET, "map": "ipv4_addr", "elem": [[{"concat": ["192.0.2.1", 6, 80]}, "10.0.0.1"]]}},
            {"addresses_v4": {"192.0.2.1 . 6 . 80": "10.0.0.1"}},
            id="a protocol by number",
        ),
        pytest.param(
            {
                "set": {
                    **SET,
                    "elem": [{"prefix": {"addr": "10.0.0.0", "len": 8}}, {"range": ["192.0.2.1", "192.0.2.9"]}],
                }
            },
            {"addresses_v4": {"10.0.0.0/8": "", "192.0.2.1-192.0.2.9": ""}},
            id="networks",
        ),
    ],
)
def test_elements_are_read_in_our_words(item: Any, elements: Any) -> None:
    assert parse_listing(listing(item), TABLE).elements == elements


@pytest.mark.parametrize(
    "item",
    [
        pytest.param({"chain": {**CHAIN, "prio": -100}}, id="a chain at another priority"),
        pytest.param({"chain": {**CHAIN, "policy": "drop"}}, id="a chain that drops"),
        pytest.param({"chain": {**CHAIN, "type": "filter"}}, id="a chain of another type"),
        pytest.param({"chain": {**OURS}}, id="a chain without a name"),
        pytest.param({"chain": "prerouting"}, id="a chain of another shape"),
        pytest.param({"rule": {**OURS, "chain": "prerouting"}}, id="a rule without a comment"),
        pytest.param({"rule": {**OURS, "chain": "prerouting", "comment": 7}}, id="a rule with a number"),
        pytest.param({"rule": {**OURS}}, id="a rule of no chain"),
        pytest.param({"set": {**SET, "flags": ["dynamic"]}}, id="a set with a flag"),
        pytest.param({"set": {**SET, "flags": ["interval"]}}, id="a set of intervals"),
        pytest.param({"set": {**SET, "timeout": 60}}, id="a set that forgets"),
        pytest.param({"set": {**SET, "type": "ipv6_addr"}}, id="a set of another type"),
        pytest.param({"set": {**SET, "type": 7}}, id="a set of no type"),
        pytest.param({"set": {**SET, "elem": [{"elem": {"val": "192.0.2.1", "timeout": 1}}]}}, id="an unknown element"),
        pytest.param({"set": {**SET, "elem": ["example.org"]}}, id="an element that is no address"),
        pytest.param({"set": {**SET, "elem": 7}}, id="elements that are no list"),
        pytest.param({"map": {**SET, "map": "ipv4_addr", "elem": ["192.0.2.1"]}}, id="a map without values"),
        pytest.param(
            {"map": {**SET, "map": "verdict", "elem": [["192.0.2.1", {"drop": None}]]}}, id="a map of verdicts"
        ),
        pytest.param({"counter": {**OURS, "name": "x"}}, id="an object that we do not have"),
        pytest.param({"table": {"name": TABLE, "flags": ["dormant"]}}, id="a table that is asleep"),
        pytest.param({"future": {}}, id="an object of the future"),
        pytest.param({"set": SET, "chain": CHAIN}, id="two objects in one"),
        pytest.param({}, id="no object"),
        pytest.param(None, id="null"),
        pytest.param(["set"], id="a list"),
    ],
)
def test_what_is_not_ours_makes_the_static_part_differ(item: Any) -> None:
    assert not parse_listing(listing(item), TABLE).static <= EMPTY.static


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.sampled_from(["set", "map", "chain", "rule", "table"]), json_values, max_size=2)))
def test_no_object_is_an_error(objects: list[Any]) -> None:
    assert parse_listing(listing(*objects), TABLE) != EMPTY


@given(st.sampled_from(["type", "map", "elem", "flags", "name", "hook", "prio", "comment", "chain"]), json_values)
def test_no_value_of_an_object_is_an_error(key: str, value: Any) -> None:
    for kind, base in (("set", SET), ("map", {**SET, "map": "ipv4_addr"}), ("chain", CHAIN), ("rule", OURS)):
        assert parse_listing(listing({kind: {**base, key: value}}), TABLE) != EMPTY
