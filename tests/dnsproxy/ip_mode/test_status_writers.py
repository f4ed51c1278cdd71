"""Who wrote a status."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dnsproxy.ip_mode.status_writers import ManagedService, status_writers

BALANCER: dict[str, Any] = {"f:status": {"f:loadBalancer": {"f:ingress": {}}}}
CONDITIONS: dict[str, Any] = {"f:status": {"f:conditions": {}}}


def field(manager: str | None, time: str | None = "2026-01-01T00:00:00Z", **changes: Any) -> dict[str, Any]:
    one = {"manager": manager, "operation": "Update", "time": time, "subresource": "status", "fieldsV1": BALANCER}
    return one | changes


def read(*fields: dict[str, Any]) -> list[str]:
    text = json.dumps({"metadata": {"name": "lb", "managedFields": list(fields)}})
    service = msgspec.json.decode(text, type=ManagedService)
    return [one.manager for one in status_writers(service.metadata.managed_fields)]


CASES = [
    pytest.param([], [], id="nobody"),
    pytest.param([field("ccm")], ["ccm"], id="a provider"),
    pytest.param([field("ccm", subresource="")], [], id="a writer of the spec"),
    pytest.param([field("ccm", fieldsV1=CONDITIONS)], [], id="a writer of the conditions"),
    pytest.param([field("ccm", fieldsV1=None)], [], id="fields that are null"),
    pytest.param(
        [field("new", "2026-01-02T00:00:00Z"), field("old")], ["new", "old"], id="the newest first, whatever the order"
    ),
    pytest.param([field("first"), field("second")], ["second", "first"], id="of one second the later entry first"),
    pytest.param([field("ccm", None), field("other")], ["other", "ccm"], id="without a time"),
    pytest.param([field(None)], ["an unnamed client"], id="without a name"),
]


@pytest.mark.parametrize(("fields", "managers"), CASES)
def test_only_writers_of_the_load_balancer_count(fields: list[dict[str, Any]], managers: list[str]) -> None:
    assert read(*fields) == managers


def test_an_object_without_managed_fields_has_no_writers() -> None:
    assert status_writers(None) == ()
