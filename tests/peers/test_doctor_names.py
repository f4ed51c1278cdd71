"""The doctor on hosts of two address families, under wildcards, of Gateways, and on clusters with many hosts."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from tests.kit.doctor_stage.gateways import gateway, gateway_class, http_route
from tests.kit.doctor_stage.objects import (
    BALANCER,
    CONTROLLER,
    DNS_ADDRESS,
    KEY,
    NO_HEADER,
    Object,
    ingress,
    nginx_controller,
    point,
    service,
)
from tests.kit.doctor_stage.servers import Fate, Server
from tests.kit.doctor_stage.stage import PEERS, Stage, stage
from tests.kit.doctor_stage.states import HOST, NO_RELAY, RELAY, State, differences, healthy, not_known, table, wrong
from tests.kit.networks import root

pytestmark = pytest.mark.peer(*PEERS, "gateway-api")

__all__ = ["root", "stage"]

IPV6: Final = "2001:db8:203::10"
"""The load balancer's address of IPv6."""
CONTROLLER_IPV6: Final = "2001:db8:96::80"
BOTH: Final = (BALANCER, IPV6)
STALE: Final = "198.51.100.7"
SECOND: Final = "203.0.113.11"
"""The load balancer of a second controller, without the header, at PLAIN."""
PLAIN: Final = "10.96.0.81"
FOUR_PORTS: Final = {"http": 80, "https": 443, "http-alt": 8080, "https-alt": 8443}


def answering(*, a: str, aaaa: str) -> str:
    """The Corefile of a cluster's DNS that has one reply for each type."""
    types = (("A", a), ("AAAA", aaaa))
    replies = "".join(f"    template IN {kind} . {{\n        {reply}\n    }}\n" for kind, reply in types)
    return f".:53 {{\n    bind {DNS_ADDRESS}\n{replies}}}\n"


