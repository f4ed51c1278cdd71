"""Zones and keys are compared in one form."""

from __future__ import annotations

import pytest

from dnsproxy.corefile.zones import Origin, has_environment, is_at_or_below, normalize_zone, parse_origin, reverse_zones

ORIGINS = [
    pytest.param(".", Origin("."), id="the root"),
    pytest.param(".:53", Origin("."), id="the root with its port"),
    pytest.param("dns://.:1053", Origin(".", "dns", 1053), id="another port"),
    pytest.param("tls://Example.ORG", Origin("example.org.", "tls", 853), id="the port of a scheme"),
    pytest.param("https://example.org.:8443", Origin("example.org.", "https", 8443), id="https"),
    pytest.param("example.org:+53", Origin("example.org."), id="a port as Go reads numbers"),
    pytest.param("example.org:dns", Origin("example.org:dns."), id="a name for a port is part of the zone"),
    pytest.param("10.0.0.0/24:53", Origin("10.0.0.0/24."), id="CIDR stays as it is"),
    pytest.param("(s)", Origin("(s)."), id="almost any text is a zone"),
    pytest.param("{$ZONE}:53", Origin(None), id="an environment variable"),
    pytest.param("{%ZONE%}", Origin(None), id="an environment variable, Windows fashion"),
    pytest.param("{$}", Origin("{$}."), id="no variable"),
    pytest.param("a." + "9" * 30, Origin("a." + "9" * 30 + "."), id="many digits"),
]

NOT_ORIGINS = [
    pytest.param("", id="nothing"),
    pytest.param(":53", id="a port alone"),
    pytest.param(".:", id="a colon without a port"),
    pytest.param("example.org:", id="a name and a colon"),
    pytest.param("a..b", id="an empty label"),
    pytest.param(".a", id="a dot in front"),
    pytest.param("a" * 64, id="a long label"),
    pytest.param("ab." * 90, id="a long name"),
    pytest.param("dns://", id="a scheme alone"),
]


@pytest.mark.parametrize(("key", "origin"), ORIGINS)
def test_a_key_is_read_as_coredns_reads_it(key: str, origin: Origin) -> None:
    assert parse_origin(key) == origin


@pytest.mark.parametrize("key", NOT_ORIGINS)
def test_a_key_that_coredns_refuses_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r"name|port"):
        parse_origin(key)


@pytest.mark.parametrize(
    ("zone", "parent", "inside"),
    [
        pytest.param(".", ".", True, id="the root in itself"),
        pytest.param("example.org", ".", True, id="all in the root"),
        pytest.param("a.example.org", "Example.org.", True, id="a child"),
        pytest.param("badexample.org", "example.org", False, id="a name with the same end"),
        pytest.param(".", "example.org", False, id="the root in a zone"),
        pytest.param("org", "example.org", False, id="a parent"),
    ],
)
def test_a_zone_lies_inside_another_by_whole_labels(zone: str, parent: str, inside: bool) -> None:
    assert is_at_or_below(normalize_zone(zone), normalize_zone(parent)) is inside


def test_only_complete_references_are_environment_variables() -> None:
    assert has_environment("a{$B}c")
    assert not any(map(has_environment, ["{", "{$", "{$}", "{%%}", "$B", "{B}"]))


@pytest.mark.parametrize(
    ("zone", "zones"),
    [
        pytest.param("10.1.2.3/8.", ["10.in-addr.arpa."], id="a network"),
        pytest.param("10.0.0.0/23.", ["0.0.10.in-addr.arpa.", "1.0.10.in-addr.arpa."], id="between two octets"),
        pytest.param("0.0.0.0/0.", ["in-addr.arpa."], id="all of IPv4"),
        pytest.param("2001:db8::/32.", ["8.b.d.0.1.0.0.2.ip6.arpa."], id="IPv6"),
        pytest.param("10.0.0.0/33.", ["10.0.0.0/33."], id="no such length"),
        pytest.param("10.0.0.0/255.0.0.0.", ["10.0.0.0/255.0.0.0."], id="a mask"),
        pytest.param("10.0.0.1.", ["10.0.0.1."], id="an address"),
        pytest.param("a/8.", ["a/8."], id="a name with a slash"),
        pytest.param(".", ["."], id="the root"),
    ],
)
def test_a_network_is_the_reverse_zones_that_coredns_reads(zone: str, zones: list[str]) -> None:
    assert list(reverse_zones(zone)) == zones
