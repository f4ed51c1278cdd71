"""Hostnames as sets of names, against the definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.gateway.contribution import intersect


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
    """The rows are those of the specification's text, and their neighbours."""
    assert common(one, other) == expected
    assert common(other, one) == expected


names = st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map(".".join)
hostnames = st.builds(lambda wild, name: f"*.{name}" if wild else name, st.booleans(), names)


def stands_for(hostname: str, name: str) -> bool:
    """As in the specification: a wildcard is a suffix match."""
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
