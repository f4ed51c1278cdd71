"""The policy of `dnsproxy ip-mode`, judged by the real API servers of three versions: which writes it changes, and how.

On 1.36 it is what `kubectl apply -k deploy/components/ip-mode` applies; before, what `dnsproxy ip-mode` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import pytest

from tests.kit.ip_mode import (
    APPLY,
    JSON_PATCH,
    MERGE,
    SELECTED,
    STRATEGIC,
    Entry,
    Services,
    entries_of,
    release,
    server,
    services,
    status_of,
)

__all__ = ["release", "server", "services"]

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl")

ERROR: Final = "example.org/NoHealthCheck"
PORT: Final = {"port": 443, "protocol": "TCP", "error": ERROR}
CONDITION: Final = {
    "type": "example.org/Ready",
    "status": "True",
    "reason": "Programmed",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


SHAPES: Final[Mapping[str, Sequence[Entry]]] = {
    "no entry": [],
    "one address (MetalLB, GCP, Azure)": [{"ip": "192.0.2.80", "ipMode": "VIP"}],
    "no ipMode (providers before 1.30)": [{"ip": "192.0.2.80"}],
    "Proxy already (Hetzner, DigitalOcean)": [{"ip": "192.0.2.80", "ipMode": "Proxy"}],
    "several addresses (OpenStack, klipper)": [{"ip": f"192.0.2.{number}"} for number in (80, 81, 82)],
    "dual stack": [{"ip": "192.0.2.80", "ipMode": "VIP"}, {"ip": "2001:db8::80", "ipMode": "VIP"}],
    "IPv6 first, one entry is Proxy": [{"ip": "2001:db8::80", "ipMode": "Proxy"}, {"ip": "192.0.2.80"}],
    "a hostname alone (AWS)": [{"hostname": "lb.example.org"}],
    "a hostname and an address in one entry": [{"ip": "192.0.2.80", "hostname": "lb.example.org"}],
    "a hostname between addresses": [{"ip": "192.0.2.80"}, {"hostname": "lb.example.org"}, {"ip": "192.0.2.81"}],
    "ports with an error": [{"ip": "192.0.2.80", "ports": [PORT, {"port": 80, "protocol": "TCP"}]}],
    "ports of a hostname": [{"hostname": "lb.example.org", "ports": [PORT]}],
    "twice the same address": [{"ip": "192.0.2.80"}, {"ip": "192.0.2.80"}],
    "64 entries": [{"ip": f"198.51.100.{number}"} for number in range(64)],
    "1,000 entries": [{"ip": f"2001:db8::{number:x}"} for number in range(1, 1001)],
}


def put(services: Services, name: str, status: Mapping[str, Any]) -> Any:
    """As a cloud controller manager of before 1.22, and MetalLB, write."""
    whole = services.get(name) | {"status": status}
    return services.server.request("PUT", f"{services.path}/{name}/status", whole)


def patch(services: Services, name: str, status: Mapping[str, Any], *, content_type: str) -> Any:
    path = f"{services.path}/{name}/status"
    return services.server.request("PATCH", path, {"status": status}, content_type=content_type)


def json_patch(services: Services, name: str, status: Mapping[str, Any]) -> Any:
    operations = [{"op": "add", "path": f"/status/{key}", "value": value} for key, value in status.items()]
    return services.patch_status(name, operations, content_type=JSON_PATCH)


def apply(services: Services, name: str, status: Mapping[str, Any], *, manager: str = "provider") -> Any:
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "status": status}
    return services.patch_status(name, body, content_type=APPLY, query=f"?fieldManager={manager}")


Writer = Callable[[Services, str, Mapping[str, Any]], Any]
WRITERS: Final[Mapping[str, Writer]] = {
    "put": put,
    "merge patch": partial(patch, content_type=MERGE),
    "strategic merge patch": partial(patch, content_type=STRATEGIC),
    "JSON patch": json_patch,
    "apply": apply,
}

every_writer = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)


def with_mode(entries: Sequence[Entry], mode: str) -> list[Entry]:
    """The entries as they are stored: the API server itself writes VIP where an address has no ipMode."""
    return [{**entry, "ipMode": mode} if "ip" in entry else entry for entry in entries]


def as_without_policy(entries: Sequence[Entry]) -> list[Entry]:
    return [{"ipMode": "VIP", **entry} if "ip" in entry else entry for entry in entries]


@every_writer
def test_each_address_is_proxy_however_the_status_is_written_and_the_same_write_again_is_no_change(
    services: Services, write: Writer
) -> None:
    for shape, entries in SHAPES.items():
        name = services.create(annotations=SELECTED)
        before = services.get(name)
        write(services, name, status_of(entries))
        after = services.get(name)
        assert entries_of(after) == with_mode(entries, "Proxy"), shape
        assert after["spec"] == before["spec"], shape
        assert after["metadata"]["annotations"] == SELECTED, shape
        assert set(after["status"]) == {"loadBalancer"}, shape
        for _ in range(2):
            write(services, name, status_of(entries))
        assert services.get(name) == after, shape


OTHERS: Final[Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]] = {
    "nothing": ({}, {}),
    "another spelling": ({"switchback.dev/ip-mode": "proxy"}, {}),
    "a blank": ({"switchback.dev/ip-mode": " Proxy"}, {}),
    "VIP": ({"switchback.dev/ip-mode": "VIP"}, {}),
    "an empty value": ({"switchback.dev/ip-mode": ""}, {}),
    "an expression": ({"switchback.dev/ip-mode": "'Proxy'"}, {}),
    "another key": ({"switchback.dev/ip-Mode": "Proxy"}, {}),
    "a class that is not named": ({}, {"loadBalancerClass": "example.org/lb"}),
    "a class that is called Proxy": ({}, {"loadBalancerClass": "Proxy"}),
}
"""Annotations and spec of Services that are not selected."""
FEW: Final = ("dual stack", "a hostname between addresses")
"""The policy decides by a Service's annotations and class before it reads the status: for all but one Service these."""


