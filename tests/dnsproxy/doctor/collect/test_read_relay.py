"""The relay as the doctor reads it: one Service, or the route Services where dnsproxy answers with these."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dnsproxy.doctor.facts.model import OwnService, Port, RouteService
from tests.dnsproxy.doctor.collect.cluster_api import Api, workload

BASE: Final = "/api/v1/namespaces/switchback"
SLICES: Final = "/apis/discovery.k8s.io/v1/namespaces/switchback/endpointslices"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/switchback/deployments"
DAEMON_SETS: Final = "/apis/apps/v1/namespaces/switchback/daemonsets"


def route(name: str, address: str, relay_to: str | None = "web/controller", **annotations: str) -> Any:
    """A Service of our namespace; without `relay_to` it is no route."""
    found = {"switchback.dev/relay-to": relay_to} if relay_to is not None else {}
    return {
        "metadata": {"name": name, "namespace": "switchback", "annotations": found | annotations},
        "spec": {"clusterIP": address, "selector": {"app": "relay"}, "ports": [{"port": 443, "name": "port-443"}]},
    }


def pods(service: str, *addresses: str, ready: bool = True) -> Any:
    endpoints = [
        {"addresses": [one], "conditions": {"ready": ready}, "targetRef": {"kind": "Pod", "name": f"relay-{one}"}}
        for one in addresses
    ]
    labels = {"kubernetes.io/service-name": service}
    return {"metadata": {"name": f"{service}-1", "labels": labels}, "endpoints": endpoints}


def cluster(target: str, *services: Any, slices: Any = (), **more: Any) -> dict[str, Any]:
    """An installation whose target is this."""
    own = {
        "metadata": {"name": "dnsproxy", "namespace": "switchback"},
        "spec": {"clusterIP": "10.96.0.53", "ports": [{"port": 53}], "selector": {"app": "dnsproxy"}},
    }
    env = [{"name": "DNSPROXY_TARGET", "value": target}]
    found = {
        f"{BASE}/services/dnsproxy": own,
        f"{BASE}/services": [own, *services],
        SLICES: list(slices),
        DEPLOYMENTS: [workload("dnsproxy", namespace="switchback", env=env), workload("relay", namespace="switchback")],
    }
    return found | more


async def relay_of(objects: dict[str, Any], **options: Any) -> OwnService:
    seen = await Api(objects, **options).read()
    assert seen.relay is not None
    return seen.relay


async def test_the_route_services_are_read_as_one_relay_with_the_pods_of_all() -> None:
    slices = [
        pods("relay-b", "10.244.0.6"),
        pods("relay-a", "10.244.0.6", "10.244.0.7"),
        pods("dnsproxy", "10.244.0.5"),
    ]
    services = [route("relay-b", "10.96.0.91", "web/two"), route("relay-a", "10.96.0.90")]
    services += [route("other", "10.96.0.92", None)]
    found = await relay_of(cluster("auto", *services, slices=slices))
    ports = (Port(443, "port-443"),)
    assert found.routes == (
        RouteService("switchback/relay-a", "web/controller", ("10.96.0.90",), ports),
        RouteService("switchback/relay-b", "web/two", ("10.96.0.91",), ports),
    )
    assert (found.found, found.addresses, found.ports) == (True, ("10.96.0.90", "10.96.0.91"), ())
    assert (found.ready, found.pods) == (2, ("10.244.0.6", "10.244.0.7"))
    assert found.pod_names == ("relay-10.244.0.6", "relay-10.244.0.7")


@pytest.mark.parametrize("relay_to", ["", "controller", "a/b/c", "web/", "WEB/x"])
async def test_a_route_that_names_no_service_leads_to_nowhere(relay_to: str) -> None:
    (one,) = (await relay_of(cluster("auto", route("relay-a", "10.96.0.90", relay_to)))).routes
    assert one.backend == ""


@pytest.mark.parametrize(
    ("value", "backend", "ports"),
    [
        ("8080=git/pages", "web/controller", [443]),
        ("", "web/controller", [443, 8080]),
        ("8080", "", [443, 8080]),
    ],
    ids=["another Service", "empty", "not understood"],
)
async def test_a_port_of_another_service_is_none_of_the_backend(value: str, backend: str, ports: list[int]) -> None:
    lent = route("relay-a", "10.96.0.90", **{"switchback.dev/port-backends": value})
    lent["spec"]["ports"].append({"port": 8080, "name": "port-8080"})
    (one,) = (await relay_of(cluster("auto", lent))).routes
    assert (one.backend, [port.port for port in one.ports]) == (backend, ports)


async def test_without_a_route_service_nothing_is_steered_and_no_relay_is_missing() -> None:
    found = await relay_of(cluster("auto", route("other", "10.96.0.92", None)))
    assert (found.found, found.routes, found.addresses, found.ready) == (True, (), (), None)


async def test_pods_that_are_not_ready_are_counted_as_such() -> None:
    slices = [pods("relay-a", "10.244.0.6", ready=False)]
    found = await relay_of(cluster("auto", route("relay-a", "10.96.0.90"), slices=slices))
    assert (found.ready, found.pods) == (0, ("10.244.0.6",))


@pytest.mark.parametrize("path", [f"{BASE}/services", SLICES])
async def test_a_right_that_is_missing_is_no_absence(path: str) -> None:
    found = await relay_of(cluster("auto", route("relay-a", "10.96.0.90")), status={path: 403})
    assert (found.found, found.ready) == ((None, None) if path != SLICES else (True, None))


async def test_the_namespace_of_the_route_services_is_dnsproxys_setting() -> None:
    env = [{"name": "DNSPROXY_TARGET", "value": "auto"}, {"name": "DNSPROXY_ROUTES_NAMESPACE", "value": "relays"}]
    objects = cluster("auto") | {
        DEPLOYMENTS: [workload("dnsproxy", namespace="switchback", env=env)],
        "/api/v1/namespaces/relays/services": [route("relay-a", "10.96.0.90")],
    }
    found = await relay_of(objects)
    assert (found.key, found.addresses) == ("relays/relay", ("10.96.0.90",))


@pytest.mark.parametrize("target", ["service:switchback/relay", "", "192.0.2.1", "status"])
async def test_with_another_target_one_service_is_the_relay(target: str) -> None:
    one = route("relay", "10.96.0.90", None)
    found = await relay_of(cluster(target, route("relay-a", "10.96.0.91")) | {f"{BASE}/services/relay": one})
    assert (found.key, found.addresses, found.routes) == ("switchback/relay", ("10.96.0.90",), ())


async def test_the_settings_of_a_dnsproxy_on_every_node_are_read_too() -> None:
    env = [{"name": "DNSPROXY_TARGET", "value": "auto"}]
    objects = cluster("", route("relay-a", "10.96.0.90")) | {
        DEPLOYMENTS: [workload("relay", namespace="switchback")],
        DAEMON_SETS: [workload("dnsproxy", namespace="switchback", env=env)],
    }
    assert [one.key for one in (await relay_of(objects)).routes] == ["switchback/relay-a"]
