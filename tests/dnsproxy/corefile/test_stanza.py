"""The stanza keeps what the original does, and nothing that would keep queries with a dead dnsproxy."""

from __future__ import annotations

import pytest

from dnsproxy.corefile.forward_directive import parse_forward
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.stanza import Layout, StanzaForward, Version, format_address, format_stanza, make_forward
from tests.dnsproxy.corefile.shapes import NEWEST, address


def made(options: str, *addresses: str, version: Version | None = None) -> StanzaForward:
    text = f". {{\n forward . /etc/resolv.conf {{\n{options}\n }}\n}}\n"
    original = parse_forward(parse_corefile(text).blocks[0].directives[0])
    endpoints = [address(one) for one in addresses or ("192.0.2.1",)]
    return make_forward(".", original, addresses=endpoints, coredns_version=version)


ALWAYS = ("policy sequential", "max_fails 1", "prefer_udp")

KEPT = [
    "expire 20s",
    "max_age 60s",
    "max_idle_conns 4",
    "max_connect_attempts 0",
    "max_connect_attempts 2",
    "max_concurrent 5000",
    "max_concurrent 20000",
    "max_concurrent 0",
    "max_concurrent {$LIMIT}",
    "read_timeout 3s",
    "tls /ca.pem",
    "tls_servername dns.example.org",
    "health_check 5s no_rec domain example.org",
    "except corp.example.org",
    "next NXDOMAIN",
    "failfast_all_unhealthy_upstreams",
    "source_address 192.0.2.9",
    "resolver 192.0.2.8",
    "failover NXDOMAIN",
]


@pytest.mark.parametrize("option", KEPT)
def test_an_option_that_suits_both_is_kept(option: str) -> None:
    forward = made(option)
    assert forward.options == (*ALWAYS, option)
    assert forward.notes == ()


DROPPED = [
    pytest.param("policy random", "is replaced by `policy sequential`", id="another policy"),
    pytest.param("policy round_robin", "CoreDNS has to ask dnsproxy first", id="round robin"),
    pytest.param("max_fails 0", "would not skip a dead dnsproxy", id="no health checks"),
    pytest.param("max_connect_attempts 1", "would not skip a dead dnsproxy", id="a single attempt"),
]


@pytest.mark.parametrize(("option", "note"), DROPPED)
def test_an_option_that_hides_the_fallback_goes_with_a_note(option: str, note: str) -> None:
    forward = made(option)
    assert forward.options == ALWAYS
    assert note in forward.notes[0]
    assert option in forward.notes[0]


@pytest.mark.parametrize("option", ["max_fails 1", "max_fails 3", "max_fails {$FAILS}"])
def test_how_many_checks_may_fail_is_theirs_to_choose(option: str) -> None:
    assert made(option).options == ("policy sequential", "prefer_udp", option)


@pytest.mark.parametrize("option", ["max_concurrent 1000", "max_concurrent 1", "max_concurrent 4999"])
def test_a_dnsproxy_that_hangs_gets_room_for_those_who_wait_for_it(option: str) -> None:
    forward = made(option)
    assert forward.options == (*ALWAYS, "max_concurrent 5000")
    assert option in forward.notes[0]


def test_the_transport_is_theirs_to_choose() -> None:
    assert made("prefer_udp").options == ALWAYS
    assert made("prefer_udp").notes == ()
    forced = made("force_tcp")
    assert forced.options == ("policy sequential", "max_fails 1", "force_tcp")
    assert "connections" in forced.notes[0]


def test_two_addresses_need_three_attempts() -> None:
    forward = made("max_connect_attempts 2", "192.0.2.1", "2001:db8::1")
    assert forward.options == ALWAYS


def test_the_policy_stands_there_once() -> None:
    forward = made("policy sequential")
    assert forward.options == ALWAYS
    assert forward.notes == ()


REFUSED = [
    pytest.param("next NOERROR", "pass dnsproxy's own answers on", id="next on success"),
    pytest.param("next SERVFAIL noerror", "pass dnsproxy's own answers on", id="next on success among others"),
    pytest.param("next_on_nodata", "pass dnsproxy's own answers on", id="next on NODATA"),
]


