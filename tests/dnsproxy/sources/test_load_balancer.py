"""The load balancer in a status, and values that are ignored."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.addresses import is_address
from dnsproxy.dns.names import parse_hostname
from dnsproxy.sources.load_balancer import BalancedStatus, points_of


def read(ingress: Any) -> tuple[str, ...]:
    return points_of(msgspec.convert({"loadBalancer": {"ingress": ingress}}, BalancedStatus))


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        pytest.param([{"ip": "192.0.2.1"}], ("192.0.2.1",), id="an address"),
        pytest.param([{"hostname": "LB.Example.org."}], ("lb.example.org",), id="a hostname in normal form"),
        pytest.param([{"ip": "192.0.2.1", "hostname": "lb.example.org"}], ("192.0.2.1", "lb.example.org"), id="both"),
        pytest.param(
            [{"ip": "2001:DB8:0::1"}, {"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}],
            ("2001:db8::1", "192.0.2.1"),
            id="each once, in order",
        ),
        pytest.param([{"ip": "10.0.0.1", "ipMode": "Proxy", "ports": [{"port": 80}]}], ("10.0.0.1",), id="more fields"),
        pytest.param([None, {}, {"ip": None}, {"ip": "", "hostname": ""}], (), id="nothing said"),
        pytest.param([{"ip": "<pending>"}, {"ip": "192.0.2.300"}], (), id="no addresses"),
        pytest.param([{"ip": "0.0.0.0"}, {"ip": "::"}, {"ip": "ff02::1"}], (), id="addresses of nobody"),
        pytest.param([{"ip": "fe80::1%eth0"}], (), id="a zone"),
        pytest.param([{"ip": "fe80::1"}, {"ip": "169.254.169.254"}], (), id="addresses of one link"),
        pytest.param([{"ip": "255.255.255.255"}, {"ip": "::ffff:192.0.2.1"}], (), id="broadcast, IPv4 in IPv6"),
        pytest.param([{"ip": "lb.example.org"}, {"hostname": "192.0.2.1"}], (), id="each in the other's place"),
        pytest.param([{"hostname": "*"}, {"hostname": "a b"}, {"hostname": "x" * 300}], (), id="no hostnames"),
        pytest.param([], (), id="empty"),
        pytest.param(None, (), id="null"),
    ],
)
def test_addresses_and_hostnames_are_read_and_the_rest_is_passed_over(points: Any, expected: tuple[str, ...]) -> None:
    assert read(points) == expected


@pytest.mark.parametrize("status", [None, {}, {"loadBalancer": None}, {"loadBalancer": {}}], ids=str)
def test_an_object_without_load_balancer_has_none(status: Any) -> None:
    assert points_of(msgspec.convert(status, BalancedStatus | None)) == ()


def test_an_equal_status_of_many_objects_is_stored_once() -> None:
    assert read([{"ip": "192.0.2.9"}]) is read([{"ip": "192.0.2.9"}])


@given(st.lists(st.fixed_dictionaries({}, optional={"ip": st.text() | st.none(), "hostname": st.text() | st.none()})))
def test_any_text_is_an_address_a_hostname_or_nothing(points: Any) -> None:
    for text in read(points):
        assert is_address(text) or parse_hostname(text) == text
