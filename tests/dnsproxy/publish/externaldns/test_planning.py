"""The plan: our objects become as desired, and others stay as they are."""

from __future__ import annotations

import copy
import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.publish.configmaps.manifests import MANAGED_BY, MANAGER
from dnsproxy.publish.externaldns.manifests import DIGEST, INSTANCE, Kind, Manifest, Style, make_manifest, make_records
from dnsproxy.publish.externaldns.planning import Changes, Stored, plan, unobserved
from sidecar.kubernetes.objects import ObjectMeta
from tests.kit.publications import publication

KINDS = list(Kind)


def style(kind: Kind = Kind.DNS_ENDPOINT, **changes: Any) -> Style:
    return Style(**{"kind": kind, "namespace": "edge", "instance": "main", "ttl": 60, **changes})


def manifests(*rows: str, style: Style) -> list[Manifest]:
    return [make_manifest(record, style) for record in make_records(publication(*rows).names)]


def stored(manifest: Manifest, **changes: Any) -> Stored:
    """The object that an API server has of a manifest."""
    body = copy.deepcopy(dict(manifest.body))
    body["metadata"] |= {"resourceVersion": "7", "generation": 1, **changes}
    return msgspec.convert(body, Stored)


def carried_out(current: list[Stored | ObjectMeta], changes: Changes) -> list[Stored | ObjectMeta]:
    gone = {one.metadata.name for one in changes.delete} | {one.name for one, _ in changes.update}
    kept = [one for one in current if not isinstance(one, Stored) or one.metadata.name not in gone]
    return [*kept, *(stored(one) for one in changes.create), *(stored(one) for one, _ in changes.update)]


hostnames = st.sampled_from(
    ["app.example.org", "a-b.example.org", "a.b.example.org", "*.example.org", "**.example.org", "a_b.example.net"]
)
addresses = st.lists(st.sampled_from(["192.0.2.1", "192.0.2.2", "2001:db8::1"]), min_size=1, max_size=3, unique=True)
rows = st.lists(
    st.builds(lambda name, given: f"{name} {' '.join(given)}", hostnames, addresses),
    max_size=6,
    unique_by=lambda row: row.split()[0],
)


@given(st.sampled_from(KINDS), rows, rows)
def test_a_plan_that_is_carried_out_is_empty_when_it_is_made_again(
    kind: Kind, before: list[str], after: list[str]
) -> None:
    now = style(kind)
    current: list[Stored | ObjectMeta] = [stored(one) for one in manifests(*before, style=now)]
    desired = manifests(*after, style=now)
    changes = plan(current, desired, owner=now.owner)
    assert not plan(carried_out(current, changes), desired, owner=now.owner).any


