"""Sets of the hostnames that a rule mentions."""

from __future__ import annotations

import pytest

from dnsproxy.sources.described.traefik_names import EVERY, NONE, OTHERS, PATTERNED, MentionedNames

NAMES = MentionedNames(["*.a.org", "x.a.org", "B.org.", "y.x.a.org", "b.org", "*.b.org"])
ALL = ["*.a.org", "x.a.org", "B.org.", "y.x.a.org", "*.b.org"]


@pytest.mark.parametrize(
    ("hosts", "covered"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["x.a.org"], ["x.a.org"], id="a name"),
        pytest.param(["X.a.org."], ["x.a.org"], id="another spelling"),
        pytest.param(["b.org", "x.a.org"], ["x.a.org", "B.org."], id="in the order of the rule"),
        pytest.param(["*.a.org"], ["*.a.org", "x.a.org"], id="a wildcard and the names one label below"),
        pytest.param(["*.b.org", "*.a.org"], ["*.a.org", "x.a.org", "*.b.org"], id="two wildcards"),
        pytest.param(["*.a.org", "b.org"], ["*.a.org", "x.a.org", "B.org."], id="a wildcard and a name"),
        pytest.param(["c.org", "*.org"], [], id="not mentioned"),
    ],
)
def test_a_set_has_the_mentioned_names_that_its_hosts_cover(hosts: list[str], covered: list[str]) -> None:
    elements = NAMES.set_of(hosts)
    assert list(NAMES.in_set(elements)) == covered
    assert list(NAMES.in_set(~elements)) == [host for host in ALL if host not in covered]
    assert not elements & (OTHERS | PATTERNED)
    assert ~elements & OTHERS
    assert ~elements & PATTERNED


def test_every_name_and_no_name_are_sets() -> None:
    assert list(NAMES.in_set(EVERY)) == ALL
    assert list(NAMES.in_set(NONE)) == []
    assert list(MentionedNames([]).in_set(EVERY)) == []


@pytest.mark.parametrize(
    ("wildcard", "below"),
    [
        pytest.param("*.a.org", ["*.a.org", "x.a.org"], id="with names"),
        pytest.param("*.B.org", ["*.b.org"], id="without names"),
        pytest.param("*.org", ["B.org."], id="not mentioned itself"),
        pytest.param("x.a.org", [], id="a name"),
    ],
)
def test_the_names_below_a_wildcard(wildcard: str, below: list[str]) -> None:
    assert list(NAMES.below(wildcard, EVERY)) == below
    assert list(NAMES.below(wildcard, NONE)) == []
