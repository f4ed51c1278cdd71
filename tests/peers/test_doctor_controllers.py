"""The doctor on controllers that are hard to find, and on those that a load balancer's address does not lead to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from tests.kit.doctor_stage.objects import (
    BALANCER,
    CONTROLLER,
    HEADER,
    KEY,
    NO_HEADER,
    Object,
    endpoint_slice,
    ingress,
    ingress_class,
    nginx_controller,
    node,
    point,
    service,
)
from tests.kit.doctor_stage.servers import Fate, Server
from tests.kit.doctor_stage.stage import PEERS, Stage, stage
from tests.kit.doctor_stage.states import (
    HOST,
    NO_RELAY,
    RELAY,
    RELAY_STEP,
    State,
    differences,
    healthy,
    table,
    wrong,
)
from tests.kit.networks import root

pytestmark = pytest.mark.peer(*PEERS)

__all__ = ["root", "stage"]

NAME: Final = "lb.example.org"
STALE: Final = "198.51.100.9"
"""An address in a status, which no Service has and nobody answers."""
OUTSIDE: Final = "198.51.100.80"
NODE: Final = "192.0.2.11"
SECOND_CONTROLLER: Final = "10.96.0.81"
SECOND_BALANCER: Final = "203.0.113.20"
SECOND_HOST: Final = "internal.example.org"
ROUTER: Final = BALANCER
"""The public address of a network without a load balancer: its router sends ports 80 and 443 to the nodes."""
DIRECT: Final = f"DNSPROXY_TARGET_FOR=nginx=service:{KEY}"
MEND: Final = "kubectl -n ingress-nginx get endpointslices,pods"
NLB: Final = {"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"}
HETZNER: Final = {"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}

ADMISSION: Final = service(f"{KEY}-admission", "10.96.0.90", kind="ClusterIP", ports={"https-webhook": 443})
"""The Service of ingress-nginx's webhook, which has the labels and the selector of the controller's Service."""
BARE_METAL: Final = (*nginx_controller(kind="NodePort"), ADMISSION)
BARE_METAL_PLAIN: Final = (*nginx_controller(kind="NodePort", settings=NO_HEADER), ADMISSION)
HEADED: Final = (*nginx_controller(point(BALANCER)), ADMISSION, ingress(HOST, BALANCER))
PLAIN: Final = (*nginx_controller(point(BALANCER), settings=NO_HEADER), ADMISSION, ingress(HOST, BALANCER))
PLAIN_NAMED: Final = (*nginx_controller(point(NAME), settings=NO_HEADER), ADMISSION, ingress(HOST, NAME))
EDGE: Final = (ingress_class("edge", "example.org/edge"), ingress(HOST, STALE, class_name="edge"))
"""A controller without a Service that the doctor could find."""
SECOND: Final = (
    *nginx_controller(
        point(SECOND_BALANCER),
        settings=NO_HEADER,
        key="internal/controller",
        cluster_ip=SECOND_CONTROLLER,
        class_name="internal",
    ),
    ingress(SECOND_HOST, SECOND_BALANCER, name="office", class_name="internal"),
)
"""Another controller with a host of its own."""


def _local(settings: Mapping[str, str]) -> tuple[Object, ...]:
    """externalTrafficPolicy: Local, and no pod of the controller on the node of the pod."""
    made = nginx_controller(point(BALANCER), externalTrafficPolicy="Local", settings=settings)
    return (*made, ADMISSION, ingress(HOST, BALANCER))


HIDDEN: Final = (
    State(
        name="NodePort, an empty status, and the router serves pods",
        objects=(*BARE_METAL_PLAIN, ingress(HOST)),
        at={CONTROLLER: Server.REJECTS, ROUTER: Server.REJECTS},
        dns={HOST: (ROUTER,)},
        expected=healthy("reached", untold=("no-road",), no_advice=NO_RELAY),
    ),
    State(
        name="NodePort, an empty status, and a proxy in front adds the header",
        objects=(*BARE_METAL, ingress(HOST)),
        at={CONTROLLER: Server.REQUIRES, ROUTER: Server.BALANCER},
        dns={HOST: (ROUTER,)},
        expected=healthy("reached", "header-required", untold=("no-road",), no_advice=NO_RELAY),
    ),
    State(
        name="NodePort, an empty status, and the router leaves the header out",
        objects=(*BARE_METAL, ingress(HOST)),
        at={CONTROLLER: Server.REQUIRES, ROUTER: Server.REQUIRES},
        dns={HOST: (ROUTER,)},
        expected=wrong("header-lost", told=("header-required",), untold=("no-road",), advice=(RELAY,)),
    ),
    State(
        name="NodePort, an empty status, and the router has no loopback",
        objects=(*BARE_METAL, ingress(HOST)),
        at={CONTROLLER: Server.REQUIRES, ROUTER: Fate.UNREACHABLE},
        dns={HOST: (ROUTER,)},
        expected=wrong("no-loopback", told=("header-required",), advice=(RELAY,)),
    ),
    State(
        name="NodePort, a stale status, and the router has no loopback",
        objects=(*BARE_METAL_PLAIN, ingress(HOST, STALE)),
        at={CONTROLLER: Server.REJECTS, ROUTER: Fate.UNREACHABLE, STALE: Fate.UNREACHABLE},
        dns={HOST: (ROUTER,)},
        expected=wrong("no-loopback", advice=(DIRECT,), no_advice=(RELAY_STEP,)),
    ),
    State(
        name="NodePort, a stale status, and the router serves pods",
        objects=(*BARE_METAL_PLAIN, ingress(HOST, STALE)),
        at={CONTROLLER: Server.REJECTS, ROUTER: Server.REJECTS, STALE: Fate.UNREACHABLE},
        dns={HOST: (ROUTER,)},
        expected=healthy("reached", no_advice=NO_RELAY),
    ),
    State(
        name="NodePort, node addresses in the status, and they serve pods",
        objects=(*BARE_METAL_PLAIN, ingress(HOST, NODE)),
        at={CONTROLLER: Server.REJECTS, NODE: Server.REJECTS},
        dns={HOST: (NODE,)},
        expected=healthy("reached", no_advice=NO_RELAY),
    ),
    State(
        name="NodePort, node addresses in the status, and the controller requires the header",
        objects=(*BARE_METAL, ingress(HOST, NODE)),
        at={CONTROLLER: Server.REQUIRES, NODE: Server.REQUIRES},
        dns={HOST: (NODE,)},
        expected=wrong("header-lost", told=("header-required",), advice=(RELAY,)),
    ),
    State(
        name="a load balancer that is not there yet",
        objects=(*nginx_controller(), ADMISSION, ingress(HOST)),
        at={CONTROLLER: Server.REQUIRES},
        dns={},
        expected=wrong("no-record", told=("header-required",)),
    ),
    State(
        name="no Service is found, and the address in the status serves pods",
        objects=EDGE,
        at={STALE: Server.REJECTS},
        dns={HOST: (STALE,)},
        expected=healthy("reached", "no-road", no_advice=NO_RELAY),
    ),
    State(
        name="no Service is found, and the address in the status resets connections",
        objects=EDGE,
        at={STALE: Server.RESETS},
        dns={HOST: (STALE,)},
        expected=wrong("answer-unserved", told=("no-road",), evidence=(STALE,), no_advice=NO_RELAY),
    ),
)
"""Controllers that no status names."""

UNLED: Final = (
    State(
        name="loopback: a load balancer that pods cannot dial, and a controller without the header",
        objects=PLAIN_NAMED,
        at={CONTROLLER: Server.REJECTS, BALANCER: Fate.UNREACHABLE},
        dns={HOST: (BALANCER,), NAME: (BALANCER,)},
        expected=wrong("balancer-unserved", advice=(DIRECT,), no_advice=(RELAY_STEP,)),
    ),
    State(
        name="loopback: a load balancer that resets pods, and a controller without the header",
        objects=PLAIN_NAMED,
        at={CONTROLLER: Server.REJECTS, BALANCER: Server.RESETS},
        dns={HOST: (BALANCER,), NAME: (BALANCER,)},
        expected=wrong("balancer-unserved", advice=(DIRECT,), no_advice=(RELAY_STEP,)),
    ),
    State(
        name="Local without an endpoint here, and a controller without the header",
        objects=_local(NO_HEADER),
        at={CONTROLLER: Server.REJECTS, BALANCER: Fate.DROPPED},
        dns={HOST: (BALANCER,)},
        expected=wrong(
            "balancer-unserved",
            advice=(DIRECT,),
            no_advice=(RELAY_STEP,),
            evidence=("externalTrafficPolicy", f"{CONTROLLER}:80"),
        ),
    ),
    State(
        name="Local without an endpoint here, and a controller that requires the header",
        objects=_local(HEADER),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Fate.DROPPED},
        dns={HOST: (BALANCER,)},
        expected=wrong("balancer-unserved", told=("header-required",), advice=(RELAY,), no_advice=(DIRECT,)),
    ),
    State(
        name="an NLB of AWS that drops pods, and a controller without the header",
        objects=(
            *nginx_controller(point(NAME), settings=NO_HEADER, annotations=NLB),
            ADMISSION,
            ingress(HOST, NAME),
            node("aws:///eu-central-1a/i-1"),
        ),
        at={CONTROLLER: Server.REJECTS, BALANCER: Fate.UNREACHABLE},
        dns={HOST: (BALANCER,), NAME: (BALANCER,)},
        expected=wrong("nlb-loopback", advice=("preserve_client_ip", DIRECT), no_advice=(RELAY_STEP,)),
    ),
    State(
        name="an NLB of AWS that served a pod this time, and a controller without the header",
        objects=(
            *nginx_controller(point(NAME), settings=NO_HEADER, annotations=NLB),
            ADMISSION,
            ingress(HOST, NAME),
            node("aws:///eu-central-1a/i-1"),
        ),
        at={CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS},
        dns={HOST: (BALANCER,), NAME: (BALANCER,)},
        expected=wrong("nlb-loopback", advice=("preserve_client_ip", DIRECT), no_advice=(RELAY_STEP,)),
    ),
    State(
        name="a load balancer that adds the header, which the controller rejects",
        objects=(
            *nginx_controller(point(BALANCER, "Proxy"), settings=NO_HEADER, annotations=HETZNER),
            ADMISSION,
            ingress(HOST, BALANCER),
        ),
        at={CONTROLLER: Server.REJECTS, BALANCER: Server.BALANCER_OF_REJECTS},
        dns={HOST: (BALANCER,)},
        expected=wrong("header-unwanted", "balancer-unserved", no_advice=(RELAY_STEP,)),
    ),
)
"""Controllers that serve pods at their own Service, but not by the load balancer."""

DOWN: Final = (
    State(
        name="a dead controller",
        objects=HEADED,
        at={CONTROLLER: Fate.REFUSED, BALANCER: Fate.REFUSED},
        dns={HOST: (BALANCER,)},
        expected=wrong("controller-dead", advice=(MEND,), no_advice=(*NO_RELAY, DIRECT)),
    ),
    State(
        name="a controller that is scaled to zero",
        objects=(
            *nginx_controller(point(BALANCER), replicas=0),
            ADMISSION,
            endpoint_slice(KEY),
            ingress(HOST, BALANCER),
        ),
        at={CONTROLLER: Fate.REFUSED, BALANCER: Fate.REFUSED},
        dns={HOST: (BALANCER,)},
        expected=wrong("controller-dead", advice=(MEND,), no_advice=(*NO_RELAY, DIRECT)),
    ),
    State(
        name="a controller that hangs",
        objects=HEADED,
        at={CONTROLLER: Server.SILENT, BALANCER: Server.SILENT},
        dns={HOST: (BALANCER,)},
        expected=wrong("controller-silent", advice=(MEND,), no_advice=(*NO_RELAY, DIRECT)),
    ),
    State(
        name="a controller that resets all connections",
        objects=PLAIN,
        at={CONTROLLER: Server.RESETS, BALANCER: Server.RESETS},
        dns={HOST: (BALANCER,)},
        expected=wrong("controller-silent", advice=(MEND,), no_advice=(*NO_RELAY, DIRECT)),
    ),
    State(
        name="all hosts, and one of two controllers resets all connections",
        host="",
        objects=(*PLAIN, *SECOND),
        at={
            CONTROLLER: Server.REJECTS,
            BALANCER: Server.REJECTS,
            SECOND_CONTROLLER: Server.RESETS,
            SECOND_BALANCER: Server.RESETS,
        },
        dns={HOST: (BALANCER,), SECOND_HOST: (SECOND_BALANCER,)},
        expected=wrong(
            "controller-silent",
            told=("short-circuit-harmless",),
            untold=("not-needed",),
            advice=("kubectl -n internal get endpointslices,pods",),
            no_advice=NO_RELAY,
        ),
    ),
    State(
        name="a controller that answers 400 to everything",
        objects=PLAIN,
        at={CONTROLLER: Server.BAD_REQUEST, BALANCER: Server.BAD_REQUEST},
        dns={HOST: (BALANCER,)},
        expected=wrong("balancer-unserved", evidence=("400",), no_advice=(*NO_RELAY, DIRECT)),
    ),
    State(
        name="a dead controller, and its load balancer answers 503",
        objects=PLAIN,
        at={CONTROLLER: Fate.REFUSED, BALANCER: Server.UNAVAILABLE},
        dns={HOST: (BALANCER,)},
        expected=wrong(
            "controller-dead",
            "server-error",
            untold=("short-circuit-harmless",),
            advice=(MEND,),
            no_advice=(*NO_RELAY, DIRECT),
        ),
    ),
    State(
        name="a dead controller, and DNS leads to a server outside that serves pods",
        objects=PLAIN,
        at={CONTROLLER: Fate.REFUSED, BALANCER: Fate.REFUSED, OUTSIDE: Server.BALANCER},
        dns={HOST: (OUTSIDE,)},
        expected=healthy("reached", "controller-dead", no_advice=NO_RELAY),
    ),
    State(
        name="a Service without endpoints, and the nodes serve pods",
        objects=(*BARE_METAL_PLAIN, endpoint_slice(KEY), ingress(HOST, NODE)),
        at={CONTROLLER: Fate.REFUSED, NODE: Server.REJECTS},
        dns={HOST: (NODE,)},
        expected=healthy("reached", "controller-dead", no_advice=NO_RELAY),
    ),
)
"""Controllers that serve nobody: no address and no relay replaces them."""


@table(*HIDDEN, *UNLED, *DOWN)
def test_the_verdict(stage: Stage, state: State) -> None:
    assert differences(stage.play(state), state.expected) == []
