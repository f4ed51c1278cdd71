"""Hostnames from text, and wire names to text: which texts are refused, and how names are shown."""

from __future__ import annotations

import dns.name
import idna
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dnsproxy.dns import names
from dnsproxy.dns.names import (
    MOST_IN_OTHER_SCRIPTS,
    BadName,
    ObjectNames,
    ancestors,
    format_wire,
    is_wildcard,
    is_within,
    parse_hostname,
    parse_hostnames,
    parse_zone,
    to_wire,
)
from tests.kit.rows import failing
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
        pytest.param(
            "straße.example.org", "xn--strae-oqa.example.org", id="not transitional: another name than strasse"
        ),
        pytest.param("ΟΔΟΣ.example.org", "xn--pxavbq.example.org", id="upper case letter by letter, no final sigma"),
        pytest.param("\u13a0\u13a1.example.org", "xn--58dc.example.org", id="Cherokee, whose normal case is the upper"),
        pytest.param("XN--BCHER-KVA.example.org", "xn--bcher-kva.example.org", id="A-label in upper case"),
        pytest.param("xn--i-7iq.example.org", "xn--i-7iq.example.org", id="A-label of an emoji"),
        pytest.param("xn--11b5bs3a9aj6g", "xn--11b5bs3a9aj6g", id="A-label of a top level"),
        pytest.param("axn--b.example.org", "axn--b.example.org", id="prefix of A-labels inside a label"),
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
        pytest.param("\uff41\uff50\uff49.example.org", id="letters of full width"),
        pytest.param("api.\uff45xample.org", id="one letter of full width"),
        pytest.param("\N{KELVIN SIGN}iosk.example.org", id="Kelvin sign, in lower case a k"),
        pytest.param("\N{KELVIN SIGN}ü.example.org", id="Kelvin sign beside another script"),
        pytest.param("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}.example.org", id="case that does not come back"),
        pytest.param("\N{LATIN SMALL LETTER LONG S}hop.example.org", id="long s"),
        pytest.param("\N{LATIN SMALL LIGATURE FI}.example.org", id="ligature"),
        pytest.param("\N{CIRCLED LATIN SMALL LETTER A}.example.org", id="circled letter"),
        pytest.param("\N{MATHEMATICAL BOLD SMALL A}.example.org", id="mathematical letter"),
        pytest.param("e\N{COMBINING ACUTE ACCENT}.example.org", id="decomposed"),
        pytest.param("a\N{ZERO WIDTH JOINER}b.example.org", id="joiner between Latin letters"),
        pytest.param("a\N{RIGHT-TO-LEFT OVERRIDE}b.example.org", id="direction of writing"),
        pytest.param("a\N{FULLWIDTH FULL STOP}b.example.org", id="dot of full width"),
        pytest.param("app.example.org\N{IDEOGRAPHIC FULL STOP}", id="another script's dot at the end"),
        pytest.param("\N{HEAVY BLACK HEART}.example.org", id="emoji as such"),
        pytest.param("ü" * 100_000, id="very long label"),
        pytest.param("xn--a-ecp.example.org", id="A-label of upper case"),
        pytest.param("xn--api-226s.example.org", id="A-label of full width"),
        pytest.param("xn--ph7c4a.example.org", id="A-label of full width alone"),
        pytest.param("xn--99999999999.example.org", id="A-label that cannot be decoded"),
        pytest.param("xn--.example.org", id="A-label of nothing"),
        pytest.param("xn--api-.example.org", id="A-label of ASCII"),
        pytest.param("*.xn--ph7c4a.example.org", id="wildcard below an A-label of full width"),
    ],
)
def test_what_is_no_hostname_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadName) as caught:
        parse_hostname(text)
    assert str(caught.value).startswith(ascii(text)[:20])


def normal_form(text: str) -> str | None:
    """None: it is refused."""
    try:
        return parse_hostname(text)
    except BadName:
        return None


def test_letters_digits_underscore_and_inner_dash_alone_make_a_label() -> None:
    texts = {code: f"a{chr(code)}b.example.org" for code in range(128)}
    allowed = {code for code in texts if chr(code).isalnum() or chr(code) in "_-."}
    found = {code: normal_form(text) for code, text in texts.items()}
    assert found == {code: text.lower() if code in allowed else None for code, text in texts.items()}


