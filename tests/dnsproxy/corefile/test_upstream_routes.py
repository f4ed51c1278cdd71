"""Where a block forwards without the stanza, as dnsproxy can follow it, and the comparison with where it forwards."""

from __future__ import annotations

import pytest
from hypothesis import given

from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.plan import plan_install
from dnsproxy.corefile.upstream_routes import (
    LONGEST,
    UpstreamRoute,
    differences,
    find_upstream_routes,
    format_routes,
    parse_routes,
    route_for,
    routes_of_stub_domains,
    usable_routes,
)
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.corefile.shapes import corefiles

DNSPROXY = Endpoint("10.96.0.202", 53)


def block(*lines: str) -> str:
    return "\n".join([".:53 {", "    errors", *(f"    {line}" for line in lines), "}", ""])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(["forward . 10.96.0.9"], ". 10.96.0.9", id="an address"),
        pytest.param(["forward . dns://10.96.0.9:53 10.96.0.9"], ". 10.96.0.9", id="one address in two forms"),
        pytest.param(["forward . 192.0.2.1:5353 [2001:DB8::1]:53"], ". 192.0.2.1:5353 2001:db8::1", id="ports"),
        pytest.param(["forward . /etc/resolv.conf"], ". /etc/resolv.conf", id="the node's"),
        pytest.param(["forward . 192.0.2.1 /etc/resolv.conf"], ". 192.0.2.1 /etc/resolv.conf", id="mixed"),
        pytest.param(
            ["forward . tls://192.0.2.1 tls://192.0.2.2:8853 {", "tls_servername DNS.example.org", "}"],
            ". tls://192.0.2.1:853#dns.example.org tls://192.0.2.2:8853#dns.example.org",
            id="TLS with a name",
        ),
        pytest.param(["forward . tls://192.0.2.1"], ". tls://192.0.2.1:853#192.0.2.1", id="TLS without a name"),
        pytest.param(
            ["forward . tls://192.0.2.1%dns.example.org tls://[2001:db8::1%dns.example.org]:853"],
            ". tls://192.0.2.1:853#dns.example.org tls://[2001:db8::1]:853#dns.example.org",
            id="TLS with a name in the address",
        ),
        pytest.param(["forward . tls://192.0.2.1 {", "tls", "}"], ". tls://192.0.2.1:853#192.0.2.1", id="empty tls"),
        pytest.param(
            ["forward . 192.0.2.1 /etc/resolv.conf {", "force_tcp", "}"],
            ". tcp://192.0.2.1:53 tcp:///etc/resolv.conf",
            id="TCP alone",
        ),
        pytest.param(
            ["forward corp.test 10.0.0.5", "forward . /etc/resolv.conf"],
            "corp.test. 10.0.0.5; . /etc/resolv.conf",
            id="a zone of its own",
        ),
        pytest.param(
            [
                "forward . 192.0.2.1 {",
                "except corp.test Lab.test",
                "}",
                "forward corp.test 10.0.0.5",
                "forward x.test 10.1.1.1",
            ],
            ". -corp.test. -lab.test. 192.0.2.1; corp.test. 10.0.0.5",
            id="except, and a forward that no query reaches",
        ),
        pytest.param(["forward . 192.0.2.1", "forward . 192.0.2.2"], ". 192.0.2.1", id="the first one wins"),
        pytest.param(
            ["forward 10.1.2.3/8 10.0.0.5", "forward 2001:db8::/33 10.0.0.6", "forward . 192.0.2.1"],
            "10.in-addr.arpa. 10.0.0.5; 0.8.b.d.0.1.0.0.2.ip6.arpa. 10.0.0.6; . 192.0.2.1",
            id="CIDR is the first reverse zone",
        ),
        pytest.param(
            ["forward . 192.0.2.1 {", "except 10.0.0.0/23 a/8", "}"],
            ". -0.0.10.in-addr.arpa. -1.0.10.in-addr.arpa. -a/8. 192.0.2.1",
            id="CIDR in except is all of them",
        ),
        pytest.param(
            ["forward . 192.0.2.1 {", "except b\u00fccher.test", "}"], ". 192.0.2.1", id="except of no possible name"
        ),
    ],
)
def test_the_routes_of_a_block_have_one_form(lines: list[str], expected: str) -> None:
    routes = find_upstream_routes(block(*lines))
    assert [route.fault for route in routes] == [""] * len(routes)
    assert format_routes(routes) == expected
    assert list(differences([".", "corp.test"], routes, expected)) == []


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        pytest.param(
            ["forward . tls://192.0.2.1 {", "tls /cert /key /ca", "}"], "certificates", id="client certificate"
        ),
        pytest.param(["forward . tls://192.0.2.1 {", "tls /ca", "}"], "certificates", id="own authority"),
        pytest.param(["forward . /etc/upstreams.conf"], "is a file of CoreDNS's pod", id="another file"),
        pytest.param(["forward . dns.example.org"], "is no address", id="a name"),
        pytest.param(["forward . https://192.0.2.1"], "neither plain DNS nor DNS over TLS", id="HTTPS"),
        pytest.param(["forward . quic://192.0.2.1"], "neither plain DNS nor DNS over TLS", id="QUIC"),
        pytest.param(["forward . {$UPSTREAM}"], "a variable of CoreDNS's pod", id="variable"),
        pytest.param(
            ["forward . 192.0.2.1 {", "source_address 192.0.2.9", "}"], "an address that dnsproxy", id="source"
        ),
        pytest.param(
            ["forward . tls://192.0.2.1 {", "tls_servername *.example.org", "}"], "not one name", id="wildcard"
        ),
        pytest.param(["forward . tls://dns.example.org"], "is no address", id="TLS to a name"),
        pytest.param(["forward . 192.0.2.1 https://192.0.2.2"], "neither plain", id="one of two"),
    ],
)
def test_what_dnsproxy_cannot_do_is_a_fault_with_its_line_and_never_another_upstream(
    lines: list[str], reason: str
) -> None:
    (route,) = find_upstream_routes(block(*lines))
    assert reason in route.fault
    assert (route.line, route.upstreams) == (3, ())
    assert format_routes(usable_routes([route])) == ". /etc/resolv.conf"
    (text,) = differences(["."], (route,), ". /etc/resolv.conf")
    assert "line 3: " in text
    assert text.endswith(", and dnsproxy forwards them to /etc/resolv.conf")