TWO_FAMILIES: Final = State(
    name="",
    objects=(*nginx_controller(point(BALANCER, "Proxy"), point(IPV6, "Proxy")), ingress(HOST, *BOTH)),
    at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER, IPV6: Server.BALANCER},
    dns={HOST: BOTH},
    expected=healthy("reached", no_advice=NO_RELAY),
)
"""A load balancer with two families, and pods with IPv4 only; both families would serve them."""
ONLY_IPV6: Final = State(
    name="",
    objects=(*nginx_controller(point(IPV6), cluster_ip=CONTROLLER_IPV6), ingress(HOST, IPV6)),
    at={CONTROLLER_IPV6: Server.REQUIRES, IPV6: Server.REQUIRES},
    dns={HOST: (IPV6,)},
    pod_has_ipv6=True,
    expected=wrong("short-circuited", advice=(RELAY,)),
)
FAMILIES: Final = (
    replace(TWO_FAMILIES, name="two families, pods without a route of IPv6"),
    replace(TWO_FAMILIES, name="two families, pods with both", pod_has_ipv6=True),
    replace(
        TWO_FAMILIES,
        name="two families that are short-circuited, pods without a route of IPv6, no header",
        objects=(*nginx_controller(point(BALANCER), point(IPV6), settings=NO_HEADER), ingress(HOST, *BOTH)),
        at={CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS},
        expected=healthy("short-circuit-harmless", untold=("not-needed",), no_advice=NO_RELAY),
    ),
    replace(
        TWO_FAMILIES,
        name="two families that are short-circuited, the header is required",
        objects=(*nginx_controller(point(BALANCER), point(IPV6)), ingress(HOST, *BOTH)),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES},
        expected=wrong("short-circuited", advice=(RELAY,)),
    ),
    replace(
        TWO_FAMILIES,
        name="two families, and that of IPv6 resets pods that have a route",
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER, IPV6: Server.RESETS},
        pod_has_ipv6=True,
        expected=wrong("balancer-unserved", evidence=(f"[{IPV6}]:443",)),
    ),
    replace(
        TWO_FAMILIES,
        name="two families, and that of IPv6 is short-circuited for pods that have a route",
        objects=(*nginx_controller(point(BALANCER, "Proxy"), point(IPV6)), ingress(HOST, *BOTH)),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER, IPV6: Server.REQUIRES},
        pod_has_ipv6=True,
        expected=wrong("short-circuited", advice=(RELAY,)),
    ),
    replace(
        TWO_FAMILIES,
        name="a record of IPv6 only, and pods without a route",
        dns={HOST: (IPV6,)},
        expected=wrong("no-route", evidence=("no route",), advice=(RELAY,)),
    ),
    replace(
        TWO_FAMILIES,
        name="a record of IPv6 only, pods without a route, no header",
        objects=(*nginx_controller(point(BALANCER), point(IPV6), settings=NO_HEADER), ingress(HOST, *BOTH)),
        at={CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS},
        dns={HOST: (IPV6,)},
        expected=wrong("no-route", advice=(f"DNSPROXY_TARGET_FOR=nginx=service:{KEY}",)),
    ),
    replace(
        TWO_FAMILIES,
        name="a record of IPv6 that leads elsewhere, and pods without a route",
        dns={HOST: (BALANCER, "2001:db8:99::1")},
    ),
    replace(
        TWO_FAMILIES,
        name="IPv4 is answered, and the query for IPv6 fails",
        corefile=answering(a=f'answer "{{{{ .Name }}}} 5 IN A {BALANCER}"', aaaa="rcode SERVFAIL"),
        expected=not_known("AAAA: SERVFAIL", told=("reached",), no_advice=NO_RELAY),
    ),
    replace(
        TWO_FAMILIES,
        name="the query for IPv4 fails, and pods have no route of IPv6",
        corefile=answering(a="rcode SERVFAIL", aaaa=f'answer "{{{{ .Name }}}} 5 IN AAAA {IPV6}"'),
        expected=wrong("no-route"),
    ),
    replace(TWO_FAMILIES, name="a record of IPv6 only, and pods with a route", dns={HOST: (IPV6,)}, pod_has_ipv6=True),
    replace(TWO_FAMILIES, name="a record of IPv4 only", dns={HOST: (BALANCER,)}, pod_has_ipv6=True),
    replace(ONLY_IPV6, name="a cluster of IPv6, short-circuited"),
    replace(
        ONLY_IPV6,
        name="a cluster of IPv6, looked at from outside",
        objects=(service("edge/envoy", CONTROLLER_IPV6, points=[point(IPV6)]), ingress(HOST, IPV6, class_name=None)),
        arguments=(),
        expected=not_known("nothing was dialled", advice=(f"--connect-to '::[{CONTROLLER_IPV6}]:'",)),
    ),
    replace(
        TWO_FAMILIES,
        name="four ports that require the header",
        objects=(
            *nginx_controller(point(BALANCER, "Proxy"), ports=FOUR_PORTS),
            ingress(HOST, BALANCER),
        ),
        at={
            address if port in (80, 443) else f"{address}:{port}": server
            for address, server in ((CONTROLLER, Server.REQUIRES), (BALANCER, Server.BALANCER))
            for port in (80, 8080, 8443)
        },
        dns={HOST: (BALANCER,)},
        expected=healthy("reached", said=("(v1 and v2 understood)",), unsaid=("v2 and v1",)),
    ),
)

WILD: Final = "*.example.org"
PLAIN_ONE: Final = State(
    name="",
    objects=(*nginx_controller(point(BALANCER), settings=NO_HEADER), ingress(WILD, BALANCER)),
    at={CONTROLLER: Server.REJECTS, BALANCER: Server.REJECTS},
    dns={WILD: (BALANCER,)},
    expected=healthy("short-circuit-harmless", no_advice=NO_RELAY),
)
"""A controller without the header, which serves a wildcard."""


def by_gateway(listened: str, routed: str, mode: str = "VIP") -> tuple[Object, ...]:
    labels = {"gateway.envoyproxy.io/owning-gateway-name": "main"}
    return (
        gateway_class(),
        gateway(listened, BALANCER),
        http_route(routed),
        service("envoy-gateway-system/envoy", CONTROLLER, points=[point(BALANCER, mode)], labels=labels),
    )