@pytest.mark.parametrize("write", [put, json_patch], ids=["put", "JSON patch"])
def test_the_status_of_another_service_stays_octet_for_octet(services: Services, write: Writer) -> None:
    for other, (given, spec) in OTHERS.items():
        for shape in SHAPES if other == "nothing" else FEW:
            name = services.create(annotations=given, **spec)
            write(services, name, status_of(SHAPES[shape]))
            assert entries_of(services.get(name)) == as_without_policy(SHAPES[shape]), (other, shape)


def test_a_status_is_written_anew_by_an_empty_patch_and_a_dry_run_shows_it(services: Services) -> None:
    name = services.create()
    put(services, name, status_of([{"ip": "192.0.2.80"}]))
    annotate(services, name, SELECTED)
    path = f"{services.path}/{name}/status"
    before = services.get(name)
    assert entries_of(before) == [{"ip": "192.0.2.80", "ipMode": "VIP"}]
    shown = services.server.request("PATCH", f"{path}?dryRun=All", {}, content_type=MERGE)
    assert entries_of(shown) == [{"ip": "192.0.2.80", "ipMode": "Proxy"}]
    assert services.get(name) == before
    services.server.request("PATCH", path, {}, content_type=MERGE)
    assert entries_of(services.get(name)) == [{"ip": "192.0.2.80", "ipMode": "Proxy"}]


def annotate(services: Services, name: str, annotations: Mapping[str, str | None]) -> Any:
    """A write of the Service itself."""
    body = {"metadata": {"annotations": annotations}}
    return services.server.request("PATCH", f"{services.path}/{name}", body, content_type=MERGE)


def test_a_write_of_the_service_itself_changes_no_status(services: Services) -> None:
    name = services.create()
    put(services, name, status_of([{"ip": "192.0.2.80"}]))
    annotate(services, name, SELECTED)
    whole = services.get(name)
    whole["spec"]["externalTrafficPolicy"] = "Local"
    services.server.request("PUT", f"{services.path}/{name}", whole)
    assert entries_of(services.get(name)) == [{"ip": "192.0.2.80", "ipMode": "VIP"}]


def test_a_service_that_is_deselected_follows_the_provider_again(services: Services) -> None:
    name = services.create(annotations=SELECTED)
    put(services, name, status_of([{"ip": "192.0.2.80"}]))
    annotate(services, name, {"switchback.dev/ip-mode": None})
    assert entries_of(services.get(name)) == [{"ip": "192.0.2.80", "ipMode": "Proxy"}]
    put(services, name, status_of([{"ip": "192.0.2.80"}]))
    assert entries_of(services.get(name)) == [{"ip": "192.0.2.80", "ipMode": "VIP"}]


