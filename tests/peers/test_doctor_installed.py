"""The doctor after the installation: dnsproxy runs, the stanza is written and loaded or not, and the relay serves."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from tests.kit.doctor_stage.installed import RELAY, TO_RELAY, corefile_object, loaded_corefile, steering, switchback
from tests.kit.doctor_stage.objects import (
    BALANCER,
    CONTROLLER,
    HEADER,
    KEY,
    NO_HEADER,
    Object,
    endpoint_slice,
    ingress,
    nginx_controller,
    point,
)
from tests.kit.doctor_stage.servers import Fate, Server
from tests.kit.doctor_stage.stage import PEERS, Stage, stage
from tests.kit.doctor_stage.states import HOST, NO_RELAY, State, differences, healthy, not_known, table, wrong
from tests.kit.networks import root

pytestmark = pytest.mark.peer(*PEERS)

__all__ = ["root", "stage"]

DIRECT: Final = f"service:{KEY}"
"""The controller's own Service as a target."""
PROXY: Final = point(BALANCER, "Proxy")


def installed(*points: dict[str, str], plain: bool = False, direct: bool = False) -> tuple[Object, ...]:
    """One controller, its host, and Switchback; `plain`: without the header, `direct`: led past the relay."""
    return (
        *nginx_controller(*(points or (point(BALANCER),)), settings=NO_HEADER if plain else HEADER),
        endpoint_slice(KEY, "10.244.1.10"),
        ingress(HOST, BALANCER),
        *switchback(target_for=f"nginx={DIRECT}" if direct else ""),
        corefile_object(),
    )


