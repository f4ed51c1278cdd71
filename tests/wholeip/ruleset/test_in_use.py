"""Earlier mappings, read from a table of the kernel."""

from __future__ import annotations

from tests.kit.wholeip_objects import ip, tcp
from wholeip.mappings.mapping import Mapping
from wholeip.mappings.plan import NOTHING_IN_USE
from wholeip.ruleset.in_use import address_count, in_use_of
from wholeip.ruleset.ruleset import Ruleset, make_ruleset


def test_each_pair_of_address_and_pod_is_found_whatever_it_lets_in() -> None:
    mappings = [
        Mapping("a/whole", ip("192.0.2.1"), ip("10.0.0.1"), None, icmp=True, egress=True),
        Mapping("a/ports", ip("192.0.2.2"), ip("10.0.0.2"), tcp(80, 443), icmp=False, egress=False),
        Mapping("a/icmp", ip("192.0.2.3"), ip("10.0.0.3"), frozenset(), icmp=True, egress=False),
        Mapping("a/egress", ip("192.0.2.4"), ip("10.0.0.4"), frozenset(), icmp=False, egress=True),
        Mapping("a/six", ip("2001:db8::1"), ip("2001:db8:1::1"), None, icmp=True, egress=True),
    ]
    ruleset = make_ruleset(mappings)
    assert in_use_of(ruleset) == {(None, one.address, one.endpoint) for one in mappings}
    assert address_count(ruleset) == 5


def test_without_a_table_nothing_is_in_use() -> None:
    for ruleset in (None, make_ruleset([]), Ruleset("t", {}, frozenset())):
        assert in_use_of(ruleset) == NOTHING_IN_USE
        assert address_count(ruleset) == 0