@every_writer
def test_the_other_parts_of_a_status_are_kept(services: Services, write: Writer) -> None:
    name = services.create(annotations=SELECTED)
    write(services, name, {**status_of([{"ip": "192.0.2.80", "ports": [PORT]}]), "conditions": [CONDITION]})
    status = services.get(name)["status"]
    assert status == {
        "loadBalancer": {"ingress": [{"ip": "192.0.2.80", "ipMode": "Proxy", "ports": [PORT]}]},
        "conditions": [CONDITION],
    }


@every_writer
def test_conditions_alone_are_written_as_they_are(services: Services, write: Writer) -> None:
    name = services.create(annotations=SELECTED)
    write(services, name, {"conditions": [CONDITION]})
    assert services.get(name)["status"] == {"loadBalancer": {}, "conditions": [CONDITION]}


UNBALANCED: Final[Sequence[Mapping[str, str]]] = (
    {"type": "ClusterIP"},
    {"type": "ClusterIP", "clusterIP": "None"},
    {"type": "NodePort"},
    {"type": "ExternalName", "externalName": "www.example.org"},
)


@every_writer
def test_a_service_without_a_load_balancer_is_treated_as_without_the_policy(services: Services, write: Writer) -> None:
    for spec in UNBALANCED:
        answers = []
        for given in ({}, SELECTED):
            name = services.create(annotations=given, **spec)
            write(services, name, {"conditions": [CONDITION]})
            assert services.get(name)["status"] == {"loadBalancer": {}, "conditions": [CONDITION]}, spec
            with pytest.raises(AssertionError, match="422") as refusal:
                write(services, name, status_of([{"ip": "192.0.2.80", "ipMode": "VIP"}]))
            answers.append(str(refusal.value).replace(name, "NAME"))
        without, selected = answers
        assert "may only be used when `spec.type` is" in without, spec
        assert selected.replace('"Proxy"', '"VIP"') == without, spec


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"ip": "192.0.2.256"}, id="no address"),
        pytest.param({"hostname": "lb.example.org", "ipMode": "VIP"}, id="a hostname with a mode"),
        pytest.param({"ipMode": "Proxy"}, id="a mode of nothing"),
        pytest.param({"ip": "", "ipMode": "VIP"}, id="an empty address"),
    ],
)
def test_a_status_that_the_api_server_refuses_is_refused_for_its_own_fault(services: Services, entry: Entry) -> None:
    name = services.create(annotations=SELECTED)
    before = services.get(name)
    with pytest.raises(AssertionError, match=r"422 .*status\.loadBalancer\.ingress\[0\]"):
        put(services, name, status_of([entry]))
    assert services.get(name) == before


def test_the_field_manager_of_an_apply_keeps_its_fields_and_has_no_conflict_later(services: Services) -> None:
    name = services.create(annotations=SELECTED)
    apply(services, name, status_of([{"ip": "192.0.2.80"}]))
    owners = [one for one in services.get(name)["metadata"]["managedFields"] if one.get("subresource") == "status"]
    assert [(one["manager"], one["operation"]) for one in owners] == [("provider", "Apply")]
    for address in ("192.0.2.81", "192.0.2.82"):
        apply(services, name, status_of([{"ip": address}]))
        assert entries_of(services.get(name)) == [{"ip": address, "ipMode": "Proxy"}]
    with pytest.raises(AssertionError, match=r'409 .*conflict with "provider"'):
        apply(services, name, status_of([{"ip": "192.0.2.83"}]), manager="other")
    apply(services, name, {})
    assert entries_of(services.get(name)) == []


def test_the_writer_of_a_status_is_named_as_without_the_policy(services: Services) -> None:
    for given in ({}, SELECTED):
        name = services.create(annotations=given)
        path = f"{services.path}/{name}/status?fieldManager=cloud-controller-manager"
        status = {"status": status_of([{"ip": "192.0.2.80"}])}
        services.server.request("PATCH", path, status, content_type=STRATEGIC)
        (owner,) = (one for one in services.get(name)["metadata"]["managedFields"] if one.get("subresource"))
        assert (owner["manager"], owner["subresource"]) == ("cloud-controller-manager", "status")
        assert owner["fieldsV1"] == {"f:status": {"f:loadBalancer": {"f:ingress": {}}}}
