"""The hostnames of one Ingress."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.claims import Claim, Origin, Reach
from dnsproxy.sources.ingress import Ingress, claims_of

METADATA = {"name": "shop", "namespace": "web", "creationTimestamp": "2026-01-02T03:04:05Z", "uid": "x"}
ORIGIN = Origin("Ingress", "shop", "web", "2026-01-02T03:04:05Z")


def parse(spec: object, **metadata: Any) -> Ingress:
    return msgspec.convert({"metadata": METADATA | metadata, "spec": spec, "status": {"loadBalancer": None}}, Ingress)


def hostnames(spec: object, *, tls_only: bool = False) -> list[str]:
    return [claim.hostname for claim in claims_of(parse(spec), tls_only=tls_only)[0]]


BOTH = {
    "rules": [{"host": "a.example.org"}, {"host": "b.example.org"}],
    "tls": [{"hosts": ["b.example.org", "c.example.org"]}],
}


def test_hosts_of_rules_and_tls_count_each_once() -> None:
    """In the order in which the object has them."""
    assert hostnames(BOTH) == ["a.example.org", "b.example.org", "c.example.org"]


def test_tls_only_takes_the_hosts_of_tls() -> None:
    """Also where no rule names them."""
    assert hostnames(BOTH, tls_only=True) == ["b.example.org", "c.example.org"]


def test_claim_says_where_it_comes_from() -> None:
    """With the age that decides between two objects."""
    claims, rejections = claims_of(parse({"rules": [{"host": "a.example.org"}]}), tls_only=False)
    assert claims == [Claim("a.example.org", Reach.NAME, ORIGIN)]
    assert rejections == []


def test_wildcard_covers_one_label() -> None:
    """As the Ingress specification says, unlike Gateway's."""
    (claim,), _ = claims_of(parse({"rules": [{"host": "*.Example.org"}]}), tls_only=False)
    assert (claim.hostname, claim.reach) == ("*.example.org", Reach.ONE_LABEL)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"rules": None, "tls": None},
        {"rules": [], "tls": []},
        {"rules": [None, {}, {"host": None}, {"host": ""}, {"http": {"paths": None}}], "tls": [None, {}]},
        {"tls": [{"hosts": None}, {"hosts": []}, {"hosts": [None, ""]}, {"secretName": "x"}]},
        {"defaultBackend": {"service": {"name": "x"}}},
    ],
    ids=["null-spec", "empty-spec", "null-lists", "empty-lists", "rules-without-host", "tls-without-hosts", "default"],
)
def test_absent_hosts_are_no_claims_and_no_faults(spec: object) -> None:
    """Null wherever Go may write it; a rule without host means any host."""
    assert claims_of(parse(spec), tls_only=False) == ([], [])


def test_different_spellings_of_one_host_are_one_claim() -> None:
    """Case, the final dot, spaces around."""
    spec = {"rules": [{"host": "A.example.org"}, {"host": "a.example.org."}], "tls": [{"hosts": [" a.EXAMPLE.org"]}]}
    assert hostnames(spec) == ["a.example.org"]


@pytest.mark.parametrize(
    "bad",
    ["192.0.2.1", "2001:db8::1", "*", "*.", "a.*.example.org", "a b.example.org", "a\n.example.org", "x" * 64 + ".org",
     ".".join(["abcdefgh"] * 32), "-a.example.org", "a..example.org", "{}", "a.example.org;"],
)  # fmt: skip
def test_bad_host_is_rejected_and_harms_no_other(bad: str) -> None:
    """The object and the fault are named."""
    spec = {"rules": [{"host": "a.example.org"}, {"host": bad}], "tls": [{"hosts": [bad, "b.example.org"]}]}
    claims, rejections = claims_of(parse(spec), tls_only=False)
    assert [claim.hostname for claim in claims] == ["a.example.org", "b.example.org"]
    (rejection,) = rejections
    assert rejection.origin == ORIGIN
    assert rejection.reason.isprintable()


OLD = {"annotations": {"kubernetes.io/ingress.class": "old", "other": "x"}}


@pytest.mark.parametrize(
    ("spec", "metadata", "expected"),
    [
        ({"ingressClassName": "new"}, {}, "new"),
        ({"ingressClassName": "new"}, OLD, "new"),
        ({}, OLD, "old"),
        ({"ingressClassName": ""}, OLD, "old"),
        ({}, {"annotations": None}, "default"),
        ({}, {"annotations": {"kubernetes.io/ingress.class": ""}}, "default"),
        (None, {}, "default"),
    ],
    ids=[
        "field",
        "field-beats-annotation",
        "annotation",
        "empty-field",
        "null-annotations",
        "empty-annotation",
        "none",
    ],
)
def test_class_is_the_objects_own_or_the_default(
    spec: dict[str, Any] | None, metadata: dict[str, Any], expected: str
) -> None:
    """The field, then the annotation that came before it, then what the cluster says."""
    ingress = parse(spec if spec is None else spec | {"rules": [{"host": "a.example.org"}]}, **metadata)
    assert (ingress.class_name or "default") == expected
    for claim in claims_of(ingress, tls_only=False, default_class="default")[0]:
        assert claim.ingress_class == expected


def test_without_default_class_there_is_none() -> None:
    """The claim takes the default target."""
    (claim,), _ = claims_of(parse({"rules": [{"host": "a.example.org"}]}), tls_only=False)
    assert claim.ingress_class is None


@given(st.lists(st.text() | st.none()), st.lists(st.lists(st.text() | st.none()) | st.none()))
def test_any_text_is_a_claim_or_a_rejection(rules: list[str | None], tls: list[list[str | None] | None]) -> None:
    """Never an exception, and never two claims on one hostname."""
    spec = {"rules": [{"host": host} for host in rules], "tls": [{"hosts": hosts} for hosts in tls]}
    claims, rejections = claims_of(parse(spec), tls_only=False)
    assert len({claim.hostname for claim in claims}) == len(claims)
    given_hosts = {host for host in rules if host} | {host for hosts in tls for host in hosts or () if host}
    assert len(claims) + len(rejections) <= len(given_hosts)
    assert bool(claims or rejections) == bool(given_hosts)
