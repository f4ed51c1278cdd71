"""Hostnames from text, and wire names to text: which texts are refused, and how names are shown."""

from __future__ import annotations

import dns.name
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dnsproxy.dns import names
from dnsproxy.dns.names import (
    BadName,
    ancestors,
    format_wire,
    is_wildcard,
    is_within,
    parse_hostname,
    parse_zone,
    to_wire,
)
from tests.kit.strategies import LONG_NAME, octet_labels

LABEL_63 = "a" * 63


@pytest.mark.parametrize(
    ("text", "hostname"),
    [
        pytest.param("app.example.org", "app.example.org", id="as it is"),
        pytest.param("App.EXAMPLE.Org", "app.example.org", id="upper case"),
        pytest.param("app.example.org.", "app.example.org", id="final dot"),
        pytest.param(" app.example.org\n", "app.example.org", id="space around it"),
        pytest.param("localhost", "localhost", id="one label"),
        pytest.param("*.example.org", "*.example.org", id="wildcard"),
        pytest.param("*.org", "*.org", id="wildcard over a top level"),
        pytest.param("bücher.example.org", "xn--bcher-kva.example.org", id="international"),
        pytest.param("BÜCHER.example.org", "xn--bcher-kva.example.org", id="international in upper case"),
        pytest.param("xn--bcher-kva.example.org", "xn--bcher-kva.example.org", id="A-label"),
        pytest.param("*.bücher.example.org", "*.xn--bcher-kva.example.org", id="international wildcard"),
        pytest.param("_acme.example.org", "_acme.example.org", id="underscore"),
        pytest.param("1.example.org", "1.example.org", id="digits"),
        pytest.param("1.2.3.4.5", "1.2.3.4.5", id="five numbers are no address"),
        pytest.param(f"{LABEL_63}.example.org", f"{LABEL_63}.example.org", id="label of 63 octets"),
        pytest.param(LONG_NAME, LONG_NAME, id="name of 255 octets"),
    ],
)
def test_a_hostname_has_one_normal_form(text: str, hostname: str) -> None:
    assert parse_hostname(text) == hostname


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("  ", id="space"),
        pytest.param(".", id="root"),
        pytest.param("..", id="two dots"),
        pytest.param("*", id="bare star"),
        pytest.param("*.", id="bare star and dot"),
        pytest.param("*.*", id="two stars"),
        pytest.param("*.*.example.org", id="wildcard below a wildcard"),
        pytest.param("**.example.org", id="double star"),
        pytest.param("app*.example.org", id="star inside a label"),
        pytest.param("app.*.example.org", id="star in the middle"),
        pytest.param("app..example.org", id="empty label"),
        pytest.param(".app.example.org", id="dot in front"),
        pytest.param("app.example.org..", id="two final dots"),
        pytest.param("-app.example.org", id="dash in front"),
        pytest.param("app-.example.org", id="dash behind"),
        pytest.param("app example.org", id="space inside"),
        pytest.param("app.example.org\nevil.example.org", id="newline inside"),
        pytest.param("app.example.org\0", id="NUL"),
        pytest.param("app/path.example.org", id="path"),
        pytest.param("https://app.example.org", id="URL"),
        pytest.param("app.example.org:8080", id="port"),
        pytest.param("192.0.2.1", id="IPv4"),
        pytest.param("192.0.2.1.", id="IPv4 with a dot"),
        pytest.param("\uff11\uff192.0.2.1", id="IPv4 in wide digits"),
        pytest.param("2001:db8::1", id="IPv6"),
        pytest.param("[2001:db8::1]", id="IPv6 in brackets"),
        pytest.param("*.192.0.2.1", id="wildcard of an address"),
        pytest.param(f"{LABEL_63}a.example.org", id="label of 64 octets"),
        pytest.param(f"{'ü' * 63}.example.org", id="label too long as an A-label"),
        pytest.param(LONG_NAME + "d", id="name of 256 octets"),
        pytest.param("\N{SOFT HYPHEN}.example.org", id="label of nothing visible"),
        pytest.param("a\N{IDEOGRAPHIC FULL STOP}b.example.org", id="another script's dot"),
        pytest.param("xn--a\N{COMBINING GRAVE ACCENT}.example.org", id="half an A-label"),
        pytest.param("\ud800.example.org", id="lone surrogate"),
    ],
)
def test_what_is_no_hostname_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadName) as caught:
        parse_hostname(text)
    assert str(caught.value).startswith(ascii(text)[:20])


