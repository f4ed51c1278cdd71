"""What is read of a Service that the API server sent."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dnsproxy.ip_mode.status_writers import ManagedService
from dnsproxy.ip_mode.watch.observed import Observed, observe
from sidecar.kubernetes.objects import ObjectMeta, Unreadable

TIME = "2026-01-02T03:04:05Z"


def seen(entries: Any, *, kind: Any = "LoadBalancer", managers: Any = None, balancer: bool = True) -> Observed:
    body = {
        "metadata": {"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7", "managedFields": managers},
        "spec": {"type": kind, "ports": None},
        "status": {"loadBalancer": {"ingress": entries}} if balancer else None,
    }
    return observe(msgspec.json.decode(json.dumps(body), type=ManagedService))


WAITING = [
    pytest.param(None, "LoadBalancer", "it has no address yet", id="null"),
    pytest.param([], "LoadBalancer", "it has no address yet", id="empty"),
    pytest.param([{"hostname": "a.example.org"}], "LoadBalancer", "hostnames alone", id="a hostname"),
    pytest.param([{"ip": ""}], "LoadBalancer", "no ipMode", id="an empty address"),
    pytest.param([{"ip": "192.0.2.1"}], "ClusterIP", "its type is ClusterIP", id="a leftover status"),
    pytest.param([{"ip": "192.0.2.1"}], None, "its type is ClusterIP", id="no type"),
    pytest.param([{"ip": "192.0.2.1"}], "ExternalName", "its type is ExternalName", id="a name"),
]


@pytest.mark.parametrize(("entries", "kind", "why"), WAITING)
def test_nothing_is_written_while_there_is_nothing_to_write(entries: Any, kind: Any, why: str) -> None:
    found = seen(entries, kind=kind)
    assert why in found.why_waiting
    assert found.patch == []


def test_a_service_without_a_status_waits() -> None:
    assert seen(None, balancer=False).why_waiting == "it has no address yet"


def test_the_patch_has_the_entries_that_need_it_and_a_test_on_the_version() -> None:
    ports = [{"port": 80, "protocol": "TCP", "error": "example.org/failed"}]
    found = seen(
        [
            {"hostname": "a.example.org"},
            {"ip": "192.0.2.1", "ipMode": "VIP", "ports": ports},
            {"ip": "2001:db8::1", "ipMode": "Proxy"},
            {"ip": "192.0.2.2"},
        ]
    )
    assert found.patch == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "add", "path": "/status/loadBalancer/ingress/1/ipMode", "value": "Proxy"},
        {"op": "add", "path": "/status/loadBalancer/ingress/3/ipMode", "value": "Proxy"},
    ]
    assert dict(found.modes) == {"VIP": 1, "Proxy": 1, "none": 1}
    assert found.addresses == ("192.0.2.1", "2001:db8::1", "192.0.2.2")


def test_a_status_of_a_thousand_entries_is_one_patch() -> None:
    found = seen([{"ip": f"2001:db8::{number:x}"} for number in range(1000)])
    assert len(found.patch) == 1001


def manager(name: str, fields: Any, *, subresource: str | None = "status", time: str | None = TIME) -> dict[str, Any]:
    return {"manager": name, "operation": "Update", "time": time, "subresource": subresource, "fieldsV1": fields}


BALANCER: dict[str, Any] = {"f:status": {"f:loadBalancer": {"f:ingress": {}}}}
WRITERS = [
    pytest.param(None, "", id="nobody"),
    pytest.param([manager("a", BALANCER)], "a", id="one"),
    pytest.param([manager("a", {"f:status": {"f:conditions": {}}})], "", id="conditions alone"),
    pytest.param([manager("a", BALANCER, subresource=None)], "", id="not of the status"),
    pytest.param([manager("b", BALANCER), manager("a", BALANCER, time="2025-01-02T03:04:05Z")], "b", id="the newest"),
    pytest.param([manager("a", BALANCER, time=None)], "a", id="without a time"),
    pytest.param([{"subresource": "status", "fieldsV1": BALANCER}], "an unnamed client", id="without a name"),
    pytest.param([{"subresource": "status"}], "", id="without fields"),
]


@pytest.mark.parametrize(("managers", "name"), WRITERS)
def test_the_writer_of_the_entries_is_named(managers: Any, name: str) -> None:
    assert seen([{"ip": "192.0.2.1"}], managers=managers).writer == name


def test_a_service_that_cannot_be_read_is_refused_with_the_reason() -> None:
    found = observe(Unreadable(ObjectMeta("a", "b", "7"), "ip: expected str"))
    assert "ip: expected str" in found.why_refused
    assert found.patch == []