@given(st.sampled_from(KINDS), rows, rows, st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_order_of_its_sides(
    kind: Kind, before: list[str], after: list[str], rng: random.Random
) -> None:
    now = style(kind)
    current, desired = [stored(one) for one in manifests(*before, style=now)], manifests(*after, style=now)
    first = plan(current, desired, owner=now.owner)
    rng.shuffle(current)
    rng.shuffle(desired)
    assert plan(current, desired, owner=now.owner) == first


@given(st.sampled_from(KINDS), rows, rows, st.sampled_from([{}, {MANAGED_BY: MANAGER}, {INSTANCE: "main"}]))
def test_what_is_not_ours_is_never_changed(
    kind: Kind, before: list[str], after: list[str], labels: dict[str, str]
) -> None:
    now = style(kind)
    foreign: list[Stored | ObjectMeta] = [stored(one, labels=labels) for one in manifests(*before, style=now)]
    desired = manifests(*after, style=now)
    changes = plan(foreign, desired, owner=now.owner)
    assert (changes.update, changes.delete) == ((), ())
    taken = {one.metadata.name for one in foreign if isinstance(one, Stored)}
    assert {one.manifest.name for one in changes.conflicts} == {one.name for one in desired} & taken
    assert {one.name for one in changes.create} == {one.name for one in desired} - taken


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_of_another_instance_is_not_ours(kind: Kind) -> None:
    (one,) = manifests("app.example.org 192.0.2.1", style=style(kind, instance="other"))
    changes = plan([stored(one)], manifests("app.example.org 192.0.2.1", style=style(kind)), owner=style().owner)
    assert [conflict.manifest.record.hostname for conflict in changes.conflicts] == ["app.example.org"]
    assert not changes.any


def test_an_object_that_cannot_be_read_is_somebody_elses() -> None:
    (one,) = manifests("app.example.org 192.0.2.1", style=style())
    changes = plan([ObjectMeta(one.name, "edge")], [one], owner=style().owner)
    assert (changes.any, len(changes.conflicts)) == (False, 1)


def test_two_records_for_one_name_are_told_and_the_first_has_it() -> None:
    """A hash is no promise."""
    one, other = manifests("a.example.org 192.0.2.1", "b.example.org 192.0.2.1", style=style())
    twin = Manifest(one.name, other.record, other.body)
    for desired in ([one, twin], [twin, one]):
        changes = plan([], desired, owner=style().owner)
        assert changes.create == (one,)
        assert [conflict.reason for conflict in changes.conflicts] == ["a.example.org has an object of that name"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("app.example.org 192.0.2.1", "app.example.org 192.0.2.2", id="another address"),
        pytest.param("app.example.org 192.0.2.1", "app.example.org 192.0.2.1 2001:db8::1", id="a second family"),
        pytest.param("app.example.org 2001:db8::1 192.0.2.1", "app.example.org 2001:db8::1", id="a family less"),
        pytest.param("*.example.org 192.0.2.1", "**.example.org 192.0.2.2", id="another reach"),
    ],
)
def test_a_name_keeps_its_object_when_its_addresses_change(kind: Kind, before: str, after: str) -> None:
    current = [stored(one) for one in manifests(before, style=style(kind))]
    changes = plan(current, manifests(after, style=style(kind)), owner=style().owner)
    assert [(len(changes.create), len(changes.update), len(changes.delete))] == [(0, 1, 0)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"ttl": 61}, id="ttl"),
        pytest.param({"labels": {"team": "edge"}}, id="a label more"),
        pytest.param({"annotations": {"example.org/note": "x"}}, id="an annotation more"),
    ],
)
@pytest.mark.parametrize("added", [True, False], ids=["added", "taken away"])
def test_a_change_of_settings_is_a_change_of_each_object(kind: Kind, changed: dict[str, Any], added: bool) -> None:
    plain, more = style(kind), style(kind, **changed)
    old, new = (plain, more) if added else (more, plain)
    current = [stored(one) for one in manifests("app.example.org 192.0.2.1", style=old)]
    assert len(plan(current, manifests("app.example.org 192.0.2.1", style=new), owner=new.owner).update) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_labels_and_annotations_of_others_are_nobodys_business(kind: Kind) -> None:
    (one,) = manifests("app.example.org 192.0.2.1", style=style(kind))
    metadata = one.body["metadata"]
    marked = stored(
        one,
        labels={**metadata["labels"], "argocd.argoproj.io/instance": "x"},
        annotations={**metadata["annotations"], "example.org/seen": "today"},
    )
    assert not plan([marked], [one], owner=style().owner).any


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda body: body["spec"]["endpoints"][0].update(recordTTL=1), id="another ttl"),
        pytest.param(lambda body: body["spec"]["endpoints"][0].update(targets=["192.0.2.66"]), id="another address"),
        pytest.param(lambda body: body["spec"]["endpoints"][0].update(setIdentifier="x"), id="one field more"),
        pytest.param(lambda body: body["spec"]["endpoints"].append({"dnsName": "x.example.org"}), id="one record more"),
        pytest.param(lambda body: body["spec"].update(endpoints=[]), id="no record"),
        pytest.param(lambda body: body.pop("spec"), id="nothing"),
        pytest.param(lambda body: body["metadata"]["annotations"].pop(DIGEST), id="no digest"),
    ],
)
def test_what_somebody_changed_by_hand_is_changed_back(spoil: Any) -> None:
    (one,) = manifests("app.example.org 192.0.2.1", style=style())
    body = copy.deepcopy(dict(one.body))
    spoil(body)
    changes = plan([msgspec.convert(body, Stored)], [one], owner=style().owner)
    assert [manifest for manifest, _ in changes.update] == [one]


