"""From changes of objects to changes of claims."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.name_limits import NameLimits
from dnsproxy.hostnames.name_shares import NameShares
from dnsproxy.sources.ingress import Ingress, IngressClass
from dnsproxy.sources.ingress_hosts import TlsHosts
from dnsproxy.sources.ingress_source import IngressSource
from dnsproxy.sources.settings import IngressOptions
from sidecar.kubernetes.objects import ObjectMeta, Unreadable


def ingress(host: str, ingress_class: str | None = None, *, tls: bool = False) -> Ingress:
    spec: dict[str, Any] = {"ingressClassName": ingress_class, "rules": [{"host": host}]}
    if tls:
        spec["tls"] = [{"hosts": [host]}]
    return msgspec.convert({"metadata": {"name": host, "namespace": "n"}, "spec": spec}, Ingress)


def default(name: str, *, marked: bool = True) -> IngressClass:
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"} if marked else {}
    return msgspec.convert({"metadata": {"name": name, "annotations": annotations}}, IngressClass)


def source_with(**options: Any) -> tuple[IngressSource, ClaimStore]:
    store = ClaimStore()
    return IngressSource(store, options=IngressOptions(**options)), store


def hostnames(store: ClaimStore) -> set[str]:
    return {claim.hostname for claim in store.claims()}


def test_objects_come_change_and_go() -> None:
    """The touched hostnames are reported each time."""
    source, store = source_with()
    assert source.change_ingresses({"n/x": ingress("a"), "n/y": ingress("b")}) == {"a", "b"}
    assert source.change_ingresses({"n/x": ingress("c")}) == {"a", "c"}
    assert source.change_ingresses({"n/y": None, "n/z": None}) == {"b"}
    assert hostnames(store) == {"c"}


@pytest.mark.parametrize(
    ("classes", "expected"),
    [(set(), {"a", "b", "c"}), ({"k"}, {"a"}), ({"k", "l"}, {"a", "b"}), ({"K"}, set())],
    ids=["all", "one", "two", "case-counts"],
)
def test_class_filter(classes: set[str], expected: set[str]) -> None:
    """Exact and repeatable; without a filter, an object without a class counts too."""
    source, store = source_with(classes=frozenset(classes))
    source.change_ingresses({"n/x": ingress("a", "k"), "n/y": ingress("b", "l"), "n/z": ingress("c")})
    assert hostnames(store) == expected


def test_default_class_applies_to_objects_without_one() -> None:
    """As soon as the class is annotated as the default, and only as long."""
    source, store = source_with(classes=frozenset({"k"}))
    source.change_ingresses({"n/x": ingress("a"), "n/y": ingress("b", "l")})
    assert source.change_classes({"l": default("l"), "k": default("k", marked=False)}) == frozenset()
    assert source.change_classes({"k": default("k"), "l": None}) == {"a"}
    assert [claim.terms.ingress_class for claim in store.claims()] == ["k"]
    assert source.change_classes({"k": default("k")}) == frozenset()
    assert source.change_classes({"k": None}) == {"a"}
    assert hostnames(store) == set()


def test_object_that_left_does_not_come_back_with_a_class() -> None:
    """Nor an object that has been given a class."""
    source, store = source_with()
    source.change_ingresses({"n/x": ingress("a"), "n/y": ingress("b")})
    source.change_ingresses({"n/x": None, "n/y": ingress("b", "own")})
    assert source.change_classes({"k": default("k")}) == frozenset()
    assert [claim.terms.ingress_class for claim in store.claims()] == ["own"]


def test_tls_only_is_passed_on() -> None:
    """An object without TLS claims nothing."""
    source, store = source_with(tls_only=True)
    source.change_ingresses({"n/x": ingress("a"), "n/y": ingress("b", tls=True)})
    assert hostnames(store) == {"b"}


@pytest.mark.parametrize(("tls_hosts", "expected"), [(TlsHosts.RULES, {"a"}), (TlsHosts.ALL, {"a", "b"})])
def test_which_hosts_of_tls_count_is_passed_on(tls_hosts: TlsHosts, expected: set[str]) -> None:
    source, store = source_with(tls_hosts=tls_hosts)
    spec = {"rules": [{"host": "a"}], "tls": [{"hosts": ["b"]}]}
    one = msgspec.convert({"metadata": {"name": "x", "namespace": "n"}, "spec": spec}, Ingress)
    source.change_ingresses({"n/x": one})
    assert hostnames(store) == expected


def test_unreadable_object_is_a_rejection() -> None:
    """Its earlier claims are gone; the claims of other objects stay."""
    source, store = source_with()
    source.change_ingresses({"n/x": ingress("a"), "n/y": ingress("b")})
    broken = Unreadable(ObjectMeta("x", "n"), "Expected `str`, got `int`")
    assert source.change_ingresses({"n/x": broken}) == {"a"}
    (rejection,) = store.rejections()
    assert str(rejection.origin) == "Ingress n/x"
    assert "Expected `str`" in rejection.reason
    source.change_classes({"k": Unreadable(ObjectMeta("k"), "broken")})
    assert hostnames(store) == {"b"}


STATES = st.dictionaries(st.sampled_from("xyz"), st.tuples(st.sampled_from("abc"), st.sampled_from(["k", "l", None])))
CLASSES = st.sets(st.sampled_from("kl"))


@given(st.lists(st.tuples(STATES, CLASSES)), STATES, CLASSES, st.booleans())
def test_claims_depend_on_the_last_state_alone(
    history: list[tuple[dict[str, tuple[str, str | None]], set[str]]],
    last: dict[str, tuple[str, str | None]],
    marked: set[str],
    classes_first: bool,
) -> None:
    """Not on earlier objects, nor on which watch was faster."""
    travelled, store = source_with(classes=frozenset("k"))
    for state, classes in [*history, (last, marked)]:
        apply(travelled, state, classes, classes_first=classes_first)
    fresh, expected = source_with(classes=frozenset("k"))
    apply(fresh, last, marked, classes_first=not classes_first)
    assert set(store.claims()) == set(expected.claims())


def apply(
    source: IngressSource, state: dict[str, tuple[str, str | None]], classes: Iterable[str], *, classes_first: bool
) -> None:
    ingresses = {key: ingress(*state[key]) if key in state else None for key in "xyz"}
    known = {name: default(name) if name in classes else None for name in "kl"}
    if classes_first:
        source.change_classes(known)
    source.change_ingresses(ingresses)
    source.change_classes(known)


def test_nothing_is_kept_of_an_object_that_is_left_out() -> None:
    """A tenant can create any number of them, also without a class."""
    shares = NameShares(ClaimStore(), limits=NameLimits(per_namespace=1))
    source = IngressSource(shares, options=IngressOptions())
    source.change_ingresses({"n/a": ingress("a"), "n/b": ingress("b"), "n/c": ingress("c")})
    assert [shares.is_left_out("Ingress", f"n/{name}") for name in "abc"] == [False, True, True]
    assert list(source._classless) == ["n/a"]
