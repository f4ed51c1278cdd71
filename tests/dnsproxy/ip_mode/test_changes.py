"""What --apply and --remove write, and in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dnsproxy.ip_mode.changes import Change, foreign_objects, lost_classes, plan_apply, plan_remove, plan_undo
from dnsproxy.ip_mode.policy import NAME
from dnsproxy.ip_mode.present import Present
from dnsproxy.ip_mode.selection import ANNOTATION, Selection
from tests.dnsproxy.ip_mode.shapes import present, service, stored

POLICY, BINDING = "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"
NO_CLASS = Selection()


def verbs(changes: tuple[Change, ...]) -> list[tuple[str, str]]:
    return [(change.verb, change.kind) for change in changes]


def edited(path: str, value: Any) -> dict[str, dict[str, Any]]:
    """The stored objects with another value at `kind.key...`; None takes it out."""
    objects = stored()
    found: Any = objects
    *keys, last = path.split(".")
    for key in keys:
        found = found[int(key)] if isinstance(found, list) else found[key]
    if value is None:
        del found[last]
    else:
        found[last] = value
    return objects


def test_an_empty_cluster_gets_the_policy_before_its_binding_and_annotations_last() -> None:
    changes = plan_apply(present(named=(service(),)), NO_CLASS)
    assert verbs(changes) == [("create", POLICY), ("create", BINDING), ("patch", "Service")]


def test_what_the_api_server_filled_in_is_no_difference() -> None:
    assert plan_apply(present(stored(), named=(service(annotation="Proxy"),)), NO_CLASS) == ()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(f"{POLICY}.spec.failurePolicy", "Fail", id="it could block a status"),
        pytest.param(f"{POLICY}.spec.mutations", [], id="it does nothing"),
        pytest.param(f"{POLICY}.spec.variables.0.expression", '["a"]', id="another class"),
        pytest.param(f"{POLICY}.spec.matchConditions", [{"name": "a", "expression": "false"}], id="a condition"),
        pytest.param(f"{POLICY}.spec.matchConstraints.objectSelector", {"matchLabels": {"a": "b"}}, id="a selector"),
        pytest.param(f"{POLICY}.spec.matchConstraints.matchPolicy", "Exact", id="another match policy"),
        pytest.param(f"{POLICY}.spec.matchConstraints.resourceRules.0.scope", "Cluster", id="another scope"),
        pytest.param(f"{POLICY}.spec.reinvocationPolicy", None, id="a field is missing"),
        pytest.param(f"{POLICY}.metadata.labels", {"app.kubernetes.io/part-of": "switchback"}, id="a missing label"),
        pytest.param(f"{POLICY}.spec", None, id="no spec at all"),
        pytest.param(f"{BINDING}.spec.policyName", "other", id="bound to another policy"),
        pytest.param(f"{BINDING}.spec.matchResources", {"namespaceSelector": {"a": "b"}}, id="bound to a namespace"),
        pytest.param(f"{BINDING}.spec.paramRef", {"name": "a"}, id="bound with parameters"),
    ],
)
def test_any_other_difference_is_written_for_the_version_that_was_read(path: str, value: Any) -> None:
    objects = edited(path, value)
    (change,) = plan_apply(present(objects), NO_CLASS)
    kind = path.partition(".")[0]
    assert (change.verb, change.kind) == ("patch", kind)
    assert change.diff.startswith(f"--- a/{kind}/{NAME}\n")
    operations = json.loads(change.write.content)
    version = objects[kind]["metadata"]["resourceVersion"]
    assert operations[0] == {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
    assert operations[2] == {"op": "add", "path": "/spec", "value": plan_spec(kind)}


def plan_spec(kind: str) -> Any:
    changes = {change.kind: change for change in plan_apply(present(), NO_CLASS)}
    return json.loads(changes[kind].write.content)["spec"]


def test_other_labels_stay() -> None:
    objects = edited(f"{POLICY}.spec.failurePolicy", "Fail")
    objects[POLICY]["metadata"]["labels"]["example.org/team"] = "edge"
    (change,) = plan_apply(present(objects), NO_CLASS)
    assert json.loads(change.write.content)[1]["value"]["example.org/team"] == "edge"
    assert "-    example.org/team" not in change.diff


def test_flags_are_all_classes_and_the_diff_shows_the_loss() -> None:
    before = Selection(("example.org/a", "example.org/b"))
    found = present(stored(before))
    (change,) = plan_apply(found, Selection(("example.org/b",)))
    assert '-  - expression: \'["example.org/a", "example.org/b"]\'' in change.diff
    assert lost_classes(found, Selection(("example.org/b",))) == ("example.org/a",)
    assert plan_apply(found, before) == ()


@pytest.mark.parametrize("expression", ["[", "object.spec", '"text"', '["a", 1]', "{}", "", "7"])
def test_an_expression_of_somebody_else_names_no_classes(expression: str) -> None:
    objects = edited(f"{POLICY}.spec.variables.0.expression", expression)
    assert present(objects).selection == NO_CLASS


@pytest.mark.parametrize(
    "labels", [None, {}, {"app.kubernetes.io/part-of": "other"}, {"app.kubernetes.io/name": "ip-mode"}]
)
def test_an_object_without_our_label_is_not_ours(labels: dict[str, str] | None) -> None:
    objects = stored()
    objects[BINDING]["metadata"]["labels"] = labels
    (refusal,) = foreign_objects(present(objects))
    assert refusal.name == f"{BINDING} {NAME}"
    assert "label it" in refusal.why


def test_the_binding_leaves_before_its_policy_and_only_in_the_version_that_was_read() -> None:
    changes = plan_remove(present(stored(), named=(service(annotation="Proxy"),)))
    assert verbs(changes) == [("delete", BINDING), ("delete", POLICY), ("patch", "Service")]
    assert json.loads(changes[0].write.content)["preconditions"] == {"uid": "uid-1", "resourceVersion": "41"}


@pytest.mark.parametrize("value", ["Proxy", "VIP", ""])
def test_removal_takes_out_the_annotation_whatever_its_value(value: str) -> None:
    (change,) = plan_remove(present(named=(service(annotation=value),)))
    body = json.loads(change.write.content)
    assert body == {"metadata": {"resourceVersion": "7", "annotations": {ANNOTATION: None}}}


def test_nothing_there_leaves_nothing_to_remove() -> None:
    assert plan_remove(present(named=(None, service("other")))) == ()


@pytest.mark.parametrize(
    ("before", "verbs_of_undo"),
    [
        pytest.param(
            present(named=(service(),)),
            [("delete", BINDING), ("delete", POLICY), ("patch", "Service")],
            id="nothing was there",
        ),
        pytest.param(
            present(edited(f"{POLICY}.spec.variables.0.expression", '["a"]'), named=(service(annotation="VIP"),)),
            [("patch", POLICY), ("patch", "Service")],
            id="another class and another annotation",
        ),
        pytest.param(present(stored(), named=(service(annotation="Proxy"),)), [], id="all was as it is"),
    ],
)
def test_what_was_written_is_undone_to_what_was_there_before(
    before: Present, verbs_of_undo: list[tuple[str, str]]
) -> None:
    changes = plan_undo(before, present(stored(), named=(service(annotation="Proxy"),)))
    assert verbs(changes) == verbs_of_undo
    written = [json.loads(change.write.content) for change in changes if change.kind == "Service"]
    was = next(iter(before.named.values()))
    assert was is not None
    assert [one["metadata"]["annotations"] for one in written] == [
        {ANNOTATION: (was.metadata.annotations or {}).get(ANNOTATION)} for _ in written
    ]


def test_a_missing_service_gets_no_annotation() -> None:
    assert plan_apply(present(stored(), named=(None,)), NO_CLASS) == ()