def test_names_of_a_faulty_zone_go_to_the_nodes_nameservers_as_its_note_says() -> None:
    routes = find_upstream_routes(block("forward corp.test https://10.0.0.5", "forward . 192.0.2.1"))
    assert format_routes(usable_routes(routes)) == "corp.test. /etc/resolv.conf; . 192.0.2.1"


@pytest.mark.parametrize("zone", ["b\u00fccher.test", "\u0661.test", "a" * 64, "a..b", "\u2028", ""])
def test_a_stub_domain_that_no_query_matches_is_a_fault_and_never_a_route(zone: str) -> None:
    routes = routes_of_stub_domains({zone: ["10.0.0.5"]}, ["192.0.2.1"])
    assert routes[0].fault
    assert format_routes(usable_routes(routes)) == ". 192.0.2.1"


def test_a_forward_of_a_zone_that_is_not_ascii_is_a_fault_with_its_line_and_never_a_route() -> None:
    routes = find_upstream_routes(block("forward b\u00fccher.test 10.0.0.5", "forward . 192.0.2.1"))
    assert "not ASCII" in routes[0].fault
    assert routes[0].line == 3
    assert format_routes(usable_routes(routes)) == ". 192.0.2.1"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(["import custom/*.override", "forward . 192.0.2.9"], ". 192.0.2.1", id="before its own"),
        pytest.param(["forward . 192.0.2.9", "import custom/*.override"], ". 192.0.2.9", id="behind its own"),
        pytest.param(["import /etc/a.override", "forward . 192.0.2.9"], ". 192.0.2.1", id="one file"),
        pytest.param(["import *.conf", "forward . 192.0.2.9"], ". 192.0.2.9", id="other files"),
        pytest.param(["import {$DIR}/*.override", "forward . 192.0.2.9"], ". 192.0.2.9", id="a variable"),
        pytest.param(["import custom/*.override"], ". 192.0.2.1", id="no forward of its own"),
    ],
)
def test_imported_forwards_count_at_the_place_of_their_import(lines: list[str], expected: str) -> None:
    ours = "# BEGIN switchback\nforward . 10.96.0.53 192.0.2.8\n# END switchback\n"
    files = {"a.override": "forward . 192.0.2.1\n", "0-switchback.override": ours, "b.server": "b.test {\n}\n"}
    assert format_routes(find_upstream_routes(block(*lines), files)) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(["hosts"], ".", id="no forward"),
        pytest.param(["forward corp.test 10.0.0.5"], "corp.test. 10.0.0.5; .", id="a zone alone"),
        pytest.param(
            ["# BEGIN switchback", "forward . 10.96.0.53", "# END switchback"], ".", id="the stanza without others"
        ),
    ],
)
def test_a_block_that_forwards_nothing_else_asks_nobody(lines: list[str], expected: str) -> None:
    routes = find_upstream_routes(block(*lines))
    assert format_routes(usable_routes(routes)) == expected
    assert list(differences(["."], routes, expected)) == []
    assert list(differences(["."], routes, ". /etc/resolv.conf")) == [
        "names of . went to no upstream, and dnsproxy forwards them to /etc/resolv.conf"
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "no server block serves .", id="empty"),
        pytest.param(block("grpc . 192.0.2.1"), "'grpc' (line 3) may answer what", id="another plugin"),
        pytest.param(block("forward {$Z} 192.0.2.1"), "forward of line 3 is a variable", id="a zone from a variable"),
        pytest.param(
            block("# BEGIN switchback", "forward . 10.96.0.53 192.0.2.1", "# END switchback"),
            "has no `forward .`",
            id="only the stanza has them",
        ),
        pytest.param(block("import custom/*.override"), "an imported file may have one", id="imported"),
        pytest.param("example.org {\n forward . 192.0.2.1\n}\n", "no server block serves .", id="another zone"),
        pytest.param(". {\n forward . 192.0.2.1 }\n", "", id="braces"),
        pytest.param(block("forward ."), "names no zone or no upstream", id="no upstream"),
        pytest.param(block("# BEGIN switchback", "forward . 192.0.2.1"), "a marker stands alone", id="damaged markers"),
    ],
)
def test_a_text_without_upstreams_is_an_error_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(CorefileError) as error:
        find_upstream_routes(text)
    assert reason in error.value.reason
    assert error.value.line >= 1