WILDCARDS: Final = (
    replace(PLAIN_ONE, name="an Ingress with a wildcard covers one label"),
    replace(
        PLAIN_ONE,
        name="an Ingress with a wildcard does not cover two labels",
        host="a.b.example.org",
        expected=wrong("host-unknown", no_advice=NO_RELAY),
    ),
    replace(
        PLAIN_ONE,
        name="an Ingress with a wildcard does not cover its own domain",
        host="example.org",
        dns={"example.org": (BALANCER,)},
        expected=wrong("host-unknown", no_advice=NO_RELAY),
    ),
    replace(
        PLAIN_ONE,
        name="a Gateway with a wildcard covers two labels",
        host="a.b.example.org",
        objects=by_gateway(WILD, WILD),
        expected=healthy("short-circuit-harmless", no_advice=NO_RELAY),
    ),
    replace(
        PLAIN_ONE,
        name="a wildcard of which no name in use is known, all hosts",
        host="",
        dns={},
        expected=not_known(untold=("not-needed",), no_advice=NO_RELAY),
    ),
    replace(
        PLAIN_ONE,
        name="a Gateway whose controller requires the header, short-circuited",
        objects=by_gateway(HOST, HOST),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.REQUIRES},
        expected=wrong("short-circuited", advice=(RELAY,)),
    ),
    replace(
        PLAIN_ONE,
        name="a Gateway behind a load balancer that adds the header",
        objects=by_gateway(HOST, HOST, "Proxy"),
        at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER},
        expected=healthy("reached", no_advice=NO_RELAY),
    ),
)

TWENTY: Final = tuple(f"h{number}.example.org" for number in range(20))
CROWD: Final = tuple(f"h{number}.example.org" for number in range(320))
MANY: Final = State(
    name="",
    host="",
    objects=(
        *nginx_controller(point(BALANCER, "Proxy")),
        *(ingress(host, BALANCER, name=f"h{number}") for number, host in enumerate(TWENTY)),
    ),
    at={CONTROLLER: Server.REQUIRES, BALANCER: Server.BALANCER, STALE: Fate.UNREACHABLE},
    dns={WILD: (BALANCER,)},
    expected=healthy("reached", "not-needed", no_advice=NO_RELAY),
)
SEVERAL: Final = (
    replace(MANY, name="twenty hosts that are served"),
    replace(
        MANY,
        name="twenty hosts, and one of them has a stale record",
        dns={WILD: (BALANCER,), TWENTY[7]: (STALE,)},
        expected=wrong("answer-dead", said=(f"answers with {STALE}", TWENTY[7]), untold=("not-needed",)),
    ),
    replace(
        MANY,
        name="twenty hosts, one has a stale record, and another one is asked about",
        host=TWENTY[3],
        dns={WILD: (BALANCER,), TWENTY[7]: (STALE,)},
        expected=healthy("reached", no_advice=NO_RELAY),
    ),
    replace(
        MANY,
        name="twenty hosts, and one of them has no record",
        dns=dict.fromkeys(TWENTY[1:], (BALANCER,)),
        expected=wrong("no-record", said=(TWENTY[0],), untold=("not-needed",)),
    ),
    replace(
        MANY,
        name="two controllers, and the hosts of one are short-circuited",
        objects=(
            *nginx_controller(point(BALANCER)),
            *nginx_controller(
                point(SECOND), settings=NO_HEADER, key="plain/controller", cluster_ip=PLAIN, class_name="plain"
            ),
            ingress(HOST, BALANCER),
            ingress("plain.example.org", SECOND, name="plain", class_name="plain"),
        ),
        at={
            **dict.fromkeys((CONTROLLER, BALANCER), Server.REQUIRES),
            **dict.fromkeys((PLAIN, SECOND), Server.REJECTS),
        },
        dns={HOST: (BALANCER,), "plain.example.org": (SECOND,)},
        expected=wrong("short-circuited", told=("short-circuit-harmless",), untold=("not-needed",)),
    ),
    replace(
        MANY,
        name="more hosts than are looked up",
        objects=(
            *nginx_controller(point(BALANCER, "Proxy")),
            *(ingress(host, BALANCER, name=f"h{number}") for number, host in enumerate(CROWD)),
        ),
        dns={WILD: (BALANCER,), "h99.example.org": (STALE,)},
        expected=healthy("reached", unseen=("20",), untold=("not-needed",)),
    ),
)
STATES: Final = (*FAMILIES, *WILDCARDS, *SEVERAL)


@table(*STATES)
def test_the_verdict(stage: Stage, state: State) -> None:
    assert differences(stage.play(state), state.expected) == []
