"""Which labels a wildcard covers, which wildcards cover a name, and which names two hostnames have in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.wildcards import intersect, reach_in_dns, reach_in_ingress, reaches, wider


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


def common(one: str, other: str) -> str | None:
    pairs = list(intersect({one}, {other}))
    assert [pair[:2] for pair in pairs] in ([], [(one, other)])
    return pairs[0][2] if pairs else None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param("a.example.org", "a.example.org", "a.example.org", id="equal"),
        pytest.param("a.example.org", "b.example.org", None, id="two names"),
        pytest.param("a.example.org", "*.example.org", "a.example.org", id="one label"),
        pytest.param("a.b.example.org", "*.example.org", "a.b.example.org", id="two labels"),
        pytest.param("example.org", "*.example.org", None, id="the parent itself"),
        pytest.param("aexample.org", "*.example.org", None, id="no whole label"),
        pytest.param("example.org.uk", "*.example.org", None, id="in the middle"),
        pytest.param("*.example.org", "*.example.org", "*.example.org", id="equal wildcards"),
        pytest.param("*.b.example.org", "*.example.org", "*.b.example.org", id="the narrower wildcard"),
        pytest.param("*.a.example.org", "*.b.example.org", None, id="wildcards side by side"),
        pytest.param("*.aexample.org", "*.example.org", None, id="wildcard, no whole label"),
        pytest.param("*.org", "a.b.c.example.org", "a.b.c.example.org", id="a wide wildcard"),
        pytest.param("org", "*.org", None, id="a single label"),
    ],
)
def test_the_intersection_is_the_narrower_whichever_is_whose(one: str, other: str, expected: str | None) -> None:
    """The rows are those of the text of the Gateway API's specification, and their neighbours."""
    assert common(one, other) == expected
    assert common(other, one) == expected


names = st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map(".".join)
hostnames = st.builds(lambda wild, name: f"*.{name}" if wild else name, st.booleans(), names)


def stands_for(hostname: str, name: str) -> bool:
    """As in the specification of the Gateway API: a wildcard is a suffix match."""
    return name.endswith(hostname[1:]) if hostname.startswith("*.") else name == hostname


@given(hostnames, hostnames, st.lists(names))
def test_the_intersection_has_the_names_of_both(one: str, other: str, some: list[str]) -> None:
    both = common(one, other)
    assert both in (None, one, other)
    for name in some:
        expected = stands_for(one, name) and stands_for(other, name)
        assert (both is not None and stands_for(both, name)) == expected


@given(st.sets(hostnames), st.sets(hostnames))
def test_pairs_are_found_among_many_as_among_two(ones: set[str], others: set[str]) -> None:
    expected = {(one, other, both) for one in ones for other in others if (both := common(one, other)) is not None}
    found = list(intersect(ones, others))
    assert set(found) == expected
    assert len(found) == len(expected)


@given(hostnames, hostnames)
def test_two_wildcards_without_common_names_are_disjoint(one: str, other: str) -> None:
    """Without an intersection, the suffixes exclude each other: no name matches both."""
    if common(one, other) is None:
        probes = {one.replace("*", "x"), other.replace("*", "x"), one.replace("*", "x.y"), other.replace("*", "x.y")}
        assert not any(stands_for(one, probe) and stands_for(other, probe) for probe in probes)
