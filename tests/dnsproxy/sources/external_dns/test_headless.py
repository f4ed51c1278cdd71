"""The endpoints of headless Services."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.sources.external_dns.headless import HeadlessEndpoints, endpoints_of
from tests.dnsproxy.sources.external_dns.objects import endpoint, endpoint_slice


def addresses(known: HeadlessEndpoints, service: str = "shop/db", *, unready: bool = False) -> list[str]:
    return [one.address for one in known.of(service, unready=unready)]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(endpoint("10.244.0.7"), ["10.244.0.7"], id="a ready pod"),
        pytest.param(endpoint("10.244.0.7", ready=None), ["10.244.0.7"], id="unknown counts as ready"),
        pytest.param(endpoint("10.244.0.7", conditions=None), ["10.244.0.7"], id="no conditions"),
        pytest.param(endpoint("10.244.0.7", ready=False), [], id="not ready"),
        pytest.param(endpoint("10.244.0.7", addresses=["10.244.0.7", "10.244.0.8"]), ["10.244.0.7"], id="the first"),
        pytest.param(endpoint("10.244.0.7", addresses=None), [], id="no address"),
        pytest.param(endpoint("10.244.0.7", addresses=[None]), [], id="a null address"),
        pytest.param(endpoint("pod.example.org"), [], id="a hostname"),
        pytest.param(endpoint("169.254.169.254"), [], id="a metadata service"),
        pytest.param(endpoint("10.244.0.7", targetRef=None), [], id="no pod"),
        pytest.param(endpoint("10.244.0.7", targetRef={"kind": "Node"}), [], id="a node"),
        pytest.param(endpoint("10.244.0.7", targetRef={"kind": "Pod"}), ["10.244.0.7"], id="of its own namespace"),
        pytest.param(endpoint("10.244.0.7", targetRef={"kind": "Pod", "namespace": "b"}), [], id="of another one"),
        pytest.param(None, [], id="null"),
    ],
)
def test_what_counts_as_an_endpoint(one: Any, expected: list[str]) -> None:
    known = HeadlessEndpoints()
    known.put("shop/db-1", endpoint_slice(one))
    assert addresses(known) == expected


def test_unready_ones_count_if_the_service_publishes_them() -> None:
    known = HeadlessEndpoints()
    known.put("shop/db-1", endpoint_slice(endpoint("10.244.0.7", ready=False), endpoint("10.244.0.8")))
    assert addresses(known) == ["10.244.0.8"]
    assert addresses(known, unready=True) == ["10.244.0.7", "10.244.0.8"]


def test_the_slices_of_a_service_add_up_in_the_order_of_addresses() -> None:
    known = HeadlessEndpoints()
    known.put("shop/db-6", endpoint_slice(endpoint("2001:db8::7"), place="shop/db-6", family="IPv6"))
    known.put("shop/db-1", endpoint_slice(endpoint("10.244.0.10"), endpoint("10.244.0.9")))
    known.put("shop/db-2", endpoint_slice(endpoint("10.244.0.9"), place="shop/db-2"))
    assert addresses(known) == ["10.244.0.9", "10.244.0.10", "2001:db8::7"]
    assert endpoints_of(endpoint_slice(endpoint("10.244.0.7"), family="FQDN")) == ()


def test_a_slice_may_come_to_belong_to_another_service() -> None:
    known = HeadlessEndpoints()
    one = endpoint("10.244.0.7")
    assert known.put("shop/x", endpoint_slice(one)) == {"shop/db"}
    assert known.put("shop/x", endpoint_slice(one)) == set()
    assert known.put("shop/x", endpoint_slice(one, service="web")) == {"shop/db", "shop/web"}
    assert (addresses(known), addresses(known, "shop/web")) == ([], ["10.244.0.7"])
    assert known.put("shop/x", None) == {"shop/web"}
    assert known.put("shop/x", None) == set()
    assert known.is_empty()


def test_a_slice_without_endpoints_leaves_nothing() -> None:
    known = HeadlessEndpoints()
    known.put("shop/x", endpoint_slice(endpoint("10.244.0.7")))
    assert known.put("shop/x", endpoint_slice()) == {"shop/db"}
    known.put("shop/y", endpoint_slice(endpoint("10.244.0.7"), service=""))
    assert known.is_empty()
