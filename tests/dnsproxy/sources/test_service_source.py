"""Hostnames in the annotations of Services."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.sources.annotations import HOSTNAME, IGNORE, TARGET
from dnsproxy.sources.service_source import AnnotatedService, ServiceSource, claims_of
from sidecar.kubernetes.objects import ObjectMeta, Unreadable

GIT = "git.example.org"
ORIGIN = Origin("Service", "gitlab-shell", "git", "2026-01-02T03:04:05Z")


def service(annotations: Any = None, *, points: Any = None, **rest: Any) -> AnnotatedService:
    metadata = {
        "name": "gitlab-shell",
        "namespace": "git",
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "annotations": annotations,
    }
    spec = {"type": "LoadBalancer", "clusterIP": "10.96.0.7", "ports": [{"port": 22}]}
    status = {"loadBalancer": {"ingress": points}}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status} | rest, AnnotatedService)


def test_an_annotated_service_is_answered() -> None:
    claims, rejections = claims_of(service({HOSTNAME: GIT}, points=[{"ip": "192.0.2.22"}]))
    assert claims == [Claim(GIT, Reach.NAME, ORIGIN, Terms(status=("192.0.2.22",), annotated=True))]
    assert rejections == []


def test_it_may_choose_its_target() -> None:
    (claim,), _ = claims_of(service({HOSTNAME: GIT, TARGET: "service:git/gitlab-shell"}))
    assert claim.terms.target == "service:git/gitlab-shell"


def test_a_wildcard_covers_what_it_does_in_dns() -> None:
    (claim,), _ = claims_of(service({HOSTNAME: "*.mqtt.example.org"}))
    assert (claim.hostname, claim.reach) == ("*.mqtt.example.org", Reach.ANY_LABELS)


@pytest.mark.parametrize(
    "annotations",
    [None, {}, {"other": "x"}, {HOSTNAME: ""}, {HOSTNAME: " , "}, {TARGET: "192.0.2.1"}, {IGNORE: "true"},
     {IGNORE: "yes"}, {TARGET: "?"}],
    ids=str,
)  # fmt: skip
def test_a_service_without_hostnames_is_ignored(annotations: Any) -> None:
    assert claims_of(service(annotations)) == ([], [])


@pytest.mark.parametrize(
    ("annotations", "reasons", "deliberate"),
    [
        pytest.param({IGNORE: "true"}, [f"{GIT}: it is ignored ({IGNORE})"], True, id="ignored"),
        pytest.param({IGNORE: "1"}, [IGNORE, f"{GIT}: it has an invalid annotation"], False, id="bad ignore"),
        pytest.param({TARGET: "relay"}, [TARGET, f"{GIT}: it has an invalid annotation"], False, id="bad target"),
    ],
)
def test_an_excluded_service_has_a_reason(annotations: Any, reasons: list[str], deliberate: bool) -> None:
    claims, rejections = claims_of(service({HOSTNAME: GIT, **annotations}))
    assert claims == []
    assert all(part in one.reason for part, one in zip(reasons, rejections, strict=True))
    assert {one.deliberate for one in rejections} == {deliberate}
    assert {one.origin for one in rejections} == {ORIGIN}


def test_a_bad_hostname_harms_no_other() -> None:
    claims, (rejection,) = claims_of(service({HOSTNAME: f"{GIT},192.0.2.1"}))
    assert [claim.hostname for claim in claims] == [GIT]
    assert "'192.0.2.1' is an IP address" in rejection.reason


@pytest.mark.parametrize("rest", [{"status": None}, {"status": {}}, {"spec": None}], ids=str)
def test_absent_fields_of_a_service_are_not_needed(rest: Any) -> None:
    (claim,), _ = claims_of(service({HOSTNAME: GIT}, **rest))
    assert claim.terms.status == ()


def test_services_come_change_and_go() -> None:
    store = ClaimStore()
    source = ServiceSource(store)
    assert source.change({"git/a": service({HOSTNAME: GIT}), "git/b": service()}) == {GIT}
    assert source.change({"git/a": service({HOSTNAME: f"new.{GIT}"})}) == {GIT, f"new.{GIT}"}
    broken = Unreadable(ObjectMeta("a", "git"), "Expected `str`, got `int`")
    assert source.change({"git/a": broken}) == {f"new.{GIT}"}
    assert [one.reason for one in store.rejections()] == ["unreadable: Expected `str`, got `int`"]
    assert source.change({"git/a": None, "git/b": None, "git/c": None}) == frozenset()
    assert not list(store.rejections())


def test_services_without_hostnames_leave_nothing_behind() -> None:
    store = ClaimStore()
    ServiceSource(store).change({f"n/{number}": service() for number in range(9)})
    assert (list(store.claims()), list(store.rejections())) == ([], [])


MARKS = st.fixed_dictionaries(
    {},
    optional={
        HOSTNAME: st.sampled_from([GIT, "*.example.org", f"{GIT},b.example.org", "", "?"]) | st.text(),
        IGNORE: st.sampled_from(["true", "false", "?"]),
        TARGET: st.sampled_from(["status", "192.0.2.1", "?"]),
    },
)
STATES = st.dictionaries(st.sampled_from("xyz"), MARKS)


@given(st.lists(STATES, max_size=4), STATES)
def test_claims_depend_on_the_last_state_alone(history: list[dict[str, Any]], last: dict[str, Any]) -> None:
    travelled, expected = ClaimStore(), ClaimStore()
    source = ServiceSource(travelled)
    for state in [*history, last]:
        source.change({key: service(state[key]) if key in state else None for key in "xyz"})
    ServiceSource(expected).change({key: service(state) for key, state in reversed(last.items())})
    assert set(travelled.claims()) == set(expected.claims())
    assert set(travelled.rejections()) == set(expected.rejections())
