"""The probe of rewrite lines: its names, and the queries for addresses."""

from __future__ import annotations

import dnslib
import pytest

from dnsproxy.dns.rewrite_probe import domain_of, format_address_query, format_marker, is_marker
from dnsproxy.dns.wire import Type


@pytest.mark.parametrize("domain", ["cluster.local", "k8s.example.org", "local"])
def test_a_marker_has_its_cluster_domain(domain: str) -> None:
    marker = format_marker("0123456789abcdef", domain)
    assert is_marker(marker)
    assert domain_of(marker) == domain
    assert domain_of(f"{marker}.") == domain


@pytest.mark.parametrize(
    "zone", [".", "", "example.org", "_switchback-rewrites.example.org", "a._switchback-probe.example.org"]
)
def test_a_zone_is_no_marker(zone: str) -> None:
    assert not is_marker(zone)


def test_a_query_asks_for_one_name_and_type() -> None:
    parsed = dnslib.DNSRecord.parse(format_address_query("app.example.org", Type.AAAA, 7))
    assert (parsed.header.id, str(parsed.q.qname), parsed.q.qtype) == (7, "app.example.org.", Type.AAAA)


def test_a_name_that_is_too_long_is_an_error() -> None:
    with pytest.raises(ValueError, match="too long to be asked for"):
        format_address_query(".".join(["a" * 63] * 4), Type.A, 1)
