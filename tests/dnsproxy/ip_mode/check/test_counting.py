"""What counts as a write of a status."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dnsproxy.ip_mode.check.counting import Counter
from dnsproxy.ip_mode.status_writers import ManagedService

BALANCER: dict[str, Any] = {"f:status": {"f:loadBalancer": {}}}


def version(*, mode: str = "VIP", time: str = "1", labels: dict[str, str] | None = None) -> dict[str, Any]:
    writer = {"manager": "ccm", "operation": "Update", "time": time, "subresource": "status", "fieldsV1": BALANCER}
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.10", "ipMode": mode}]}}
    return {"metadata": {"name": "lb", "labels": labels, "managedFields": [writer]}, "status": status}


CASES = [
    pytest.param([version()], 0, id="the first is the state, not a write"),
    pytest.param([version(), version(mode="Proxy")], 1, id="another status"),
    pytest.param([version(), version(time="2")], 1, id="another time"),
    pytest.param([version(), version(labels={"a": "b"})], 0, id="a label is no write of the status"),
    pytest.param([version(), version(mode="Proxy"), version()], 2, id="there and back"),
    pytest.param([version(), None, version()], 0, id="deleted, and the same again"),
]


@pytest.mark.parametrize(("versions", "writes"), CASES)
def test_writes_of_the_status_alone_are_counted(versions: list[dict[str, Any] | None], writes: int) -> None:
    counter = Counter()
    for one in versions:
        counter.take(msgspec.json.decode(json.dumps(one), type=ManagedService | None))
    assert counter.writes == writes
