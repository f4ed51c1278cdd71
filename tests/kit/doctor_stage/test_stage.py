"""States do not see one another: objects, DNS and rules of one are gone before the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from tests.kit.doctor_stage.objects import BALANCER, CONTROLLER, ingress, nginx_controller, point
from tests.kit.doctor_stage.servers import Server
from tests.kit.doctor_stage.stage import PEERS, Stage, stage
from tests.kit.doctor_stage.states import HOST, State, differences, wrong
from tests.kit.networks import root

pytestmark = pytest.mark.peer(*PEERS)

__all__ = ["root", "stage"]

COLLECTIONS: Final = (
    "/api/v1/nodes",
    "/api/v1/services",
    "/apis/apps/v1/daemonsets",
    "/apis/apps/v1/deployments",
    "/apis/networking.k8s.io/v1/ingressclasses",
    "/apis/networking.k8s.io/v1/ingresses",
)
STATE: Final = State(
    name="short-circuited",
    objects=(*nginx_controller(point(BALANCER)), ingress(HOST, BALANCER)),
    at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES},
    dns={HOST: (BALANCER,)},
    expected=wrong("short-circuited"),
)


def objects(stage: Stage) -> list[str]:
    with stage.network.entered():
        found = [one for path in COLLECTIONS for one in stage.api.request("GET", path)["items"]]
    return [one["metadata"]["name"] for one in found]


def test_a_state_leaves_no_object_and_can_be_played_again(stage: Stage) -> None:
    assert differences(stage.play(STATE), STATE.expected) == []
    assert objects(stage) == ["kubernetes"]
    assert differences(stage.play(STATE), STATE.expected) == []


def test_the_next_state_has_its_own_dns_and_its_own_rules(stage: Stage) -> None:
    stage.play(STATE)
    other = replace(STATE, at={CONTROLLER: Server.ACCEPTS, BALANCER: Server.ACCEPTS}, public={HOST: ("192.0.2.9",)})
    road = stage.play(other).document["road"]
    assert any("192.0.2.9" in line for line in road)
    assert stage.play(other).status == 0


def test_a_state_with_an_invalid_object_fails_and_leaves_nothing(stage: Stage) -> None:
    with pytest.raises(AssertionError, match="not-an-address"):
        stage.play(replace(STATE, objects=(*STATE.objects, ingress("other.example.org", "::not-an-address", name="b"))))
    assert objects(stage) == ["kubernetes"]
