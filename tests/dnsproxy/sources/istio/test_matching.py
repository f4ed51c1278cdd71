"""The names that are served together, against comparing each host with each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.hostnames.wildcards import intersect
from dnsproxy.sources.istio.hosts import ServerHosts, make_name_set, parse_servers
from dnsproxy.sources.istio.matching import Match, match_hosts
from dnsproxy.sources.istio.structs import Server

names = st.lists(st.sampled_from(["a", "b", "a-b"]), min_size=1, max_size=3).map(".".join)
hostnames = st.builds(lambda wild, name: f"*.{name}" if wild else name, st.booleans(), names)
doors = st.builds("{}{}".format, st.sampled_from(["", "web/", "./"]), hostnames | st.just("*"))


def hosts(*texts: str) -> ServerHosts:
    parsed, _ = parse_servers([Server(texts)], home="infra", most=None)
    return parsed


def compared(own: Sequence[str], gateways: Sequence[ServerHosts], *, takes_all: bool) -> Match:
    """The same in the plainest way."""
    served: dict[str, int] = {}
    matched = set()
    for number, gateway in enumerate(gateways):
        theirs = {name for some in gateway.names_for("web") for name in some.names}
        pairs = [(one, name) for one, _, name in intersect(set(own), theirs)]
        pairs += [(one, one) for one in own if gateway.have_every_name_for("web")]
        pairs += [("*", name) for name in theirs if takes_all]
        for one, name in pairs:
            served.setdefault(name, number)
            matched.add(one)
    return Match(served, frozenset(matched))


@given(st.lists(hostnames, max_size=6), st.lists(st.lists(doors, max_size=6), max_size=3), st.booleans())
def test_names_are_found_as_if_each_was_compared_with_each(
    own: list[str], servers: list[list[str]], takes_all: bool
) -> None:
    gateways = [hosts(*texts) for texts in servers]
    assert match_hosts(own, gateways, namespace="web", takes_all=takes_all) == compared(
        own, gateways, takes_all=takes_all
    )


def test_the_widest_wildcard_has_the_names_of_all_and_each_one_matches() -> None:
    servers = hosts("a.b.example.org", "b.b.example.org", "c.example.org", "c.example.net")
    found = match_hosts(["*.b.example.org", "*.example.org", "*.x.example.org"], [servers], namespace="web")
    assert found.served == {"a.b.example.org": 0, "b.b.example.org": 0, "c.example.org": 0}
    assert found.matched == {"*.b.example.org", "*.example.org"}


def test_hosts_of_other_namespaces_are_not_there() -> None:
    servers = hosts("shop/a.example.org", "./b.example.org", "shop/*")
    assert match_hosts(["a.example.org", "*.example.org"], [servers], namespace="web", takes_all=True) == Match(
        {}, frozenset()
    )


@pytest.mark.parametrize(
    ("wildcard", "expected"),
    [
        pytest.param("*.example.org", ["a.b.example.org", "*.example.org", "b.example.org"], id="at any depth, itself"),
        pytest.param("*.b.example.org", ["a.b.example.org"], id="one"),
        pytest.param("*.org", ["a.b.example.org", "example.org", "*.example.org", "b.example.org"], id="wide"),
        pytest.param("*.a.b.example.org", [], id="not the apex"),
        pytest.param("*.ample.org", [], id="no whole label"),
        pytest.param("*.net", [], id="none"),
        pytest.param("*.zz", [], id="after the last"),
    ],
)
def test_the_names_below_a_wildcard_are_found(wildcard: str, expected: list[str]) -> None:
    some = make_name_set(["b.example.org", "*.example.org", "a.b.example.org", "example.org", "b-example.org.uk"])
    assert sorted(some.below(wildcard)) == sorted(expected)


@given(st.lists(hostnames, max_size=8), names.map("*.{}".format))
def test_the_names_below_a_wildcard_are_those_of_the_definition(some: list[str], wildcard: str) -> None:
    found = list(make_name_set(some).below(wildcard))
    assert set(found) == {name for name in some if name.endswith(wildcard[1:])}
    assert len(found) == len(set(found))
