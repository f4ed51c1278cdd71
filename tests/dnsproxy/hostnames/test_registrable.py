"""From hostnames to zones, by the list of public suffixes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import is_within, parse_hostname
from dnsproxy.hostnames.registrable import registrable_zones


@pytest.mark.parametrize(
    ("hostname", "zone"),
    [
        ("app.example.org", "example.org"),
        ("example.org", "example.org"),
        ("*.apps.example.org", "example.org"),
        ("a.b.c.example.co.uk", "example.co.uk"),
        ("APP.Example.ORG.", "example.org"),
        ("me.github.io", "me.github.io"),
        ("github.io", "github.io"),
        ("x.y.s3.amazonaws.com", "y.s3.amazonaws.com"),
        ("app.corp.internal", "corp.internal"),
        ("app", "app"),
        ("größe.example.org", "example.org"),
        ("a.bücher.example", "xn--bcher-kva.example"),
        ("a.b.c.kawasaki.jp", "b.c.kawasaki.jp"),
        ("a.city.kawasaki.jp", "city.kawasaki.jp"),
    ],
)
def test_a_zone_is_one_label_below_a_public_suffix(hostname: str, zone: str) -> None:
    assert registrable_zones([hostname]) == (zone,)


@pytest.mark.parametrize(
    "hostname",
    [
        *("", "*", ".", "192.0.2.1", "2001:db8::1", "localhost", "app.localhost", "web.default.svc", "a b"),
        *("a..b", "web.default.svc.cluster.local", "cluster.local", "-a.example.org", "x" * 64 + ".org", "\0"),
    ],
    ids=ascii,
)
def test_what_dnsproxy_never_takes_gives_no_zone(hostname: str) -> None:
    assert registrable_zones([hostname]) == ()


def test_zones_are_sorted_and_each_is_there_once() -> None:
    hosts = ["b.example.org", "a.example.org", "shop.example.net", "github.io", "me.github.io"]
    assert registrable_zones(hosts) == ("example.net", "example.org", "github.io")
    assert registrable_zones(reversed(hosts)) == registrable_zones(hosts)


LABELS = st.sampled_from(["a", "b", "example", "org", "co", "uk", "github", "io", "com", "ck", "www", "xn--bcher-kva"])


@given(st.lists(st.lists(LABELS, min_size=1, max_size=5).map(".".join), max_size=6))
def test_every_name_lies_in_one_zone_and_no_zone_in_another(hostnames: list[str]) -> None:
    zones = registrable_zones(hostnames)
    for hostname in hostnames:
        assert sum(is_within(parse_hostname(hostname), zone) for zone in zones) == 1
    assert not any(is_within(zone, other) for zone in zones for other in zones if zone != other)
