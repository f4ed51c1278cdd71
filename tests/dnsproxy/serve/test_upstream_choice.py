"""From routes and a resolv.conf to the settings of forwarding, and their description for probes."""

from __future__ import annotations

import pytest

from dnsproxy.corefile.upstream_routes import UpstreamRoute, find_upstream_routes
from dnsproxy.forward.settings import ForwardSettings, TcpEndpoint, TlsEndpoint
from dnsproxy.serve.upstream_choice import choose_upstreams, describe_routes, describe_upstreams
from sidecar.values.endpoints import Endpoint

A, B, NODE = Endpoint("192.0.2.1", 53), Endpoint("192.0.2.2", 5353), Endpoint("192.0.2.53", 53)
NODES = ForwardSettings((NODE,), outstanding=7, rotate=True, attempts=1, use_tcp=True)


def choose(*lines: str, listening: tuple[Endpoint, ...] = (), node: ForwardSettings = NODES) -> ForwardSettings | None:
    text = "\n".join([". {", *lines, "}", ""])
    return choose_upstreams(find_upstream_routes(text), node=node, listening=listening)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(["forward . /etc/resolv.conf"], NODES, id="the node's, with its options"),
        pytest.param(["forward . https://192.0.2.1"], NODES, id="a fault"),
        pytest.param(
            ["forward . 192.0.2.1 192.0.2.2:5353"],
            ForwardSettings((A, B), outstanding=7, rotate=True),
            id="random policy",
        ),
        pytest.param(
            ["forward . 192.0.2.1 192.0.2.2:5353 {", "policy sequential", "}"],
            ForwardSettings((A, B), outstanding=7),
            id="in order",
        ),
        pytest.param(
            ["forward . tls://192.0.2.1 {", "tls_servername dns.example.org", "}"],
            ForwardSettings((TlsEndpoint("192.0.2.1", 853, "dns.example.org"),), outstanding=7),
            id="TLS",
        ),
        pytest.param(
            ["forward . 192.0.2.1 /etc/resolv.conf {", "force_tcp", "policy sequential", "}"],
            ForwardSettings((TcpEndpoint("192.0.2.1", 53), TcpEndpoint("192.0.2.53", 53)), outstanding=7),
            id="TCP",
        ),
    ],
)
def test_the_upstreams_of_all_names(lines: list[str], expected: ForwardSettings) -> None:
    assert choose(*lines) == expected


def test_zones_have_upstreams_of_their_own() -> None:
    settings = choose("forward corp.test 192.0.2.1", "forward bad.test https://192.0.2.9", "forward . 192.0.2.2:5353")
    assert settings is not None
    assert settings.upstreams == (B,)
    zone, bad = settings.zones
    assert (zone.upstreams, zone.excepted) == ((A,), ())
    assert (bad.zone, bad.upstreams) == (b"\3bad\4test\0", (NODE,))
    served = {name: zone.serves(name) for name in (b"\4corp\4test\0", b"\1a\4corp\4test\0", b"\5xcorp\4test\0", b"\0")}
    assert list(served.values()) == [True, True, False, False]


def test_the_policy_of_a_zone_is_its_own() -> None:
    both = "192.0.2.1 192.0.2.2:5353"
    in_order = [f"forward corp.test {both} {{", "policy sequential", "}"]
    for lines, expected in (
        ([*in_order, f"forward . {both}"], (True, [False])),
        ([f"forward corp.test {both}", f"forward . {both} {{", "policy sequential", "}"], (False, [True])),
        ([*in_order, "forward . /etc/resolv.conf"], (True, [False])),
    ):
        settings = choose(*lines)
        assert settings is not None
        assert (settings.rotate, [zone.rotate for zone in settings.zones]) == expected


@pytest.mark.parametrize("zone", ["b\u00fccher.test", "\u0661"])
def test_a_zone_that_no_query_matches_does_no_harm(zone: str) -> None:
    settings = choose(f"forward {zone} 192.0.2.1", f"forward . 192.0.2.2:5353 {{\nexcept {zone}\n}}")
    assert settings is not None
    assert (settings.upstreams, settings.zones) == ((B,), ())


def test_a_star_in_a_zone_is_no_wildcard_as_in_coredns() -> None:
    settings = choose("forward *.corp.test 192.0.2.1", "forward . 192.0.2.2:5353")
    assert settings is not None
    (zone,) = settings.zones
    served = {name: zone.serves(name) for name in (b"\1a\4corp\4test\0", b"\1*\4corp\4test\0", b"\4corp\4test\0")}
    assert list(served.values()) == [False, True, False]


@pytest.mark.parametrize(
    ("lines", "upstreams", "zones"),
    [
        pytest.param(["forward . 192.0.2.1"], (A,), [], id="named in the Corefile"),
        pytest.param(["forward . /etc/resolv.conf"], (), [], id="the node's"),
        pytest.param(["forward . https://192.0.2.1"], (), [], id="a fault"),
        pytest.param(
            ["forward corp.test /etc/resolv.conf", "forward . 192.0.2.1"], (A,), [()], id="a zone goes nowhere else"
        ),
        pytest.param(["forward corp.test 192.0.2.1", "forward . /etc/resolv.conf"], (), [(A,)], id="a zone alone"),
    ],
)
def test_a_node_without_a_nameserver_has_no_upstreams_and_takes_none_from_elsewhere(
    lines: list[str], upstreams: tuple[Endpoint, ...], zones: list[tuple[Endpoint, ...]]
) -> None:
    settings = choose(*lines, node=ForwardSettings(()))
    assert settings is not None
    assert (settings.upstreams, [zone.upstreams for zone in settings.zones]) == (upstreams, zones)


def test_an_address_that_the_server_listens_on_is_never_an_upstream() -> None:
    lines = ["forward corp.test 192.0.2.1", "forward . 192.0.2.1 192.0.2.2:5353"]
    settings = choose(*lines, listening=(A,))
    assert settings is not None
    assert (settings.upstreams, settings.zones) == ((B,), ())
    assert choose(*lines, listening=(A, B)) is None


def test_a_server_with_upstreams_of_a_flag_describes_itself_as_one_with_a_corefile() -> None:
    flags = (A, B, TcpEndpoint("192.0.2.1", 53), TlsEndpoint("2001:db8::1", 853, "dns.example.org"))
    text = ". 192.0.2.1 192.0.2.2:5353 tcp://192.0.2.1:53 tls://[2001:db8::1]:853#dns.example.org"
    assert describe_upstreams(flags) == text
    assert describe_routes(()) == ". /etc/resolv.conf"
    assert describe_routes((UpstreamRoute(".", ("192.0.2.1",)),)) == describe_upstreams([A])