def test_a_label_has_at_most_63_octets() -> None:
    texts = {length: "a" * length + ".example.org" for length in range(1, 70)}
    found = {length: normal_form(text) for length, text in texts.items()}
    assert found == {length: text if length <= 63 else None for length, text in texts.items()}


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


@given(
    st.text(
        "bü\N{LATIN CAPITAL LETTER U WITH DIAERESIS}ßςאب日k\N{KELVIN SIGN}\uff4b\u13a0\N{COMBINING ACUTE ACCENT}",
        min_size=1,
        max_size=8,
    )
)
def test_a_spelling_comes_back_from_its_a_label(label: str) -> None:
    try:
        a_label = parse_hostname(label)
    except BadName:
        return
    assert a_label.startswith("xn--") is not label.isascii()
    back = idna.decode(a_label)
    assert len(back) == len(label)
    assert all(one in (other, other.lower()) for one, other in zip(back, label, strict=True))
    assert parse_hostname(back) == parse_hostname(a_label) == a_label


def test_no_letter_of_another_script_becomes_an_ascii_letter() -> None:
    """Tried in full, for each letter alone and beside an ASCII letter."""
    for code in range(0x80, 0x10000):
        for label in (chr(code), "a" + chr(code)):
            try:
                hostname = parse_hostname(f"{label}.example.org")
            except BadName:
                continue
            assert hostname.startswith("xn--"), hex(code)


@given(st.lists(octet_labels, max_size=3))
def test_a_wire_name_is_shown_as_dnspython_shows_it(labels: list[bytes]) -> None:
    wire = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    assert format_wire(wire) == dns.name.from_wire(wire, 0)[0].to_text()


def test_every_octet_is_shown_in_printable_ascii() -> None:
    def check(octet: int) -> None:
        wire = bytes([1, octet, 0])
        shown = format_wire(wire)
        assert shown == dns.name.from_wire(wire, 0)[0].to_text()
        assert all(0x21 <= ord(character) <= 0x7E for character in shown)

    assert failing(check, range(256)) == []


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


HOSTNAMES = st.lists(st.sampled_from(["a", "b", "ab", "ba", "example", "org", "xn--bcher-kva"]), min_size=1, max_size=4)


@given(HOSTNAMES, HOSTNAMES)
def test_a_name_is_within_a_zone_exactly_if_its_last_labels_are_the_zone(name: list[str], zone: list[str]) -> None:
    expected = name[-len(zone) :] == zone
    assert is_within(".".join(name), ".".join(zone)) is expected
    assert names.is_within_wire(to_wire(".".join(name)), to_wire(".".join(zone))) is expected


@pytest.mark.parametrize("name", ["b\u00fccher.example.org", "xn--bcher-kva.example.org", "XN--bcher-kva.example.org"])
def test_an_object_has_its_first_names_in_other_scripts_and_all_others(name: str) -> None:
    first = MOST_IN_OTHER_SCRIPTS // len(name)
    some = ObjectNames()
    assert {some.parse(name) for _ in range(first)} == {"xn--bcher-kva.example.org"}
    for _ in range(3):
        with pytest.raises(BadName, match="is left out: one object may have 10,000 characters"):
            some.parse(name)
        assert some.parse("plain.example.org") == "plain.example.org"
    with pytest.raises(BadName, match="is not a hostname"):
        some.parse("*")
    assert ObjectNames().parse(name) == "xn--bcher-kva.example.org"


def test_of_the_texts_of_an_object_each_invalid_one_is_a_fault_and_affects_no_other() -> None:
    texts = ["b.example.org", "-x.example.org", "A.example.org.", "b.example.org", ""]
    hostnames, faults = parse_hostnames(texts)
    assert list(hostnames) == ["b.example.org", "a.example.org"]
    assert len(faults) == 2
    assert "-x.example.org" in faults[0]


def test_the_texts_of_an_object_have_one_limit_together() -> None:
    long = [f"{'ü' * 40}{number}.example.org" for number in range(400)]
    hostnames, faults = parse_hostnames(long)
    assert 0 < len(hostnames) < len(long)
    assert "is left out" in faults[-1]
