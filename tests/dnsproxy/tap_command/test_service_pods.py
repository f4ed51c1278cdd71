"""The pods of a Service that are listened to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dnsproxy.tap_command.service_pods import pods_of
from sidecar.kubernetes.endpoint_slices import EndpointSlice

READY = {"ready": True, "serving": True, "terminating": False}


def endpoint(name: str | None, conditions: dict[str, bool] | None = None, **ref: Any) -> dict[str, Any]:
    target = {"kind": "Pod", "namespace": "switchback", "name": name, **ref}
    return {"addresses": ["192.0.2.1"], "conditions": conditions or READY, "targetRef": target}


def slices(*endpoints: dict[str, Any]) -> list[EndpointSlice]:
    document = {"metadata": {"name": "dnsproxy-x", "namespace": "switchback"}, "addressType": "IPv4"}
    return [msgspec.convert({**document, "endpoints": list(endpoints)}, EndpointSlice)]


def test_ready_pods_are_taken_once_and_in_order() -> None:
    both = [*slices(endpoint("b"), endpoint("a")), *slices(endpoint("a"))]
    assert pods_of(both, namespace="switchback") == ("a", "b")


@pytest.mark.parametrize(
    ("one", "taken"),
    [
        pytest.param(endpoint("a", {"ready": False}), False, id="not ready"),
        pytest.param(endpoint("a", {"ready": False, "terminating": True}), False, id="terminating"),
        pytest.param(endpoint("a", {"ready": False, "serving": True, "terminating": True}), True, id="still serving"),
        pytest.param(endpoint("a", {"serving": True}), True, id="ready is not known"),
        pytest.param(endpoint(None), False, id="no name"),
        pytest.param(endpoint(""), False, id="an empty name"),
        pytest.param(endpoint("../../secrets"), False, id="a path"),
        pytest.param(endpoint("a?b"), False, id="a query"),
        pytest.param(endpoint("a" * 254), False, id="a long name"),
        pytest.param(endpoint("a", kind="Node"), False, id="a node"),
        pytest.param(endpoint("a", namespace="other"), False, id="of another namespace"),
        pytest.param(endpoint("a", namespace=None), True, id="no namespace"),
        pytest.param({"addresses": ["192.0.2.1"], "conditions": READY}, False, id="no pod at all"),
    ],
)
def test_only_pods_of_the_service_that_answer_are_taken(one: dict[str, Any], taken: bool) -> None:
    assert bool(pods_of(slices(one), namespace="switchback")) is taken


def test_no_slice_has_no_pod() -> None:
    assert pods_of([], namespace="switchback") == ()
    assert pods_of(slices(), namespace="switchback") == ()
