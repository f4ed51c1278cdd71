"""The judge's own reading of Traefik's rules; a real Traefik confirms it in test_traefik_routes.py."""

from __future__ import annotations

import pytest

from tests.differential.rules import REQUESTS, Reading, Rule, may_match

A, B = "a.example.org", "b.example.org"


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        pytest.param("Host(`a.example.org`)", {A}, id="host"),
        pytest.param('HOST("A.example.org.")', {A}, id="quotes, capitals and a final dot"),
        pytest.param("HostSNI(`A.example.org`)", set(), id="HostSNI compares capitals"),
        pytest.param("Host(`a.example.org`) || Host(`b.example.org`)", {A, B}, id="either"),
        pytest.param("Host(`a.example.org`) && Host(`b.example.org`)", set(), id="both"),
        pytest.param("Host(`a.example.org`) || Host(`a.example.org`) && Host(`b.example.org`)", {A}, id="and first"),
        pytest.param("!Host(`a.example.org`)", {B}, id="not"),
        pytest.param("!(Host(`a.example.org`) || PathPrefix(`/`))", set(), id="not in front of parentheses"),
        pytest.param("Path(`/api`) && Path(`/static`)", set(), id="no request has two paths"),
        pytest.param("Host(`*.example.org`)", set(), id="wildcard"),
        pytest.param("HostRegexp(`^[b-z]`)", {B}, id="pattern"),
    ],
)
def test_a_rule_matches_the_hosts_for_which_a_request_exists(text: str, matched: set[str]) -> None:
    assert {name for name in (A, B) if any(may_match(Rule(text), name, one) for one in REQUESTS)} == matched


def test_a_rule_can_be_read_as_by_newer_versions_and_as_if_it_named_no_host() -> None:
    rule = Rule("Host(`*.example.org`) || HostRegexp(`^b`)")
    assert may_match(rule, A, reading=Reading.SINCE_3_7)
    assert not may_match(rule, A, reading=Reading.UNNAMED)
    assert may_match(rule, B, reading=Reading.UNNAMED)


def test_a_pattern_can_be_left_open() -> None:
    rule = Rule("Host(`a.example.org`) && HostRegexp(`^b`)")
    assert not may_match(rule, A, reading=Reading.SINCE_3_7)
    assert may_match(rule, A, reading=Reading.UNPATTERNED)


@pytest.mark.parametrize(
    "text", ["", "Host(", "Host(`a`", "Host(`a`) &&", "Host(`a`))", "Host(a)", "HostRegexp(`[`)", "%"]
)
def test_what_is_no_rule_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        may_match(Rule(text), A)
