"""What is wrong with route Services that somebody wrote."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dnsproxy.operate.decide.route_faults import Backend, find_route_faults, lasting_faults
from sidecar.kubernetes.relay_routes import RouteService

SELECTOR = (("app.kubernetes.io/name", "relay"),)
BACKENDS = {"git/ssh": Backend(frozenset([22])), "web/out": Backend(frozenset(), external=True)}


def service(name: str = "ssh", *, to: str = "git/ssh", **changes: Any) -> dict[str, RouteService]:
    metadata = {"name": name, "namespace": "switchback", "annotations": {"switchback.dev/relay-to": to}}
    spec = {"selector": dict(SELECTOR), "ports": [{"port": 22, "targetPort": 2222}], **changes}
    return {f"switchback/{name}": msgspec.convert({"metadata": metadata, "spec": spec}, RouteService)}


def faults(
    *services: dict[str, RouteService], backends: dict[str, Backend] | None = BACKENDS
) -> dict[str, tuple[str, ...]]:
    merged = {key: one for part in services for key, one in part.items()}
    return find_route_faults(merged, backends, relay_selector=SELECTOR)


def test_a_good_one_has_none() -> None:
    assert faults(service()) == {}
    assert faults(service(selector={"app.kubernetes.io/name": "relay"})) == {}


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        pytest.param(
            service("x", to="git/none", ports=[{"port": 22, "targetPort": 2223}]),
            "there is no Service git/none",
            id="unknown backend",
        ),
        pytest.param(
            service("x", to="web/out", ports=[{"port": 22, "targetPort": 2223}]),
            "Service web/out is an ExternalName",
            id="ExternalName",
        ),
        pytest.param(
            service("x", ports=[{"port": 2200, "targetPort": 2200}]),
            "Service git/ssh has no TCP port 2200",
            id="no such port",
        ),
        pytest.param(
            service("x", ports=[{"port": 22, "targetPort": "ssh"}]), "targetPort of port 22 is 'ssh'", id="name"
        ),
        pytest.param(
            service("x", ports=[{"port": 22, "targetPort": 8082}]), "which the relay needs itself", id="admin port"
        ),
        pytest.param(service("x", selector={"app": "git"}), "does not select the relay's pods", id="other pods"),
        pytest.param(service("x", selector=None), "does not select the relay's pods", id="no selector"),
        pytest.param(service("x", selector={}), "does not select the relay's pods", id="empty selector"),
        pytest.param(service("x", to="nonsense"), "is not NAMESPACE/NAME", id="no backend"),
        pytest.param(service("x", to="switchback/ssh"), "leads to this relay itself", id="our own relay"),
    ],
)
def test_a_fault_is_of_its_own_service_alone(bad: dict[str, RouteService], fault: str) -> None:
    found = faults(service("ssh"), bad)
    assert list(found) == ["switchback/x"]
    assert fault in "; ".join(found["switchback/x"])


def test_a_list_that_was_not_read_makes_no_fault() -> None:
    assert faults(service(to="git/none"), backends=None) == {}


def test_services_without_the_annotation_are_nobodys_business() -> None:
    plain = msgspec.convert({"metadata": {"name": "a", "namespace": "switchback"}}, RouteService)
    assert faults({"switchback/a": plain}) == {}


def test_a_fault_that_the_next_write_mends_is_not_lasting() -> None:
    found = faults(service("ssh", to="no/where"), service("web", to="no/where"))
    assert lasting_faults(found, changing={"switchback/ssh"}).keys() == {"switchback/web"}
    assert lasting_faults(found, changing=()) == found
