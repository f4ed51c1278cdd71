"""kube-proxy's rules and Cilium's, as the kernel's tools print them."""

from __future__ import annotations

import json

import pytest

from tests.cluster.steps.kube_proxy import parse_cilium, parse_iptables, parse_nftables

MAP = """\
table ip kube-proxy {
    map service-ips {
        type ipv4_addr . inet_proto . inet_service : verdict
        elements = { 10.96.0.10 . udp . 53 : goto service-A,
                 198.18.7.100 . tcp . 80 : goto external-B, 198.18.7.101 . tcp . 80 : goto external-C }
    }
}
"""
SAVED = """\
*nat
:KUBE-SERVICES - [12:720]
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-SERVICES -d 198.18.7.100/32 -p tcp -m tcp --dport 80 -j KUBE-EXT-B
-A CNI-HOSTPORT-DNAT -p tcp -j CNI-DN-A
COMMIT
"""

OF_THE_CONTROLLER = "c6 12 07 64 01 bb 00 00 06 00 00 00"
OF_THE_OTHER = "c6 12 07 65 00 50 00 00 06 00 00 00"


def dumped(*keys: str) -> str:
    """The output of bpftool for a map with these keys."""
    return json.dumps([{"key": [f"0x{octet}" for octet in key.split()], "value": ["0x00"] * 12} for key in keys])


def test_elements_of_one_line_are_apart() -> None:
    found = parse_nftables(MAP)
    assert "198.18.7.100 . tcp . 80 : goto external-B" in found
    assert "198.18.7.101 . tcp . 80 : goto external-C" in found


def test_a_lost_element_is_the_only_difference() -> None:
    without = MAP.replace("198.18.7.100 . tcp . 80 : goto external-B, ", "")
    assert parse_nftables(MAP) ^ parse_nftables(without) == {"198.18.7.100 . tcp . 80 : goto external-B"}


def test_neither_counters_nor_rules_of_others_are_rules_of_kube_proxy() -> None:
    assert parse_iptables(SAVED) == {"-A KUBE-SERVICES -d 198.18.7.100/32 -p tcp -m tcp --dport 80 -j KUBE-EXT-B"}


@pytest.mark.parametrize("listed", ["", "\n", "{ }"], ids=["no table", "an empty line", "an empty set"])
def test_nothing_is_no_rule(listed: str) -> None:
    assert parse_nftables(listed) == frozenset()
    assert parse_iptables(listed) == frozenset()


def test_frontends_of_cilium_have_address_and_port() -> None:
    assert parse_cilium(dumped(OF_THE_CONTROLLER, OF_THE_OTHER)) == {"198.18.7.100:443", "198.18.7.101:80"}


def test_the_backends_of_a_frontend_are_no_frontends_of_their_own() -> None:
    backend = OF_THE_CONTROLLER.replace("bb 00 00", "bb 00 01")
    assert parse_cilium(dumped(OF_THE_CONTROLLER, backend)) == parse_cilium(dumped(OF_THE_CONTROLLER))


def test_an_empty_map_has_no_frontend() -> None:
    assert parse_cilium(dumped()) == frozenset()


def test_a_chain_that_is_emptied_and_not_yet_deleted_is_no_rule() -> None:
    assert parse_nftables(
        MAP.replace("map service-ips", "chain service-A {\n    }\n    map service-ips")
    ) == parse_nftables(MAP)
