"""The claim store."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_store import BalancerKey, ClaimStore
from dnsproxy.hostnames.claims import Claim, Origin, Rejection, Terms, with_terms
from dnsproxy.hostnames.targets import OWN


def claim(hostname: str, name: str = "x", ingress_class: str | None = None) -> Claim:
    return Claim(hostname, Reach.NAME, Origin("Ingress", name), Terms(ingress_class=ingress_class))


def test_replace_returns_the_hostnames_that_changed() -> None:
    """Added, removed and changed ones; not the unchanged ones."""
    store = ClaimStore()
    assert store.replace("Ingress", "x", [claim("a"), claim("b"), claim("c")]) == {"a", "b", "c"}
    assert store.replace("Ingress", "x", [claim("a"), claim("b", ingress_class="k"), claim("d")]) == {"b", "c", "d"}
    assert store.replace("Ingress", "x", []) == {"a", "b", "d"}
    assert list(store.claims()) == []
    assert store.hostnames() == 0


def test_same_claims_again_are_no_change() -> None:
    """Most updates of an object change only its status."""
    store = ClaimStore()
    store.replace("Ingress", "x", [claim("a")])
    version = store.version
    assert store.replace("Ingress", "x", [claim("a")]) == frozenset()
    assert store.version == version


def test_hostname_of_two_objects_outlives_one() -> None:
    """One key in two sources means two objects."""
    store = ClaimStore()
    for source in ("Ingress", "HTTPRoute"):
        store.replace(source, "x", [claim("a", source)])
    assert len(store.claims_for("a")) == 2
    store.replace("Ingress", "x", [])
    assert store.claims_for("a") == (claim("a", "HTTPRoute"),)
    assert store.claims_for("b") == ()


def test_rejections_follow_their_object() -> None:
    """They are not changes of claims."""
    store = ClaimStore()
    fault = Rejection(Origin("Ingress", "x"), "'*' is not a hostname")
    assert store.replace("Ingress", "x", [], [fault]) == frozenset()
    assert list(store.rejections()) == [fault]
    store.replace("Ingress", "x", [])
    assert list(store.rejections()) == []


def test_equal_claims_of_two_places_are_two() -> None:
    """Each object removes only its own claim; a duplicate in one object counts once."""
    store = ClaimStore()
    store.replace("hosts file", "one", [claim("a"), claim("a")])
    store.replace("hosts file", "two", [claim("a")])
    store.replace("hosts file", "one", [])
    assert store.claims_for("a") == (claim("a"),)


def test_what_was_restored_counts_until_its_source_speaks_of_the_object() -> None:
    """Reported unchanged it stays, reported changed it changes, and neither is forgotten."""
    store = ClaimStore()
    for key in ("same", "other", "gone"):
        assert store.restore("Ingress", key, [claim(key, key)]) == {key}
    assert store.restored("Ingress") == 3
    assert store.replace("Ingress", "same", [claim("same", "same")]) == frozenset()
    assert store.replace("Ingress", "other", [claim("new", "other")]) == {"other", "new"}
    assert store.restored("Ingress") == 1
    assert list(store.forget_restored("Ingress")) == [{"gone"}]
    assert sorted(store.names()) == ["new", "same"]
    assert list(store.forget_restored("Ingress")) == []


def test_the_report_of_one_source_forgets_nothing_of_another() -> None:
    store = ClaimStore()
    store.restore("Ingress", "x", [claim("a")])
    store.restore("HTTPRoute", "x", [claim("b")])
    assert list(store.forget_restored("HTTPRoute")) == [{"b"}]
    assert list(store.names()) == ["a"]
    assert store.restored("Ingress") == 1


def test_an_object_that_claims_nothing_any_more_is_not_forgotten_twice() -> None:
    store = ClaimStore()
    store.restore("Ingress", "x", [claim("a")])
    assert store.replace("Ingress", "x", []) == {"a"}
    assert (store.restored("Ingress"), list(store.forget_restored("Ingress"))) == (0, [])


def test_many_objects_are_forgotten_in_slices_and_those_reported_in_between_stay() -> None:
    store = ClaimStore()
    for number in range(1000):
        store.restore("Ingress", str(number), [claim(str(number))])
    slices = store.forget_restored("Ingress")
    told = set(next(slices))
    assert len(told) == 100
    (kept, *_) = store.names()
    store.replace("Ingress", kept, [claim(kept), claim("new")])
    for part in slices:
        assert len(part) <= 100
        told |= part
    assert sorted(store.names()) == sorted({kept, "new"})
    assert len(told) == 999


def test_keys_and_names_stay_as_they_were_while_the_store_changes() -> None:
    store = ClaimStore()
    store.replace("Ingress", "x", [claim("a")])
    keys, names = store.keys("Ingress"), store.names()
    store.replace("Ingress", "y", [claim("b")])
    store.replace("Ingress", "x", [])
    assert (list(keys), list(names), list(store.keys("Ingress"))) == (["x"], ["a"], ["y"])
    assert store.claims_at("Ingress", "x") == ()
    assert store.claims_at("Ingress", "y") == (claim("b"),)


def test_a_source_holds_something_while_an_object_of_it_claims_anything() -> None:
    store = ClaimStore()
    store.replace("Ingress", "x", [claim("a")])
    assert (store.holds(["Ingress"]), store.holds(["HTTPRoute"]), store.holds([])) == (True, False, False)
    store.replace("Ingress", "x", [])
    assert not store.holds(["Ingress"])
    assert (list(store.keys("Ingress")), list(store.keys("HTTPRoute"))) == ([], [])
    assert store.claims_at("HTTPRoute", "x") == ()


@pytest.mark.skipif(gc.is_tracked({"a": None}), reason="this Python walks through every dict")
def test_a_store_of_many_objects_is_nothing_that_the_garbage_collector_walks_through() -> None:
    """It would delay answers; new claims are read once."""
    store = ClaimStore()
    for number in range(1000):
        store.replace("Ingress", str(number), [claim(str(number))])
    kept = store.names()
    gc.collect()
    large = [found for found in gc.get_objects() if isinstance(found, list | dict | set) and len(found) >= 1000]
    assert not [found for found in large if "999" in found]
    assert "999" in kept


NAMES = st.sampled_from(["a", "b", "c"])
CHANGES = st.lists(st.tuples(NAMES, st.lists(NAMES, unique=True)))


@given(CHANGES)
def test_index_agrees_with_the_claims(changes: list[tuple[str, list[str]]]) -> None:
    """After any changes, both are equal, and every changed hostname was reported."""
    store = ClaimStore()
    told: dict[str, tuple[Claim, ...]] = {}
    for key, hosts in changes:
        for hostname in store.replace("Ingress", key, [claim(host, key) for host in hosts]):
            told[hostname] = store.claims_for(hostname)
    for hostname in "abc":
        expected = {one for one in store.claims() if one.hostname == hostname}
        assert set(store.claims_for(hostname)) == expected
        assert set(told.get(hostname, ())) == expected


def balanced(name: str, ingress_class: str | None, *status: str, gateway: str = "") -> Claim:
    terms = Terms(ingress_class=ingress_class, status=status, gateway=gateway)
    return Claim(f"{name}.example.org", Reach.NAME, Origin("Ingress", name), terms)


def balancers(store: ClaimStore) -> dict[BalancerKey, set[tuple[str, ...]]]:
    return {key: set(statuses) for key, statuses in store.balancers().items()}


def test_the_load_balancers_of_a_class_are_those_of_its_living_objects() -> None:
    store = ClaimStore()
    store.replace("Ingress", "a", [balanced("a", "nginx", "192.0.2.1"), balanced("b", "nginx", "192.0.2.1")])
    store.replace("Ingress", "c", [balanced("c", "nginx", "192.0.2.2", "lb.example.net")])
    store.replace("Ingress", "d", [balanced("d", None, "192.0.2.3"), balanced("e", "other")])
    assert balancers(store) == {
        ("", "nginx"): {("192.0.2.1",), ("192.0.2.2", "lb.example.net")},
        ("", None): {("192.0.2.3",)},
    }
    store.replace("Ingress", "a", [balanced("b", "nginx", "192.0.2.1")])
    store.replace("Ingress", "c", [balanced("c", "nginx")])
    assert balancers(store) == {("", "nginx"): {("192.0.2.1",)}, ("", None): {("192.0.2.3",)}}
    for key in "acd":
        store.replace("Ingress", key, [])
    assert balancers(store) == {}


def test_each_gateway_of_a_class_has_its_own_load_balancers() -> None:
    store = ClaimStore()
    for gateway in ("infra/one", "infra/other", ""):
        status = f"{gateway.partition('/')[2] or 'class'}.example.net"
        store.replace("Gateway", gateway, [balanced("a", "envoy", status, gateway=gateway)])
    assert balancers(store) == {
        ("infra/one", "envoy"): {("one.example.net",)},
        ("infra/other", "envoy"): {("other.example.net",)},
        ("", "envoy"): {("class.example.net",)},
    }


def test_the_version_of_the_load_balancers_tells_every_change_of_them_and_no_other() -> None:
    store = ClaimStore()

    def changes(key: str, *claims: Claim) -> bool:
        before = store.balancers_version
        store.replace("Ingress", key, claims)
        return store.balancers_version != before

    assert not changes("a", balanced("a", "nginx"))
    assert changes("a", balanced("a", "nginx", "192.0.2.1"))
    assert not changes("b", balanced("b", "nginx", "192.0.2.1"))
    assert not changes("a")
    assert changes("b", balanced("b", "nginx", "192.0.2.2"))
    assert changes("b", balanced("b", "other", "192.0.2.2"))
    assert changes("b", balanced("b", "other", "192.0.2.2", gateway="infra/gate"))
    assert changes("b")


@pytest.mark.parametrize(
    ("kind", "terms"),
    [
        # A tenant may write an EndpointSlice with any address.
        pytest.param("external-dns Service", {"target": OWN}, id="the addresses of pods"),
        # Who writes an OpenShift Route's status could otherwise pass for the controller of any class.
        pytest.param("Route", {}, id="a kind whose status has the class"),
        pytest.param("HTTPRoute", {"accepted": False, "gateway": "shop/mine"}, id="a Gateway that nobody has accepted"),
    ],
)
def test_what_a_tenant_may_write_is_no_load_balancer(kind: str, terms: dict[str, Any]) -> None:
    store = ClaimStore()
    made = with_terms(balanced("a", "nginx", "192.0.2.66"), **terms)
    store.replace(kind, "a", [replace(made, origin=replace(made.origin, kind=kind))])
    assert (balancers(store), store.balancers_version) == ({}, 0)
    store.replace(kind, "a", [])
    assert (balancers(store), store.balancers_version) == ({}, 0)


def test_the_last_changes_are_known_by_their_hostnames() -> None:
    store = ClaimStore()
    version = store.version
    assert store.changed_since(version) == frozenset()
    store.replace("Ingress", "one", [claim("a"), claim("b")])
    store.replace("Ingress", "one", [claim("a"), claim("b")])
    store.replace("Ingress", "one", [claim("b")])
    assert store.changed_since(version) == frozenset("ab")
    assert store.changed_since(version + 1) == frozenset("a")
    for number in range(1_000):
        store.replace("Ingress", str(number), [claim("c")])
    assert store.changed_since(version) is None
    assert store.changed_since(store.version - 1) == frozenset("c")
