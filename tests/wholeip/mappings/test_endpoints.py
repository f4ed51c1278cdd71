"""The pods of a Service, and the one that gets the address."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.wholeip_objects import GONE, LEAVING, NOT_READY, PUBLISHED, READY, endpoint_slice, ip
from wholeip.mappings.endpoints import Candidates, Pod, candidates, service_key, slice_collection

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.10"


def chosen(*slices: Any, version: int = 4, in_use: frozenset[str] = frozenset()) -> str | None:
    pod = candidates(slices, version).choose(lambda: {ip(one) for one in in_use})
    return str(pod.address) if pod else None


@pytest.mark.parametrize(
    ("endpoints", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param([(A, READY)], A, id="ready"),
        pytest.param([(A, {})], A, id="nothing is said, so it is ready"),
        pytest.param([(A, None)], A, id="no conditions"),
        pytest.param([(A, {"ready": None})], A, id="unknown"),
        pytest.param([(A, NOT_READY)], None, id="not ready"),
        pytest.param([(A, NOT_READY), (B, READY)], B, id="only the second is ready"),
        pytest.param([(B, READY), (A, READY)], A, id="the lowest of two"),
        pytest.param([(C, READY), (B, READY)], B, id="by number, not by text"),
        pytest.param([(A, LEAVING), (B, READY)], B, id="ready goes before leaving"),
        pytest.param([(A, LEAVING)], A, id="leaving and serving is better than none"),
        pytest.param([(A, GONE)], None, id="leaving and no longer serving"),
        pytest.param([(A, PUBLISHED)], A, id="published though it is not ready"),
        pytest.param([(A, LEAVING), (B, NOT_READY)], A, id="leaving goes before not ready"),
        pytest.param([("127.0.0.1", READY)], None, id="loopback"),
        pytest.param([("x; flush ruleset", READY), (B, READY)], B, id="no address"),
        pytest.param([("2001:db8::1", READY)], None, id="another family than the slice says"),
    ],
)
def test_one_pod_is_chosen(endpoints: list[Any], expected: str | None) -> None:
    assert chosen(endpoint_slice("vm", *endpoints)) == expected


@pytest.mark.parametrize(
    ("in_use", "expected"),
    [
        pytest.param({B}, B, id="it stays"),
        pytest.param({A}, A, id="the lowest has it"),
        pytest.param({C}, A, id="it is leaving"),
        pytest.param({"10.0.0.99"}, A, id="it is gone"),
        pytest.param({A, B}, A, id="two had it"),
    ],
)
def test_the_pod_that_has_the_address_keeps_it_while_it_is_ready(in_use: set[str], expected: str) -> None:
    one = endpoint_slice("vm", (B, READY), (A, READY), (C, LEAVING))
    assert chosen(one, in_use=frozenset(in_use)) == expected


def test_families_are_told_apart_by_slice() -> None:
    four = endpoint_slice("vm", (A, READY))
    six = endpoint_slice("vm", ("2001:db8::1", READY), family="IPv6")
    named = endpoint_slice("vm", ("pod.example.org", READY), family="FQDN")
    assert chosen(four, six, named) == A
    assert chosen(four, six, named, version=6) == "2001:db8::1"
    assert chosen(four, named, version=6) is None


def test_why_there_is_none_is_said_in_numbers() -> None:
    slices = [endpoint_slice("vm", (A, NOT_READY), (B, GONE)), endpoint_slice("vm", (C, NOT_READY), ("::1%x", READY))]
    told = candidates(slices, 4).describe_none()
    assert told == "no pod is ready; 2 not ready; 1 terminating; ::1%x: it has a scope"
    assert Candidates().describe_none() == "no pod is ready"


def test_the_node_of_a_pod_is_kept() -> None:
    assert candidates([endpoint_slice("vm", (A, READY), node="n1")], 4).ready == (Pod(ip(A), "n1"),)
    assert candidates([endpoint_slice("vm", (A, READY))], 4).ready == (Pod(ip(A), None),)


def test_a_slice_says_whose_it_is_by_its_label() -> None:
    assert service_key(endpoint_slice("vm", namespace="web")) == "web/vm"
    assert service_key(endpoint_slice("")) is None
    assert slice_collection("x").label_selector == "service.kubernetes.io/service-proxy-name=x"


@given(
    st.lists(
        st.tuples(st.sampled_from([A, B, C, "2001:db8::1", "bad"]), st.sampled_from([READY, NOT_READY, LEAVING, None])),
        max_size=6,
    ),
    st.randoms(),
)
def test_the_order_of_slices_and_endpoints_does_not_matter(endpoints: list[Any], random: Any) -> None:
    slices = [endpoint_slice("vm", one, name=f"s{number}") for number, one in enumerate(endpoints)]
    before = candidates(slices, 4)
    random.shuffle(slices)
    assert candidates(slices, 4) == before


def test_of_many_endpoints_that_do_not_count_a_few_are_named() -> None:
    pods = [(f"10.0.{number // 250}.{number % 250 + 1}", READY) for number in range(5_000)]
    refused = [(f"127.0.{number // 250}.{number % 250 + 1}", READY) for number in range(5_000)]
    found = candidates([endpoint_slice("vm", *pods, target=None), endpoint_slice("vm", *refused)], 4)
    assert len(found.describe_none()) < 2_000
    assert "and 4,997 more" in found.describe_none()
