"""The patch of a status that exists."""

from __future__ import annotations

import pytest

from dnsproxy.ip_mode.status_patch import make_patch
from sidecar.kubernetes.structs.network import LoadBalancerPoint

IP = "192.0.2.10"
TEST = {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}


def added(number: int, mode: str = "Proxy") -> dict[str, object]:
    return {"op": "add", "path": f"/status/loadBalancer/ingress/{number}/ipMode", "value": mode}


CASES = [
    pytest.param([], [], id="no entry"),
    pytest.param([LoadBalancerPoint(ip=IP, ip_mode="Proxy")], [], id="as it shall be: no write"),
    pytest.param([LoadBalancerPoint(hostname="lb.example.org")], [], id="a hostname alone"),
    pytest.param([LoadBalancerPoint()], [], id="an empty entry"),
    pytest.param([LoadBalancerPoint(ip=IP, ip_mode="VIP")], [TEST, added(0)], id="VIP"),
    pytest.param([LoadBalancerPoint(ip=IP)], [TEST, added(0)], id="no ipMode"),
    pytest.param([LoadBalancerPoint(ip=IP, hostname="lb.example.org")], [TEST, added(0)], id="ip and hostname"),
    pytest.param(
        [
            LoadBalancerPoint(hostname="lb.example.org"),
            LoadBalancerPoint(ip=IP, ip_mode="VIP"),
            LoadBalancerPoint(ip="192.0.2.11", ip_mode="Proxy"),
            LoadBalancerPoint(ip="2001:db8::10"),
        ],
        [TEST, added(1), added(3)],
        id="several: only those that differ, by their place",
    ),
]


@pytest.mark.parametrize(("entries", "operations"), CASES)
def test_only_entries_with_an_address_and_another_mode_change(
    entries: list[LoadBalancerPoint], operations: list[dict[str, object]]
) -> None:
    assert make_patch(entries, mode="Proxy", resource_version="7") == operations


def test_the_mode_can_be_set_back() -> None:
    assert make_patch([LoadBalancerPoint(ip=IP, ip_mode="Proxy")], mode="VIP", resource_version="7") == [
        TEST,
        added(0, "VIP"),
    ]
