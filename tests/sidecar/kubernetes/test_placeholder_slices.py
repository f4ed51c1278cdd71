"""Which slices are a placeholder."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.placeholder_slices import is_placeholder

POD: dict[str, Any] = {"addresses": ["192.192.192.192"]}
GONE: dict[str, Any] = {"addresses": ["192.0.2.1"], "conditions": {"ready": False}}


def part(*names: str | None, endpoints: tuple[dict[str, Any], ...] = (POD,)) -> EndpointSlice:
    ports = [{"name": name, "port": 9999} for name in names]
    made = {"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": endpoints, "ports": ports}
    return msgspec.convert(made, EndpointSlice)


@pytest.mark.parametrize(
    ("slices", "names", "found"),
    [
        pytest.param([part(None)], {"http", "https"}, True, id="a port without a name, which is not the Service's"),
        pytest.param([part("other")], {"http"}, True, id="a port of another name"),
        pytest.param([part("other"), part("other")], {""}, True, id="one in each family"),
        pytest.param([part("http")], {"http", "https"}, False, id="one of two ports"),
        pytest.param([part("")], {""}, False, id="a Service with one unnamed port"),
        pytest.param([part("other"), part("http")], {"http"}, False, id="pods beside it"),
        pytest.param([part("other", endpoints=(GONE,))], {"http"}, False, id="nothing usable"),
        pytest.param([part("other", endpoints=())], {"http"}, False, id="no endpoint"),
        pytest.param([part()], {"http"}, False, id="no port"),
        pytest.param([], {"http"}, False, id="no slice"),
    ],
)  # fmt: skip
def test_slices_are_a_placeholder_if_they_have_none_of_the_ports(
    slices: list[EndpointSlice], names: set[str], found: bool
) -> None:
    assert is_placeholder(slices, names) is found
