"""A forward directive is read as its plugin reads it."""

from __future__ import annotations

import pytest

from dnsproxy.corefile.forward_directive import Forward, parse_forward
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile


def parsed(text: str) -> Forward:
    blocks = parse_corefile(text if text.startswith("(") else f". {{\n{text}\n}}\n").blocks
    return parse_forward(blocks[0].named("forward")[0])


OPTIONS = [
    pytest.param("{\n max_fails 3\n policy random\n}", ["max_fails 3", "policy random"], id="one a line"),
    pytest.param("{ max_fails 3 policy random }", ["max_fails 3", "policy random"], id="several on a line"),
    pytest.param("{\n force_tcp prefer_udp\n}", ["force_tcp", "prefer_udp"], id="options without a value"),
    pytest.param("{\n except a.org b.org\n expire 9s\n}", ["except a.org b.org", "expire 9s"], id="a list of values"),
    pytest.param("{\n next NXDOMAIN SERVFAIL expire\n}", ["next NXDOMAIN SERVFAIL expire"], id="a list takes its line"),
    pytest.param(
        "{\n health_check 5s no_rec domain a.org\n}", ["health_check 5s no_rec domain a.org"], id="health_check"
    ),
    pytest.param("{\n tls  a b\t c # files\n}", ["tls a b c"], id="blanks and comments between values"),
    pytest.param('{\n tls_servername "a.org"\n}', ['tls_servername "a.org"'], id="quotes stay"),
    pytest.param("{\n max_fails 3#three\n}", ["max_fails 3"], id="a glued comment goes"),
    pytest.param("{\n unheard_of 1 2\n}", ["unheard_of 1 2"], id="an unknown option takes its line"),
    pytest.param("{\n}", [], id="no options"),
    pytest.param("", [], id="no block"),
]


@pytest.mark.parametrize(("block", "options"), OPTIONS)
def test_options_are_cut_as_the_plugin_cuts_them(block: str, options: list[str]) -> None:
    assert [option.raw for option in parsed(f"forward . 192.0.2.1 {block}").options] == options


def test_options_out_of_a_snippet_count() -> None:
    text = "(o) {\n max_fails 3\n expire 9s\n}\n. {\n forward . 192.0.2.1 {\n  import o\n  force_tcp\n }\n}\n"
    assert [option.raw for option in parsed(text).options] == ["max_fails 3", "expire 9s", "force_tcp"]


def test_upstreams_are_kept_as_written_and_compared_as_endpoints() -> None:
    forward = parsed(
        'forward Example.org "192.0.2.1" dns://192.0.2.2:5353 [2001:DB8::0:1]:53 2001:db8::2 /etc/resolv.conf'
    )
    assert forward.zone == "example.org."
    assert forward.upstreams_raw[0] == '"192.0.2.1"'
    assert list(map(str, forward.endpoints())) == [
        "192.0.2.1:53",
        "192.0.2.2:5353",
        "[2001:db8::1]:53",
        "[2001:db8::2]:53",
    ]


def test_upstreams_over_other_transports_are_no_plain_endpoints() -> None:
    assert parsed("forward . tls://192.0.2.1 https://192.0.2.2 dns.example.org {$UPSTREAM}").endpoints() == []


@pytest.mark.parametrize(
    ("text", "zone", "serves"),
    [
        pytest.param("forward . 192.0.2.1", ".", True, id="the root"),
        pytest.param("forward . 192.0.2.1", "example.org.", True, id="below the root"),
        pytest.param("forward org 192.0.2.1", "example.org.", True, id="below a zone"),
        pytest.param("forward example.org 192.0.2.1", ".", False, id="above its zone"),
        pytest.param("forward . 192.0.2.1 {\n except org\n}", "example.org.", False, id="under except"),
        pytest.param("forward . 192.0.2.1 {\n except a.example.org\n}", "example.org.", True, id="above except"),
        pytest.param("forward {$ZONE} 192.0.2.1", "example.org.", False, id="an unknown zone"),
    ],
)
def test_a_forward_serves_what_is_in_its_zone_and_not_excepted(text: str, zone: str, serves: bool) -> None:
    assert parsed(text).serves(zone) is serves


REFUSED = [
    pytest.param("forward", "no zone or no upstream", id="nothing"),
    pytest.param("forward .", "no zone or no upstream", id="no upstream"),
    pytest.param("forward {\n}", "no zone or no upstream", id="a block alone"),
    pytest.param("forward .: 192.0.2.1", "no port", id="a zone with a colon"),
    pytest.param("forward a..b 192.0.2.1", "not a domain name", id="no zone"),
    pytest.param("forward . 192.0.2.1 {\n except a..b\n}", "not a domain name", id="except of no zone"),
    pytest.param("forward . 192.0.2.1 {\n {\n }\n}", "a block inside its block", id="a nested block"),
    pytest.param("forward . 192.0.2.1 {\n} b", "a block inside its block, or words after it", id="words after it"),
    pytest.param("forward . 192.0.2.1 {\n import o\n}", "are in another file, 'o'", id="options in a file"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_a_forward_that_cannot_be_read_is_refused(text: str, reason: str) -> None:
    with pytest.raises(CorefileError, match=reason) as caught:
        parsed(text)
    assert caught.value.line >= 2