@pytest.mark.parametrize("octet", range(128))
def test_letters_digits_underscore_and_inner_dash_alone_make_a_label(octet: int) -> None:
    text = f"a{chr(octet)}b.example.org"
    if chr(octet).isalnum() or chr(octet) in "_-.":
        assert parse_hostname(text) == text.lower()
    else:
        with pytest.raises(BadName):
            parse_hostname(text)


@pytest.mark.parametrize("length", range(1, 70))
def test_a_label_has_at_most_63_octets(length: int) -> None:
    text = "a" * length + ".example.org"
    if length <= 63:
        assert parse_hostname(text) == text
    else:
        with pytest.raises(BadName):
            parse_hostname(text)


def test_a_refusal_shows_the_text_harmless_and_cut() -> None:
    with pytest.raises(BadName) as caught:
        parse_hostname("\x1b[31m" + "x" * 10_000)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 300


@given(st.text() | st.text("ab.*-_1\N{FULLWIDTH DIGIT ONE}ü\N{KELVIN SIGN}\N{LATIN SMALL LETTER LONG S}", max_size=12))
@example("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}.example.org")
def test_any_text_is_a_hostname_in_normal_form_or_refused(text: str) -> None:
    try:
        hostname = parse_hostname(text)
    except BadName:
        return
    assert parse_hostname(hostname) == hostname
    assert is_wildcard(hostname) == hostname.startswith("*.")
    base = hostname.removeprefix("*.")
    assert to_wire(hostname) == dns.name.from_text(base).to_wire() == to_wire(hostname).lower()


@given(st.lists(octet_labels, max_size=3))
def test_a_wire_name_is_shown_as_dnspython_shows_it(labels: list[bytes]) -> None:
    wire = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    assert format_wire(wire) == dns.name.from_wire(wire, 0)[0].to_text()


@pytest.mark.parametrize("octet", range(256))
def test_every_octet_is_shown_in_printable_ascii(octet: int) -> None:
    wire = bytes([1, octet, 0])
    shown = format_wire(wire)
    assert shown == dns.name.from_wire(wire, 0)[0].to_text()
    assert all(0x21 <= ord(character) <= 0x7E for character in shown)


def test_a_dot_inside_a_label_is_not_the_dot_between_labels() -> None:
    assert format_wire(b"\x03a.b\x00") == "a\\.b."
    assert format_wire(b"\x01a\x01b\x00") == "a.b."


@pytest.mark.parametrize("wire", [b"", b"\x05ab", b"\x01a", b"\xff"], ids=["nothing", "cut", "no end", "no label"])
def test_showing_a_broken_name_raises_nothing(wire: bytes) -> None:
    assert format_wire(wire).isascii()


@pytest.mark.parametrize(
    ("hostname", "above"),
    [
        ("", []),
        ("org", [""]),
        ("app.example.org", ["example.org", "org", ""]),
    ],
    ids=["root", "top level", "three labels"],
)
def test_the_names_above_a_name_end_with_the_root(hostname: str, above: list[str]) -> None:
    assert ancestors(to_wire(hostname)) == [to_wire(name) for name in above]


@pytest.mark.parametrize("text", ["*.example.org", "*.org", "*", "", ".", "a..b", "192.0.2.1", "-x", "a b", "x" * 64])
def test_what_is_no_zone_is_refused(text: str) -> None:
    """Above all a wildcard: as a zone or cluster domain it would silently match nothing."""
    with pytest.raises(BadName) as caught:
        parse_zone(text)
    assert str(caught.value).isprintable()


def test_a_zone_gets_the_normal_form_of_a_hostname() -> None:
    assert parse_zone(" Bücher.Example.ORG. ") == "xn--bcher-kva.example.org"


@pytest.mark.parametrize(
    ("name", "zone", "expected"),
    [("example.org", "example.org", True), ("a.b.example.org", "example.org", True), ("org", "example.org", False),
     ("anexample.org", "example.org", False), ("example.org.net", "example.org", False), ("", "org", False)],
)  # fmt: skip
def test_a_name_is_within_a_zone_by_whole_labels(name: str, zone: str, expected: bool) -> None:
    assert is_within(name, zone) is expected


@pytest.mark.parametrize(
    ("name", "zone", "expected"),
    [
        pytest.param("a.corp.test", "corp.test", True, id="below"),
        pytest.param("corp.test", "corp.test", True, id="apex"),
        pytest.param("xcorp.test", "corp.test", False, id="not at a label"),
        pytest.param("test", "corp.test", False, id="above"),
        pytest.param("", "", True, id="root"),
        pytest.param("corp.test", "", True, id="below the root"),
    ],
)
def test_wire_names_are_within_a_zone_by_whole_labels(name: str, zone: str, expected: bool) -> None:
    assert names.is_within_wire(names.to_wire(name), names.to_wire(zone)) is expected
