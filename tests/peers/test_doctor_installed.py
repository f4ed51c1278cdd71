"""The doctor after the installation: dnsproxy runs, the stanza is written and loaded or not, and the relay serves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

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
OTHER: Final = "10.96.0.95"
"""The address of another tool's relay."""
STATUS: Final = "kubectl -n switchback exec deploy/operate -- dnsproxy status"
STEERED: Final = replace(
    LOADED,
    name="steered by a route Service",
    objects=(*nginx_controller(point(BALANCER), settings=HEADER), endpoint_slice(KEY, "10.244.1.10"),
             ingress(HOST, BALANCER), *steering(), corefile_object()),
    dnsproxy=("--target", "auto", "--routes-namespace", "switchback"),
)  # fmt: skip


def hosts_line(address: str) -> str:
    return f"    hosts {{\n        {address} {HOST}\n        fallthrough\n    }}\n"


def beside(line: str, **fields: Any) -> State:
    """The same with a line of others in the Corefile."""
    objects = (*installed()[:-1], corefile_object(line=line))
    return replace(LOADED, objects=objects, corefile=loaded_corefile(line), **fields)


BESIDE: Final = (
    beside(
        hosts_line(BALANCER),
        name="loaded, and a line of others gives the load balancer's address",
        expected=wrong(
            *("answered-before", "short-circuited"),
            said=(f"hosts (Corefile in ConfigMap kube-system/coredns, line 7) answers {HOST} before the stanza",),
            evidence=(f"{BALANCER} {HOST}", f"dnsproxy answers {HOST} with {RELAY}"),
            advice=("kubectl -n kube-system edit configmap coredns",),
        ),
    ),
    beside(
        hosts_line(CONTROLLER),
        name="loaded, all hosts, and a line of others gives the controller's own address",
        host="",
        expected=wrong("answered-before", "header-lost", evidence=(f"{CONTROLLER} {HOST}",)),
    ),
    beside(
        hosts_line(OTHER),
        name="loaded, and a line of others leads to a relay of theirs",
        at={**LOADED.at, OTHER: Server.BALANCER},
        expected=healthy("answered-before", "loaded", said=("this answer serves pods",)),
    ),
    beside(
        hosts_line(RELAY),
        name="loaded, and a line of others gives the relay's address",
        expected=replace(LOADED.expected, untold=("answered-before",)),
    ),
    beside(
        f"    rewrite name {HOST} other.example.org\n",
        name="loaded, and a rewrite leads to a name without a record",
        expected=wrong("answered-before", "no-record", said=("rewrite (Corefile in ConfigMap kube-system/coredns",)),
    ),
    beside(
        hosts_line(BALANCER),
        name="a line of others, looked at from outside",
        arguments=(),
        expected=wrong("answered-before", said=("was not seen",)),
    ),
    beside(
        hosts_line(BALANCER),
        name="a line of others in a ConfigMap that cannot be read",
        denied=("configmaps",),
        expected=wrong(
            *("not-answered", "short-circuited"), untold=("answered-before", "line-answers"), unseen=("get configmaps",)
        ),
    ),
    replace(
        LOADED,
        name="not installed, and a line of others leads to a relay of theirs",
        objects=(*nginx_controller(point(BALANCER), settings=HEADER), endpoint_slice(KEY, "10.244.1.10"),
                 ingress(HOST, BALANCER), corefile_object(written=False, line=hosts_line(OTHER))),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES, OTHER: Server.BALANCER},
        corefile=loaded_corefile(hosts_line(OTHER), written=False),
        dnsproxy=(),
        expected=healthy("line-answers", "reached", untold=("answered-before",), no_advice=NO_RELAY),
    ),
)  # fmt: skip
STATES: Final = (
    *BESIDE,
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
