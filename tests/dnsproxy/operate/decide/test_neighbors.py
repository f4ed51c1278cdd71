"""The ports of other Services at the address of a controller's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dnsproxy.doctor.facts.model import BalancerAddress, Port
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.operate.decide.decisions import Verdict, decide
from dnsproxy.operate.decide.facts import ListenPort, Route, ServiceFacts
from dnsproxy.operate.decide.handshaking import LastHandshake, due_handshakes, note_headers, still_count
from dnsproxy.operate.decide.neighbors import MOST, neighbor_ports
from dnsproxy.operate.decide.plan import Patch, plan
from tests.dnsproxy.operate.decide.cluster import (
    CLASS,
    KEY,
    NGINX,
    SELECTOR,
    SERVICE,
    SUCCEEDED,
    cluster,
    probes_of,
    route_of,
    service,
)

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
SSH = service("git/ssh", ports=(Port(22, "ssh"),))
DUAL = (BalancerAddress("192.0.2.10"), BalancerAddress("2001:db8::10"))
LENT = route_of(
    headers="v1,22=none",
    port_backends="22=git/ssh",
    ports=(ListenPort(80, 20080), ListenPort(443, 20443), ListenPort(22, 20022)),
)


@pytest.mark.parametrize(
    ("found", "ports"),
    [
        pytest.param((SERVICE,), {}, id="the controller alone"),
        pytest.param((SERVICE, SSH), {22: "git/ssh"}, id="another port at the same address"),
        pytest.param((SERVICE, service("git/ssh")), {}, id="the same ports"),
        pytest.param((SERVICE, service("git/ssh", ports=(Port(22), Port(443)))), {22: "git/ssh"}, id="one of two"),
        pytest.param((SERVICE, service("git/ssh", ports=(Port(22),), points=())), {}, id="no address"),
        pytest.param(
            (SERVICE, service("git/ssh", ports=(Port(22),), source_ranges=("203.0.113.0/24",))), {}, id="source ranges"
        ),
        pytest.param(
            (SERVICE, service("git/ssh", ports=(Port(22),), points=(BalancerAddress("192.0.2.11"),))),
            {},
            id="another address",
        ),
        pytest.param(
            (service(points=DUAL), service("git/ssh", ports=(Port(22),), points=(BalancerAddress("2001:DB8:0::10"),))),
            {22: "git/ssh"},
            id="one of two addresses, written otherwise",
        ),
        pytest.param(
            (SERVICE, SSH, service("a/ssh", ports=(Port(22),))), {22: "a/ssh"}, id="of two with one port the first"
        ),
        pytest.param(
            (
                service(points=DUAL),
                service("a/ssh", ports=(Port(22),)),
                service("git/ssh", ports=(Port(22),), points=DUAL),
            ),
            {22: "git/ssh"},
            id="of two with one port the one with more addresses",
        ),
        pytest.param(
            (SERVICE, service("switchback/own", ports=(Port(22),), selector=SELECTOR)), {}, id="our own relay"
        ),
        pytest.param(
            (service(points=(BalancerAddress(hostname="lb.example.org"),)), SSH),
            {},
            id="a hostname",
        ),
    ],
)
def test_a_neighbor_is_another_service_at_an_address_of_the_controllers(
    found: tuple[ServiceFacts, ...], ports: dict[int, str]
) -> None:
    assert neighbor_ports(found[0], cluster(CLASS, *found)) == ports


@pytest.mark.parametrize(
    ("ranges", "lends"),
    [
        (("203.0.113.0/24",), False),
        (("0.0.0.0/0",), True),
        (("203.0.113.0/24", "0.0.0.0/0"), True),
        (("0.0.0.0/0", "::/0"), True),
        (("0.0.0.0/0", "2001:db8::/32"), False),
        (("everybody",), False),
    ],
    ids=["some", "all of IPv4", "some and all", "all of both", "some of IPv6", "no network"],
)
def test_source_ranges_limit_a_service_only_if_they_leave_somebody_out(ranges: tuple[str, ...], lends: bool) -> None:
    one = service("git/ssh", ports=(Port(22),), source_ranges=ranges)
    assert neighbor_ports(SERVICE, cluster(CLASS, SERVICE, one)) == ({22: "git/ssh"} if lends else {})


def test_a_service_type_that_has_no_load_balancer_is_no_neighbor() -> None:
    internal = service("git/ssh", ports=(Port(22),), type="ClusterIP")
    assert neighbor_ports(SERVICE, cluster(CLASS, SERVICE, internal)) == {}


def test_the_lowest_ports_of_many_are_taken() -> None:
    many = service("a/many", ports=tuple(Port(number) for number in range(9999, 9999 - 2 * MOST, -1)))
    assert list(neighbor_ports(SERVICE, cluster(CLASS, SERVICE, many))) == list(range(9872, 9872 + MOST))


def test_the_route_has_a_neighbors_port_with_its_backend_and_without_a_header() -> None:
    facts = cluster(CLASS, SERVICE, SSH, routes=(route_of(),), handshakes={NGINX: SUCCEEDED})
    (decision,) = decide(facts)
    assert (decision.verdict, decision.steer) == (Verdict.RELAY, True)
    assert "port 22 is that of git/ssh at the same address: relayed as it is" in decision.evidence
    (patch,) = plan(facts, [decision], now=NOW).changes
    assert isinstance(patch, Patch)
    route = patch.route
    assert (route.port_backends, route.headers, [one.port for one in route.ports]) == (
        "22=git/ssh",
        "v1,22=none",
        [80, 443, 22],
    )
    assert not plan(replace(facts, routes=(route,)), [decision], now=NOW).changes


def test_the_port_goes_with_its_neighbor() -> None:
    facts = cluster(CLASS, SERVICE, routes=(LENT,), handshakes={NGINX: SUCCEEDED})
    (patch,) = plan(facts, decide(facts), now=NOW).changes
    assert patch.route == route_of(resource_version="7", balancers="192.0.2.10")


@pytest.mark.parametrize(
    ("route", "beside"),
    [(route_of(), (SSH,)), (LENT, (SSH,)), (LENT, ())],
    ids=["that comes", "that stays", "that goes"],
)
def test_a_neighbor_takes_nothing_from_what_handshakes_have_shown(
    route: Route, beside: tuple[ServiceFacts, ...]
) -> None:
    failing = replace(SUCCEEDED, failures=2)
    facts = cluster(CLASS, SERVICE, *beside, routes=(route,), handshakes={NGINX: failing})
    (decision,) = decide(facts)
    assert "2 handshakes in a row through the relay failed" in decision.evidence
    known = note_headers({}, replace(facts, routes=(route_of(),)), now=1.0)
    assert note_headers(known, facts, now=2.0) == known
    assert still_count({NGINX: failing}, facts) == {NGINX: failing}
    last = {NGINX: LastHandshake(KEY, 100.0, headers="v1")}
    assert due_handshakes(facts, [decision], last, now=101.0) == ()


def test_no_handshake_is_made_with_a_header_that_is_about_to_change_though_a_neighbor_comes() -> None:
    v2 = {place: replace(one, versions=("v2",)) for place, one in probes_of().items()}
    facts = cluster(CLASS, SERVICE, SSH, probes=v2, routes=(route_of(),), handshakes={NGINX: SUCCEEDED})
    assert due_handshakes(facts, decide(facts), {}, now=100.0) == ()


def test_a_port_that_the_controller_gets_itself_is_its_own() -> None:
    controller = service(ports=(Port(80, "http"), Port(443, "https"), Port(22, "ssh")))
    facts = cluster(CLASS, controller, SSH, routes=(LENT,), handshakes={NGINX: SUCCEEDED})
    (patch,) = plan(facts, decide(facts), now=NOW).changes
    assert (patch.route.port_backends, patch.route.headers) == ("", "v1,22=none")


@pytest.mark.parametrize("beside", [(SSH,), ()], ids=["with its neighbor", "whose neighbor is gone"])
@pytest.mark.parametrize("route", [LENT, route_of()], ids=["a lent port", "no lent port"])
def test_a_kept_route_follows_the_controllers_header_and_keeps_its_ports(
    beside: tuple[ServiceFacts, ...], route: Route
) -> None:
    elsewhere = replace(CLASS, status=("198.51.100.1",))
    facts = cluster(elsewhere, SERVICE, *beside, routes=(route,), probes=probes_of(mode=HeaderMode.REJECTS))
    (decision,) = decide(facts)
    assert decision.verdict is Verdict.KEEP
    (patch,) = plan(facts, [decision], now=NOW).changes
    lent = "22=none," if route is LENT else ""
    assert patch.route == replace(route, headers=f"v1,{lent}80=none,443=none")


def test_an_annotation_that_another_wrote_lends_nothing() -> None:
    route = replace(LENT, port_backends="22=anything")
    facts = cluster(CLASS, SERVICE, SSH, routes=(route,), plane=None)
    (decision,) = decide(facts)
    assert decision.verdict is Verdict.KEEP
    assert not plan(facts, [decision], now=NOW).changes
