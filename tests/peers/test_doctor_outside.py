"""The doctor outside the cluster: what it cannot dial is not known; its file can be judged in a pod, and elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from tests.kit.doctor_stage.objects import (
    BALANCER,
    CONTROLLER,
    KEY,
    NO_HEADER,
    endpoint_slice,
    ingress,
    nginx_controller,
    point,
)
from tests.kit.doctor_stage.servers import Fate, Server
from tests.kit.doctor_stage.stage import PEERS, Stage, stage
from tests.kit.doctor_stage.states import HOST, NO_RELAY, RELAY, State, differences, healthy, not_known, table, wrong
from tests.kit.networks import root

pytestmark = pytest.mark.peer(*PEERS)

__all__ = ["root", "stage"]

NAME: Final = "lb.example.org"
OTHER: Final = "other.example.org"
INSIDE: Final = "dnsproxy doctor --from - --probe < facts.json"
"""How to look from a pod."""
NOT_SEEN: Final = "nothing was dialled from this machine"
SERVED: Final = State(
    name="outside, and pods would be served",
    objects=(*nginx_controller(point(BALANCER, "Proxy")), ingress(HOST, BALANCER)),
    at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER},
    dns={HOST: (BALANCER,), OTHER: (BALANCER,), NAME: (BALANCER,)},
    arguments=(),
    expected=not_known(NOT_SEEN, untold=("reached", "not-needed"), advice=(INSIDE,), no_advice=NO_RELAY),
)
SHORT: Final = replace(
    SERVED,
    name="outside, a declared header behind a short-circuited address",
    objects=(*nginx_controller(point(BALANCER)), ingress(HOST, BALANCER)),
    at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES},
    expected=wrong("short-circuited", advice=(RELAY, "rollout status")),
)
PLAIN: Final = replace(
    SERVED,
    name="outside, no header behind a short-circuited address",
    objects=(*nginx_controller(point(BALANCER), settings=NO_HEADER), ingress(HOST, BALANCER)),
    at={CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS},
    expected=not_known(NOT_SEEN, untold=("short-circuit-harmless", "not-needed"), advice=(INSIDE,), no_advice=NO_RELAY),
)
OUTSIDE: Final = (
    SERVED,
    replace(SERVED, name="outside, all hosts", host=""),
    replace(
        SERVED,
        name="outside, a hostname in the status",
        objects=(*nginx_controller(point(NAME)), ingress(HOST, NAME)),
    ),
    SHORT,
    replace(SHORT, name="outside, a declared header, all hosts", host=""),
    PLAIN,
    replace(
        PLAIN,
        name="outside, no header, and no pod of the controller",
        objects=(*PLAIN.objects, endpoint_slice(KEY)),
        at={CONTROLLER: Fate.REFUSED, BALANCER: Fate.REFUSED},
    ),
    replace(
        SERVED,
        name="outside, a host that no object serves",
        host="unknown.example.org",
        expected=wrong("host-unknown", no_advice=NO_RELAY),
    ),
)
FILES: Final = (
    replace(SERVED, name="a file from outside, judged elsewhere", saved=(HOST,)),
    replace(SHORT, name="a file from outside, a declared header, judged elsewhere", saved=(HOST,)),
    replace(
        SERVED,
        name="a file from outside, judged in a pod that is served",
        saved=(HOST,),
        arguments=("--probe",),
        expected=healthy("reached", "header-required", no_advice=NO_RELAY),
    ),
    replace(
        SHORT,
        name="a file from outside, judged in a pod that fails",
        saved=(HOST,),
        arguments=("--probe",),
        expected=wrong("short-circuited", advice=(RELAY,)),
    ),
    replace(
        PLAIN,
        name="a file from outside, no header, judged in a pod whose controller is dead",
        saved=(HOST,),
        arguments=("--probe",),
        at={CONTROLLER: Fate.REFUSED, BALANCER: Fate.REFUSED},
        expected=wrong("controller-dead", no_advice=NO_RELAY),
    ),
    replace(
        SERVED,
        name="a file from a pod, judged elsewhere",
        saved=(HOST, "--probe"),
        expected=healthy("reached", "header-required", no_advice=NO_RELAY),
    ),
    replace(
        SERVED,
        name="a file from a pod about one host, judged for another one",
        objects=(*SERVED.objects, ingress(OTHER, BALANCER, name="other")),
        saved=(HOST, "--probe"),
        host=OTHER,
        expected=not_known(untold=("reached", "no-record"), advice=(INSIDE,), no_advice=NO_RELAY),
    ),
    replace(
        SERVED,
        name="a file from a pod about all hosts, judged for one",
        objects=(*SERVED.objects, ingress(OTHER, BALANCER, name="other")),
        saved=("--probe",),
        host=OTHER,
        expected=healthy("reached", no_advice=NO_RELAY),
    ),
)
STATES: Final = (*OUTSIDE, *FILES)


@table(*STATES)
def test_the_verdict(stage: Stage, state: State) -> None:
    assert differences(stage.play(state), state.expected) == []
