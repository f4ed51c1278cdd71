"""Which of the Services that objects name are followed."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.sources.service_shares import ServiceShares
from dnsproxy.sources.target_service import UseChange


def claim(hostname: str, namespace: str, target: str | None) -> Claim:
    return Claim(hostname, Reach.NAME, Origin("Ingress", "web", namespace), Terms(target=target))


def service(key: str) -> str:
    return f"service:{key}"


def fill(shares: ServiceShares, namespace: str, *keys: str) -> None:
    """One hostname for each Service."""
    for key in keys:
        hostname = f"{key.replace('/', '.')}.{namespace}.example.org"
        shares.put(hostname, [claim(hostname, namespace, service(key))])


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ({"a": 4}, {"a/0", "a/1", "a/2", "a/3"}),
        ({"a": 9}, {"a/0", "a/1", "a/2", "a/3"}),
        ({"a": 9, "b": 1}, {"a/0", "a/1", "b/0"}),
        ({"a": 9, "b": 9}, {"a/0", "a/1", "b/0", "b/1"}),
        ({"a": 9, "b": 1, "c": 1}, {"a/0", "a/1", "b/0", "c/0"}),
        ({"a": 9, "b": 1, "c": 1, "d": 1}, {"a/0", "b/0", "c/0", "d/0"}),
        ({"e": 1, "a": 1, "b": 1, "c": 1, "d": 1}, {"a/0", "b/0", "c/0", "d/0"}),
    ],
    ids=["fits", "greedy", "greedy-and-one", "two-greedy", "greedy-and-two", "greedy-and-three", "too-many-namespaces"],
)
def test_chosen(wanted: dict[str, int], chosen: set[str]) -> None:
    """At most 4 Services."""
    shares = ServiceShares(most=4)
    followed: set[str] = set()
    for name, count in wanted.items():
        for number in range(count):
            hostname = f"{number}.{name}.example.org"
            change = shares.put(hostname, [claim(hostname, name, service(f"{name}/{number}"))])
            followed = (followed | change.added) - change.removed
    assert followed == chosen


def test_hundred_absent_services_take_no_place_of_another_namespace() -> None:
    """Whoever comes first, and whoever's Services they are."""
    shares = ServiceShares()
    fill(shares, "evil", *(f"shop/absent{number}" for number in range(300)))
    assert shares.put("shop.example.org", [claim("shop.example.org", "shop", service("shop/web"))]).added == {
        "shop/web"
    }
    assert "shop/web" not in shares.faults
    (reason,) = shares.faults.values()
    assert reason == "it is not followed, nor are 249 others: objects of namespace evil name too many Services"


def test_service_of_two_namespaces_stays_until_neither_names_it() -> None:
    shares = ServiceShares(most=4)
    both = [claim("a.org", "x", service("x/one")), claim("a.org", "y", service("x/one"))]
    assert shares.put("a.org", both) == UseChange(added=frozenset({"x/one"}))
    assert shares.hostnames("x/one") == ["a.org"]
    assert shares.put("a.org", both[:1]) == UseChange()
    assert shares.put("a.org", []) == UseChange(removed=frozenset({"x/one"}))
    assert shares.hostnames("x/one") == []


def test_configured_services_are_not_counted() -> None:
    shares = ServiceShares(configured=["edge/relay"], most=1)
    fill(shares, "a", "edge/relay")
    assert shares.put("b.org", [claim("b.org", "b", service("b/one"))]).added == {"b/one"}
    assert shares.hostnames("edge/relay") == ["edge.relay.a.example.org"]


CLAIMS = st.lists(
    st.builds(
        claim,
        st.just("x"),
        st.sampled_from("abc"),
        st.none() | st.sampled_from(["status", "192.0.2.1", *(f"service:{n}/{s}" for n in "ab" for s in "12345")]),
    ),
    max_size=3,
)


TWO_NAME_IT = [
    ("b.org", [claim("x", "a", "service:a/1"), claim("x", "a", "service:a/2"), claim("x", "c", "service:a/1")]),
    ("a.org", [claim("x", "b", "service:a/1"), claim("x", "b", "service:a/2")]),
]


@example(TWO_NAME_IT)
@given(st.lists(st.tuples(st.sampled_from(["a.org", "b.org", "c.org", "d.org"]), CLAIMS), max_size=20))
def test_choice_depends_only_on_the_claims(changes: list[tuple[str, list[Claim]]]) -> None:
    """And no trace is left of what no claim names."""
    shares, followed = ServiceShares(most=4), set[str]()
    for hostname, claims in changes:
        change = shares.put(hostname, claims)
        assert not change.added & followed
        assert change.removed <= followed
        followed = (followed | change.added) - change.removed
        assert len(followed) <= 4
    fresh, expected = ServiceShares(most=4), set[str]()
    for hostname, claims in sorted(dict(changes).items(), key=lambda item: item[0]):
        change = fresh.put(hostname, claims)
        expected = (expected | change.added) - change.removed
    assert followed == expected
    assert shares.faults == {key: fresh.faults[key] for key in shares.faults}
    for hostname, _ in changes:
        shares.put(hostname, [])
    assert (shares._uses, shares._wanted, shares._namespaces) == ({}, {}, {})
