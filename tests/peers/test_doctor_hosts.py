"""The doctor on hosts that answer: with TLS or without, with errors, with odd certificates, under wildcards."""

from __future__ import annotations

from typing import Final

import pytest

from tests.kit.doctor_stage.objects import BALANCER, CONTROLLER, NO_HEADER, ingress, nginx_controller, point
from tests.kit.doctor_stage.servers import Fate, Server
from tests.kit.doctor_stage.stage import PEERS, Stage, stage
from tests.kit.doctor_stage.states import (
    HOST,
    NO_RELAY,
    RELAY,
    State,
    differences,
    healthy,
    not_known,
    table,
    wrong,
)
from tests.kit.networks import root

pytestmark = pytest.mark.peer(*PEERS)

__all__ = ["root", "stage"]

WILDCARD: Final = "*.example.org"
DEEP: Final = "a.b.example.org"
DNS: Final = {HOST: (BALANCER,)}
CONTROLLER_PLAIN: Final = nginx_controller(point(BALANCER), settings=NO_HEADER)
PLAIN: Final = (*CONTROLLER_PLAIN, ingress(HOST, BALANCER))
HTTP_ONLY: Final = (*CONTROLLER_PLAIN, ingress(HOST, BALANCER, tls=False))


def _on_port_80(server: Server) -> dict[str, Server | Fate]:
    """Port 443 refuses connections."""
    return {f"{CONTROLLER}:80": server, f"{BALANCER}:80": server}


def _both(server: Server) -> dict[str, Server | Fate]:
    return {CONTROLLER: server, BALANCER: server}


STATES: Final = (
    State(
        name="a host without TLS, and port 443 is closed",
        objects=HTTP_ONLY,
        at=_on_port_80(Server.REJECTS),
        dns=DNS,
        expected=healthy("short-circuit-harmless", no_advice=NO_RELAY),
    ),
    State(
        name="a host without TLS, port 443 is closed, and the controller requires the header",
        objects=(*nginx_controller(point(BALANCER)), ingress(HOST, BALANCER, tls=False)),
        at=_on_port_80(Server.REQUIRES),
        dns=DNS,
        expected=wrong("short-circuited", told=("header-required",), advice=(RELAY,)),
    ),
    State(
        name="a host without TLS, and the certificate is for another name",
        objects=HTTP_ONLY,
        at=_both(Server.MISNAMED),
        dns=DNS,
        expected=healthy(no_advice=NO_RELAY),
    ),
    State(
        name="a host with TLS, and port 443 is closed",
        objects=PLAIN,
        at=_on_port_80(Server.REJECTS),
        dns=DNS,
        expected=wrong("balancer-unserved", evidence=(f"{BALANCER}:443",), no_advice=NO_RELAY),
    ),
    State(
        name="a host that answers 503",
        objects=PLAIN,
        at=_both(Server.UNAVAILABLE),
        dns=DNS,
        expected=wrong("server-error", evidence=("503",), no_advice=NO_RELAY),
    ),
    State(
        name="all hosts, and one answers 503",
        host="",
        objects=PLAIN,
        at=_both(Server.UNAVAILABLE),
        dns=DNS,
        expected=healthy("server-error", no_advice=NO_RELAY),
    ),
    State(
        name="a certificate for another name",
        objects=PLAIN,
        at=_both(Server.MISNAMED),
        dns=DNS,
        expected=wrong("certificate-unfit", no_advice=NO_RELAY),
    ),
    State(
        name="all hosts, and one has a certificate for another name",
        host="",
        objects=PLAIN,
        at=_both(Server.MISNAMED),
        dns=DNS,
        expected=healthy("certificate-unfit", no_advice=NO_RELAY),
    ),
    State(
        name="a certificate that expired",
        objects=PLAIN,
        at=_both(Server.EXPIRED),
        dns=DNS,
        expected=wrong("certificate-unfit", no_advice=NO_RELAY),
    ),
    State(
        name="a certificate that expired, behind a controller that requires the header",
        objects=(*nginx_controller(point(BALANCER, "Proxy")), ingress(HOST, BALANCER)),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.EXPIRED},
        dns=DNS,
        expected=wrong("certificate-unfit", told=("reached",), no_advice=NO_RELAY),
    ),
    State(
        name="a name of two labels under an Ingress for one",
        host=DEEP,
        objects=(*CONTROLLER_PLAIN, ingress(WILDCARD, BALANCER)),
        at=_both(Server.REJECTS),
        dns={DEEP: (BALANCER,)},
        expected=wrong("host-unknown", no_advice=NO_RELAY),
    ),
    State(
        name="a name of one label under an Ingress for it",
        objects=(*CONTROLLER_PLAIN, ingress(WILDCARD, BALANCER)),
        at=_both(Server.REJECTS),
        dns=DNS,
        expected=healthy("short-circuit-harmless", untold=("host-unknown",), no_advice=NO_RELAY),
    ),
    State(
        name="all hosts, and of a wildcard no name in use is known",
        host="",
        objects=(*PLAIN, ingress(WILDCARD, BALANCER, name="others")),
        at=_both(Server.REJECTS),
        dns=DNS,
        expected=not_known(f"names under {WILDCARD}", told=("short-circuit-harmless",), untold=("not-needed",)),
    ),
)


@table(*STATES)
def test_the_verdict(stage: Stage, state: State) -> None:
    assert differences(stage.play(state), state.expected) == []
