"""`dnsproxy operate` where Cilium carries the connections of pods: Gateways without endpoints, and its versions.

The programs are real, as in test_operate_distributions.py, except for Cilium: a rule of nft serves its ClusterIP.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.kit.doctor_stage.objects import cilium
from tests.kit.doctor_stage.servers import Server
from tests.kit.networks import root
from tests.kit.operate_stage.objects import WEB, service, vip
from tests.kit.operate_stage.stage import PEERS, Stage, stage
from tests.kit.operate_stage.states import NOTHING, RELAY, check, of_gateway, placeholder, playing, with_class

__all__ = ["root", "stage"]

pytestmark = pytest.mark.peer(*PEERS)

SERVED: Final = "10.96.200.1"
GATE: Final = (
    service("cilium-gateway-web", "infra", WEB, kind="LoadBalancer", points=vip("203.0.113.40"), clusterIP=SERVED),
    placeholder("cilium-gateway-web", "infra"),
)
PROXIED: Final = vip("203.0.113.42", mode="Proxy")


def test_a_gateway_that_cilium_serves_itself_is_relayed_through_its_cluster_ip(stage: Stage) -> None:
    # https://docs.cilium.io/en/stable/network/servicemesh/gateway-api/gateway-api/
    gate = of_gateway("gate", "infra/cilium-gateway-web", ("203.0.113.40",), RELAY, *GATE)
    dataplane = with_class("gke-dataplane-v2", "gke/nginx", Server.REQUIRES, vip("203.0.113.41"), RELAY)
    mode = with_class("ip-mode", "ip-mode/nginx", Server.REQUIRES, PROXIED, NOTHING)
    objects = (*gate.objects, *dataplane.objects, *mode.objects)
    with stage.serving(SERVED, Server.REQUIRES), playing(stage, *cilium("v1.18.3"), *objects):
        for state in (gate, dataplane, mode):
            check(stage, state)


def test_an_ip_mode_that_this_version_ignores_changes_nothing(stage: Stage) -> None:
    ignored = with_class("ip-mode", "ip-mode/nginx", Server.REQUIRES, PROXIED, RELAY)
    with playing(stage, *cilium("v1.18.0"), *ignored.objects):
        check(stage, ignored)
