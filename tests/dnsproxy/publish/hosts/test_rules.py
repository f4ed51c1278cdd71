"""Zones, and what is refused within them unless the owner names it."""

from __future__ import annotations

import pytest

from dnsproxy.publish.hosts.rules import ROOT, Rules, parse_zone_or_root


def rules(*zones: str, allow: str = "", deny: str = "") -> Rules:
    return Rules(frozenset(zones), allow=frozenset(allow.split()), deny=frozenset(deny.split()))


@pytest.mark.parametrize(
    ("zones", "hostname", "inside"),
    [
        pytest.param(("example.org",), "example.org", True, id="the apex"),
        pytest.param(("example.org",), "a.b.example.org", True, id="below"),
        pytest.param(("example.org",), "notexample.org", False, id="a longer label"),
        pytest.param(("example.org",), "org", False, id="above"),
        pytest.param(("registry.example.org",), "api.example.org", False, id="beside"),
        pytest.param(("a.example.org", "b.example.org"), "b.example.org", True, id="the second"),
        pytest.param((ROOT,), "a.example.net", True, id="all names"),
        pytest.param((), "a.example.net", False, id="no zone"),
    ],
)
def test_a_zone_has_its_apex_and_what_is_below_it(zones: tuple[str, ...], hostname: str, inside: bool) -> None:
    assert rules(*zones).is_inside(hostname) is inside


@pytest.mark.parametrize(
    ("given", "hostname", "refused"),
    [
        pytest.param(rules(ROOT), "quay.io", True, id="a public registry"),
        pytest.param(rules("quay.io"), "quay.io", False, id="its name as the zone"),
        pytest.param(rules("quay.io"), "cdn01.quay.io", True, id="below a protected zone"),
        pytest.param(rules(ROOT, allow="cdn01.quay.io"), "cdn01.quay.io", False, id="allowed"),
        pytest.param(rules(ROOT, allow="quay.io"), "cdn01.quay.io", True, id="below an allowed name"),
        pytest.param(rules("io"), "quay.io", True, id="above a protected name"),
        pytest.param(rules("example.org"), "harbor.example.org", False, id="the cluster's own registry"),
        pytest.param(rules("example.org", deny="api.example.org"), "api.example.org", True, id="denied"),
        pytest.param(rules("example.org", deny="api.example.org"), "x.api.example.org", True, id="below a denied name"),
        pytest.param(rules("example.org", deny="api.example.org"), "b.example.org", False, id="beside a denied name"),
        pytest.param(rules("quay.io", allow="quay.io", deny="quay.io"), "quay.io", True, id="denied and named"),
    ],
)
def test_protected_names_are_taken_only_by_their_exact_name(given: Rules, hostname: str, refused: bool) -> None:
    assert given.is_refused(hostname) is refused


@pytest.mark.parametrize("text", ["", "..", "*", "*.example.org", "192.0.2.1", "a b", ". example.org"])
def test_a_text_that_is_no_zone_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_zone_or_root(text)


def test_a_dot_is_the_zone_of_all_names() -> None:
    assert [parse_zone_or_root(text) for text in (".", " . ", "Example.ORG.")] == [ROOT, ROOT, "example.org"]