def test_a_dns_endpoint_has_a_record_for_each_family() -> None:
    (one,) = manifests("app.example.org 2001:db8::1 192.0.2.1 192.0.2.2", style=style(labels={"team": "edge"}))
    assert one.name == "switchback-app.example.org"
    assert one.body["spec"] == {
        "endpoints": [
            {"dnsName": "app.example.org", "recordType": "A", "recordTTL": 60, "targets": ["192.0.2.1", "192.0.2.2"]},
            {"dnsName": "app.example.org", "recordType": "AAAA", "recordTTL": 60, "targets": ["2001:db8::1"]},
        ]
    }
    assert one.body["metadata"]["labels"] == {"team": "edge", MANAGED_BY: MANAGER, INSTANCE: "main"}


def test_a_service_says_it_in_annotations_ipv4_first() -> None:
    (one,) = manifests(
        "app.example.org 2001:db8::1 192.0.2.1", style=style(Kind.SERVICE, annotation_prefixes=("in.example.org/",))
    )
    annotations = dict(one.body["metadata"]["annotations"])
    assert annotations.pop(DIGEST)
    assert annotations == {
        "in.example.org/hostname": "app.example.org",
        "in.example.org/target": "192.0.2.1,2001:db8::1",
        "in.example.org/ttl": "60",
    }
    assert one.body["spec"] == {"clusterIP": "None"}


def test_a_service_says_it_to_external_dns_of_every_age() -> None:
    (one,) = manifests("app.example.org 192.0.2.1", style=style(Kind.SERVICE))
    annotations = one.body["metadata"]["annotations"]
    for prefix in ("external-dns.kubernetes.io/", "external-dns.alpha.kubernetes.io/"):
        assert {word: annotations[f"{prefix}{word}"] for word in ("hostname", "target", "ttl")} == {
            "hostname": "app.example.org",
            "target": "192.0.2.1",
            "ttl": "60",
        }


def test_labels_of_ones_own_never_hide_whose_an_object_is() -> None:
    (one,) = manifests("a.example.org 192.0.2.1", style=style(labels={MANAGED_BY: "me", INSTANCE: "x"}))
    assert one.body["metadata"]["labels"] == style().owner


# --- Objects that external-dns has not read ---

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def aged(observed: int | None, *, created: str | None = "2026-01-01T11:00:00Z", generation: int = 2) -> Stored:
    body: dict[str, Any] = {"metadata": {"name": "one", "generation": generation, "creationTimestamp": created}}
    if observed is not None:
        body["status"] = {"observedGeneration": observed}
    return msgspec.convert(body, Stored)


@pytest.mark.parametrize(
    ("one", "behind"),
    [
        pytest.param(aged(2), False, id="seen"),
        pytest.param(aged(3), False, id="seen, and more"),
        pytest.param(aged(1), True, id="seen before the last change"),
        pytest.param(aged(None), True, id="never seen"),
        pytest.param(aged(None, created="2026-01-01T11:59:00Z"), False, id="too young to be seen"),
        pytest.param(aged(None, created=None), False, id="of unknown age"),
        pytest.param(aged(None, created="yesterday"), False, id="of an age that cannot be read"),
        pytest.param(aged(None, created="2026-01-01T11:00:00"), True, id="an age without a zone"),
    ],
)
def test_what_is_old_enough_and_was_not_seen_is_named(one: Stored, behind: bool) -> None:
    assert unobserved([one], now=NOW) == (["one"] if behind else [])
