"""The addresses of a Node, and the networks of its pods."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.kit.wholeip_objects import ip, node
from wholeip.mappings.addresses import parse_network
from wholeip.mappings.nodes import NODES, Node, addresses_of, pod_networks_of


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["192.0.2.1", "2001:db8::1"], ["192.0.2.1", "2001:db8::1"], id="both families"),
        pytest.param(["node-1", "192.0.2.1", "node-1.example.org"], ["192.0.2.1"], id="names are passed over"),
        pytest.param(["", "192.0.2.1/24", "127.0.0.1"], [], id="nothing of use"),
        pytest.param(
            ["::ffff:192.0.2.1", "192.0.002.02", "::ffff:127.0.0.1"], ["192.0.2.1", "192.0.2.2"], id="spellings"
        ),
    ],
)
def test_addresses_of_a_node_are_found_among_its_names(stated: list[str], expected: list[str]) -> None:
    assert addresses_of(node("n", *stated)) == {ip(one) for one in expected}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        pytest.param([], [], id="none: a plugin gives them"),
        pytest.param(["10.244.0.0/24", "fd00::/64"], ["10.244.0.0/24", "fd00::/64"], id="both families"),
        pytest.param(["10.244.0.1/24", "010.244.1.0/24"], ["10.244.0.0/24", "10.244.1.0/24"], id="spellings"),
        pytest.param([None, "", "10.244.0.1/33", "x"], [], id="nothing of use"),
    ],
)
def test_networks_of_pods_are_those_that_the_control_plane_gave(stated: list[Any], expected: list[str]) -> None:
    assert pod_networks_of(node("n", pods=stated)) == {parse_network(one) for one in expected}


@pytest.mark.parametrize("fields", [{}, {"status": None, "spec": None}, {"status": {"addresses": [None]}, "spec": {}}])
def test_a_node_that_says_nothing_has_nothing(fields: dict[str, Any]) -> None:
    bare = msgspec.convert({"metadata": {"name": "n"}, **fields}, Node)
    assert addresses_of(bare) == pod_networks_of(bare) == frozenset()


def test_a_node_that_cannot_be_read_has_nothing() -> None:
    unreadable = Unreadable(ObjectMeta("n"), "Expected `str`")
    assert addresses_of(unreadable) == pod_networks_of(unreadable) == frozenset()


def test_nodes_that_may_not_be_seen_do_not_hold_anything_up() -> None:
    assert NODES.optional