LOADED: Final = State(
    name="loaded, and the relay serves",
    objects=installed(),
    at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES, RELAY: Server.BALANCER},
    dns={HOST: (BALANCER,)},
    corefile=loaded_corefile(),
    dnsproxy=("--target", TO_RELAY),
    expected=healthy("loaded", "relayed", "short-circuit-answered", "header-required", no_advice=NO_RELAY),
)
LED: Final = replace(
    LOADED,
    name="a class that is led to its own Service, which takes no header",
    objects=installed(plain=True, direct=True),
    at={CONTROLLER: Server.REJECTS, BALANCER: Fate.UNREACHABLE, RELAY: Server.BALANCER_OF_REJECTS},
    dnsproxy=("--target", TO_RELAY, "--target-for", f"nginx={DIRECT}"),
    expected=healthy("loaded", "short-circuit-answered", no_advice=NO_RELAY),
)
STATUS: Final = "kubectl -n switchback exec deploy/operate -- dnsproxy status"
STEERED: Final = replace(
    LOADED,
    name="steered by a route Service",
    objects=(*nginx_controller(point(BALANCER), settings=HEADER), endpoint_slice(KEY, "10.244.1.10"),
             ingress(HOST, BALANCER), *steering(), corefile_object()),
    dnsproxy=("--target", "auto", "--routes-namespace", "switchback"),
)  # fmt: skip
STATES: Final = (
    LOADED,
    replace(LOADED, name="loaded, all hosts", host="", expected=replace(LOADED.expected, untold=("no-longer-needed",))),
    replace(
        LOADED,
        name="loaded, and the load balancer is dead for pods",
        at={**LOADED.at, BALANCER: Fate.UNREACHABLE},
    ),
    replace(
        LOADED,
        name="loaded, and the controller rejects the header since",
        objects=installed(plain=True),
        at={CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS, RELAY: Server.BALANCER_OF_REJECTS},
        expected=wrong(
            "relay-header-unwanted",
            "wrong-class",
            advice=(f"DNSPROXY_TARGET_FOR=nginx={DIRECT}",),
            no_advice=NO_RELAY,
        ),
    ),
    replace(
        LOADED,
        name="loaded, and the relay is dead",
        at={**LOADED.at, RELAY: Fate.REFUSED},
        expected=wrong("relay-unreachable", no_advice=NO_RELAY),
    ),
    replace(
        LOADED,
        name="loaded, and the controller behind the relay is dead",
        at={CONTROLLER: Fate.REFUSED, BALANCER: Fate.REFUSED, RELAY: Server.RESETS},
        expected=wrong(
            "controller-dead", "relay-unanswered", advice=("kubectl -n ingress-nginx get endpointslices,pods",)
        ),
    ),
    STEERED,
    replace(STEERED, name="steered, all hosts", host=""),
    replace(
        STEERED,
        name="steered, and nothing answers for the class",
        objects=(*STEERED.objects[: -len(steering()) - 1], *steering(subject="ingressclass/other"), corefile_object()),
        expected=wrong("not-answered", "short-circuited", advice=(STATUS,), no_advice=NO_RELAY),
    ),
    replace(
        STEERED,
        name="steered, and the relay is dead",
        at={**STEERED.at, RELAY: Fate.REFUSED},
        expected=wrong("relay-unreachable", no_advice=NO_RELAY),
    ),
    replace(
        STEERED,
        name="steered, and the controller rejects the header since",
        objects=(*nginx_controller(point(BALANCER), settings=NO_HEADER), *STEERED.objects[len(nginx_controller()) :]),
        at={CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS, RELAY: Server.BALANCER_OF_REJECTS},
        expected=wrong("relay-header-unwanted", advice=(STATUS,), no_advice=NO_RELAY),
    ),
    LED,
    replace(
        LED,
        name="a class that is led to its own Service, which takes both",
        at={CONTROLLER: Server.ACCEPTS, BALANCER: Fate.UNREACHABLE, RELAY: Server.ACCEPTS},
        expected=healthy("loaded", "takes-both", "short-circuit-answered", no_advice=NO_RELAY),
    ),
    replace(
        LED,
        name="a class that is led to its own Service, which requires the header",
        objects=installed(direct=True),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES, RELAY: Server.BALANCER},
        expected=wrong("header-lost"),
    ),
    replace(
        LOADED,
        name="written and not loaded",
        corefile="",
        expected=wrong("stanza-not-loaded", "short-circuited", no_advice=("kubectl apply -k deploy",)),
    ),
    replace(
        LOADED,
        name="deployed, and the stanza is not written",
        objects=(*LOADED.objects, corefile_object(written=False)),
        corefile="",
        expected=wrong("stanza-missing", "short-circuited", advice=("dnsproxy install",)),
    ),
    replace(
        LOADED,
        name="no longer needed, because the load balancer serves pods now",
        host="",
        objects=installed(PROXY),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER, RELAY: Server.BALANCER},
        expected=healthy("no-longer-needed", "relayed", no_advice=NO_RELAY),
    ),
    replace(
        LOADED,
        name="no longer needed, because the controller takes both now",
        host="",
        at={CONTROLLER: Server.ACCEPTS, BALANCER: Server.ACCEPTS, RELAY: Server.ACCEPTS},
        expected=healthy("no-longer-needed", "relayed", no_advice=NO_RELAY),
    ),
    replace(
        LOADED,
        name="loaded, and services cannot be read",
        denied=("services",),
        expected=not_known(
            "list services: forbidden", untold=("relay-missing", "dnsproxy-missing", "stanza-missing", "no-road")
        ),
    ),
    replace(
        LOADED,
        name="loaded, all hosts, and configmaps cannot be read",
        host="",
        objects=installed(PROXY),
        at={**LOADED.at, BALANCER: Server.BALANCER},
        denied=("configmaps",),
        expected=healthy("relayed", untold=("no-longer-needed", "not-needed"), unseen=("get configmaps",)),
    ),
    replace(LOADED, name="loaded, a file from outside that is judged in a pod", saved=(HOST,)),
    replace(
        LOADED,
        name="looked at from outside, short-circuited by its status",
        arguments=(),
        expected=not_known(untold=("short-circuited", "loaded", "relayed"), no_advice=NO_RELAY),
    ),
)


@table(*STATES)
def test_the_verdict(stage: Stage, state: State) -> None:
    assert differences(stage.play(state), state.expected) == []