@pytest.mark.parametrize(("option", "reason"), REFUSED)
def test_an_option_that_passes_our_answers_on_is_refused(option: str, reason: str) -> None:
    with pytest.raises(CorefileError, match=reason) as caught:
        made(option)
    assert caught.value.line == 2
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("version", "option", "expected"),
    [
        pytest.param(None, "", [], id="an unknown version"),
        pytest.param((1, 12, 4), "", [], id="a version without failover"),
        pytest.param((1, 13, 0), "", [], id="a version whose failover does not end"),
        pytest.param((1, 14, 6), "", [], id="the last of those"),
        pytest.param(NEWEST, "", ["failover SERVFAIL REFUSED"], id="a version that has it"),
        pytest.param((2, 0, 0), "", ["failover SERVFAIL REFUSED"], id="a later version"),
        pytest.param(NEWEST, "failover servfail", ["failover REFUSED"], id="one of the codes"),
        pytest.param(NEWEST, "failover REFUSED SERVFAIL", [], id="both codes"),
        pytest.param(None, "failover SERVFAIL", [], id="the original's own"),
    ],
)
def test_failover_is_written_where_it_ends(version: Version | None, option: str, expected: list[str]) -> None:
    theirs = [option] if option else []
    assert list(made(option, version=version).options) == ["policy sequential", *expected, *ALWAYS[1:], *theirs]


def test_failover_that_is_left_out_though_known_is_noted() -> None:
    assert "1.14.7" in made("", version=(1, 13, 2)).notes[0]
    assert made("", version=(1, 12, 4)).notes == ()


@pytest.mark.parametrize(
    ("upstreams", "ours"),
    [
        pytest.param("192.0.2.1", "192.0.2.1", id="the same address"),
        pytest.param("/etc/resolv.conf dns://192.0.2.1:53", "192.0.2.1", id="with scheme and port"),
        pytest.param("[2001:DB8:0::1]", "2001:db8::1", id="another way to write it"),
    ],
)
def test_an_address_that_is_an_upstream_already_is_refused(upstreams: str, ours: str) -> None:
    original = parse_forward(parse_corefile(f". {{\n\n forward . {upstreams}\n}}\n").blocks[0].directives[0])
    with pytest.raises(CorefileError, match="an upstream of this forward already") as caught:
        make_forward(".", original, addresses=[address(ours)], coredns_version=None)
    assert caught.value.line == 3


def test_another_port_of_an_upstream_is_another_server() -> None:
    original = parse_forward(parse_corefile(". {\n forward . 192.0.2.1\n}\n").blocks[0].directives[0])
    forward = make_forward(".", original, addresses=[address("192.0.2.1:1053")], coredns_version=None)
    assert forward.upstreams == ("192.0.2.1:1053", "192.0.2.1")


def test_more_upstreams_than_coredns_takes_are_refused() -> None:
    text = ". {\n forward . " + " ".join(f"192.0.2.{last}" for last in range(10, 24)) + "\n}\n"
    original = parse_forward(parse_corefile(text).blocks[0].directives[0])
    assert len(make_forward(".", original, addresses=[address("192.0.2.1")], coredns_version=None).upstreams) == 15
    with pytest.raises(CorefileError, match="takes 15 upstreams"):
        make_forward(".", original, addresses=[address("192.0.2.1"), address("192.0.2.2")], coredns_version=None)


def test_an_address_is_written_as_short_as_it_goes() -> None:
    written = [format_address(address(one)) for one in ("192.0.2.1", "2001:db8::1", "[2001:db8::1]:1053")]
    assert written == ["192.0.2.1", "2001:db8::1", "[2001:db8::1]:1053"]


def test_a_stanza_is_written_like_its_surroundings() -> None:
    layout = Layout(indent="\t", option_indent="\t  ", newline="\r\n", trailing="\t")
    text = format_stanza([StanzaForward(".", ("192.0.2.1", "192.0.2.53"), ("policy sequential",), ())], layout)
    begin, *lines, end, trailing = text.split("\r\n")
    assert begin.startswith("# BEGIN switchback: managed by dnsproxy")
    assert "`dnsproxy uninstall`" in begin
    assert lines == ["\tforward . 192.0.2.1 192.0.2.53 {", "\t  policy sequential", "\t}"]
    assert (end, trailing) == ("\t# END switchback", "\t")


@pytest.mark.parametrize(
    "option",
    [
        pytest.param(f"policy {'x' * 200_000}", id="a policy"),
        pytest.param(f"next NOERROR {'x ' * 100_000}", id="an option that is refused"),
    ],
)
def test_a_long_option_is_not_repeated_whole(option: str) -> None:
    try:
        told = [*made(option).notes]
    except CorefileError as error:
        told = [str(error)]
    assert told
    assert max(map(len, told)) < 1_000
