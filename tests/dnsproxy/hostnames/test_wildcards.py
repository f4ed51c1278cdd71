"""Which labels a wildcard covers, and which wildcards cover a name."""

from __future__ import annotations

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.wildcards import reach_in_dns, reach_in_ingress, reaches, wider


@pytest.mark.parametrize(
    ("hostname", "expected"),
    [
        ("a.b.org", ["*.b.org", "*.org"]),
        ("*.b.org", ["*.org"]),
        ("b.org", ["*.org"]),
        ("*.org", []),
        ("org", []),
    ],
)
def test_wider_wildcards_come_narrowest_first(hostname: str, expected: list[str]) -> None:
    assert list(wider(hostname)) == expected


@pytest.mark.parametrize(
    ("hostname", "in_dns", "in_ingress"),
    [
        pytest.param("a.example.org", Reach.NAME, Reach.NAME, id="a name"),
        pytest.param("*.example.org", Reach.ANY_LABELS, Reach.ONE_LABEL, id="a wildcard"),
    ],
)
def test_the_source_decides_how_many_labels_a_wildcard_covers(hostname: str, in_dns: Reach, in_ingress: Reach) -> None:
    assert (reach_in_dns(hostname), reach_in_ingress(hostname)) == (in_dns, in_ingress)
    assert {in_dns, in_ingress} == set(reaches(hostname))