@given(corefiles())
def test_the_stanza_changes_no_route(text: str) -> None:
    try:
        parse_corefile(text)
        before = find_upstream_routes(text)
        after = plan_install(text, addresses=[DNSPROXY]).new
    except CorefileError:
        return
    routes = find_upstream_routes(after)
    assert format_routes(routes) == format_routes(before)
    assert [route.fault for route in routes] == [route.fault for route in before]
    report = format_routes(usable_routes(routes))
    assert report.isascii() or any(not route.fault for route in routes)
    if parse_routes(report) is not None and not any(route.fault for route in routes):
        assert list(differences(["."], before, report)) == []


def test_stub_domains_are_routes_and_ours_are_not() -> None:
    zones = {"corp.test": ["10.0.0.5"], "a.corp.test": ["10.0.0.6:5353"], "example.org": ["10.96.0.202"]}
    routes = routes_of_stub_domains(zones, ["192.0.2.1"], ours=["example.org"])
    assert format_routes(routes) == "a.corp.test. 10.0.0.6:5353; corp.test. 10.0.0.5; . 192.0.2.1"
    assert format_routes(routes_of_stub_domains({}, [])) == ". /etc/resolv.conf"
    (named, _) = routes_of_stub_domains({"corp.test": ["dns.corp.test"]}, [])
    assert "is no address" in named.fault


def test_a_name_takes_the_first_route_that_serves_it() -> None:
    routes = find_upstream_routes(block("forward . 192.0.2.1 {", "except corp.test", "}", "forward corp.test 10.0.0.5"))
    found = {zone: route_for(zone, routes) for zone in (".", "example.org", "corp.test", "a.Corp.test", "xcorp.test")}
    assert {zone: route.upstreams[0] for zone, route in found.items() if route} == {
        ".": "192.0.2.1",
        "example.org": "192.0.2.1",
        "corp.test": "10.0.0.5",
        "a.Corp.test": "10.0.0.5",
        "xcorp.test": "192.0.2.1",
    }


def test_too_many_upstreams_are_reported_by_their_digest_and_still_compared() -> None:
    many = tuple(f"tls://192.0.2.{number}:853#dns.example.org" for number in range(1, 16))
    routes = (UpstreamRoute(".", many),)
    text = format_routes(routes)
    assert len(text) <= LONGEST
    assert parse_routes(text) is None
    assert list(differences(["."], routes, text)) == []
    (difference,) = differences(["."], (UpstreamRoute(".", many[1:]),), text)
    assert "too many to list" in difference


@pytest.mark.parametrize("text", ["", ";", "; .", "a..b 192.0.2.1"])
def test_a_report_in_another_form_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"a route names a zone|not a domain name"):
        parse_routes(text)


def test_the_same_servers_over_tcp_alone_are_no_difference_and_without_tls_they_are() -> None:
    over_tcp = (UpstreamRoute(".", ("tcp://192.0.2.1:53", "tcp:///etc/resolv.conf")),)
    assert list(differences(["."], over_tcp, ". 192.0.2.1 /etc/resolv.conf")) == []
    over_tls = (UpstreamRoute(".", ("tls://192.0.2.1:853#dns.example.org",)),)
    assert len(list(differences(["."], over_tls, ". 192.0.2.1"))) == 1


@pytest.mark.parametrize("option", ["source_address", "tls"])
def test_a_long_option_is_not_repeated_whole(option: str) -> None:
    lines = ["forward . tls://192.0.2.1 {", f"{option} {'x' * 200_000}", "}"]
    (route,) = find_upstream_routes(block(*lines))
    assert f"`{option} xxx" in route.fault
    assert len(route.fault) < 400
