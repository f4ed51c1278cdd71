"""The form of Events, and how often there is one."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.events.event import EVERY, About, Limit, Reason, Reporter, admit, event_path, make_event

REPORTER = Reporter("example.org/keeper", action="Keep", name_prefix="example-keeper")
UNDONE = Reason("Undone", warns=True)
REPAIRED = Reason("Repaired")
MOVED = Reason("Moved")
ABOUT = About("ConfigMap", "kube-system", "coredns", "123")
TIME = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_an_event_lies_beside_its_object() -> None:
    body = json.loads(make_event(REPORTER, ABOUT, UNDONE, "gone\nagain", suppressed=2, time=TIME, instance="pod-1"))
    assert event_path(ABOUT) == "/apis/events.k8s.io/v1/namespaces/kube-system/events"
    assert body["regarding"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": "kube-system",
        "name": "coredns",
        "uid": "123",
    }
    assert (body["type"], body["reason"], body["eventTime"]) == (
        "Warning",
        "Undone",
        "2026-01-02T03:04:05.000006Z",
    )
    assert "\n" not in body["note"]
    assert body["note"].endswith(" (and 2 more of these since the last Event)")
    bare = make_event(REPORTER, About("Service", "a", "b"), REPAIRED, "", suppressed=0, time=TIME, instance="")
    assert "uid" not in json.loads(bare)["regarding"]


def test_an_event_that_is_sent_twice_has_one_name_and_others_have_others() -> None:
    def name(reason: Reason = REPAIRED, *, time: datetime = TIME, instance: str = "pod-1") -> str:
        body = make_event(REPORTER, ABOUT, reason, "a note", suppressed=0, time=time, instance=instance)
        return str(json.loads(body)["metadata"]["name"])

    assert name() == name()
    others = [name(MOVED), name(time=TIME.replace(microsecond=7)), name(instance="pod-2")]
    assert len({name(), *others}) == 4


def test_instances_that_report_the_same_may_give_it_one_name() -> None:
    bodies = [
        json.loads(
            make_event(REPORTER, ABOUT, UNDONE, "", suppressed=0, time=TIME, instance=one, name="example-keeper-1")
        )
        for one in ("pod-1", "pod-2")
    ]
    assert [one["metadata"] for one in bodies] == [{"name": "example-keeper-1", "namespace": "kube-system"}] * 2


@given(st.text(max_size=2000), st.text(max_size=300))
def test_whatever_the_text_the_api_server_takes_its_length(note: str, instance: str) -> None:
    body = json.loads(make_event(REPORTER, ABOUT, UNDONE, note, suppressed=0, time=TIME, instance=instance))
    assert len(body["note"].encode()) <= 1024
    assert 1 <= len(body["reportingInstance"]) <= 128
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", body["metadata"]["name"])


def test_one_about_an_object_of_a_reason_in_some_minutes_and_the_others_are_counted() -> None:
    limit = Limit()
    limit, first = admit(limit, ABOUT, REPAIRED, 0.0)
    limit, second = admit(limit, ABOUT, REPAIRED, 1.0)
    limit, other = admit(limit, ABOUT, UNDONE, 1.0)
    limit, third = admit(limit, ABOUT, REPAIRED, EVERY - 1)
    limit, later = admit(limit, ABOUT, REPAIRED, EVERY)
    limit, last = admit(limit, ABOUT, REPAIRED, 2 * EVERY)
    assert (first, second, other, third, later, last) == (0, None, 0, None, 2, 0)


def test_another_object_has_events_of_its_own() -> None:
    limit, first = admit(Limit(), ABOUT, REPAIRED, 0.0)
    limit, other = admit(limit, About("ConfigMap", "kube-system", "other"), REPAIRED, 0.0)
    assert (first, other) == (0, 0)


def test_objects_that_are_long_past_are_forgotten() -> None:
    limit = Limit()
    for number in range(1500):
        limit, _ = admit(limit, About("Service", "a", f"b{number}"), REPAIRED, number * EVERY)
    assert len(limit.last) <= 1000
    assert len(limit.suppressed) <= 1000


def test_an_event_about_an_object_without_a_namespace_lies_in_default() -> None:
    about = About("IngressClass", "", "nginx", api_version="networking.k8s.io/v1")
    assert event_path(about) == "/apis/events.k8s.io/v1/namespaces/default/events"
    body = json.loads(make_event(REPORTER, about, REPAIRED, "", suppressed=0, time=TIME, instance="pod-1"))
    assert body["metadata"]["namespace"] == "default"
    assert body["regarding"] == {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "name": "nginx"}
