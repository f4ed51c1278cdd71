"""The Events about a Service: one for each reason, with the same name from every agent."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.events.event import make_event
from tests.kit.wholeip_objects import READY, WHOLE, endpoint_slice, service
from wholeip.mappings.cluster_state import ClusterState
from wholeip.mappings.plan import Part
from wholeip.mappings.reports import NOTES, Reason, Report
from wholeip.service_events.service_event import AGENT, ServiceEvent, event_reason, events_of

TIME = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
UID = "6f1c7d2e-0000-4000-8000-000000000001"


def part_of(*reports: tuple[Reason, str], uid: str = UID, key: str = "tenant/vm", other: str = "") -> Part:
    return Part(reports=tuple(sorted(Report(key, reason, text, other) for reason, text in reports)), uid=uid)


def events(*reports: tuple[Reason, str], key: str = "tenant/vm", **more: str) -> list[ServiceEvent]:
    return list(events_of(key, part_of(*reports, key=key, **more)))


def body_of(event: ServiceEvent) -> dict[str, Any]:
    made = make_event(
        AGENT, event.about, event.reason, event.note, suppressed=0, time=TIME, instance="n1", name=event.name
    )
    return dict(json.loads(made))


def test_an_event_is_about_its_service_and_says_why() -> None:
    (event,) = events((Reason.PROTECTED_ADDRESS, "192.0.2.1: it is a node's own"))
    body = body_of(event)
    assert body["regarding"] == {
        "apiVersion": "v1",
        "kind": "Service",
        "namespace": "tenant",
        "name": "vm",
        "uid": UID,
    }
    assert body["metadata"] == {"name": event.name, "namespace": "tenant"}
    assert (body["type"], body["reason"], body["note"]) == (
        "Warning",
        "ProtectedAddress",
        "192.0.2.1: it is a node's own",
    )
    assert body["reportingController"] == "switchback.dev/wholeip"


@pytest.mark.parametrize("reason", [one for one in Reason if one not in NOTES])
def test_whatever_excludes_something_warns(reason: Reason) -> None:
    (event,) = events((reason, "why"))
    assert event.reason.warns
    assert re.fullmatch(r"[A-Z][a-z]+([A-Z][a-z]+)*", event.reason.name)


def test_no_two_reasons_share_a_name() -> None:
    assert len({event_reason(one).name for one in Reason}) == len(Reason)


@pytest.mark.parametrize("reason", sorted(NOTES))
def test_what_excludes_nothing_makes_no_event(reason: Reason) -> None:
    assert events((reason, "why")) == []


def test_several_details_of_a_reason_are_one_event_and_many_are_counted() -> None:
    (two,) = events((Reason.BAD_PORT, "port 1"), (Reason.BAD_PORT, "port 2"))
    assert two.note == "port 1; port 2"
    (many,) = events(*((Reason.BAD_PORT, f"port {number:04}") for number in range(2000)))
    assert many.note.endswith("port 0004; and 1995 more")
    found = events((Reason.BAD_PORT, "port 1"), (Reason.NO_PORTS, "none"), (Reason.TARGET_PORT, "8080"))
    assert [one.reason.name for one in found] == ["BadPort", "NoPorts"]


BASE = ((Reason.NO_ENDPOINT, "no pod is ready"),)
OTHERS: list[tuple[str, dict[str, Any], tuple[tuple[Reason, str], ...]]] = [
    ("created again with its name", {"uid": UID[:-1] + "2"}, BASE),
    ("another reason", {}, ((Reason.FOREIGN_ENDPOINT, "no pod is ready"),)),
    ("another detail", {}, ((Reason.NO_ENDPOINT, "no pod is here"),)),
    ("without a uid", {"uid": ""}, BASE),
]


@pytest.mark.parametrize(("more", "reports"), [one[1:] for one in OTHERS], ids=[one[0] for one in OTHERS])
def test_another_event_has_another_name(more: dict[str, Any], reports: tuple[tuple[Reason, str], ...]) -> None:
    (base,), (other,) = events(*BASE), events(*reports, **more)
    assert base.name == events(*BASE)[0].name
    assert base.name != other.name


def test_services_without_a_uid_are_told_apart() -> None:
    assert events(*BASE, uid="")[0].name != events(*BASE, uid="", key="tenant/other")[0].name


def test_a_service_of_another_namespace_is_not_named() -> None:
    text = "192.0.2.1: the older secret/name has all of it"
    (event,) = events((Reason.ADDRESS_TAKEN, text), other="secret/name")
    assert event.note == "192.0.2.1: an older Service of another namespace has all of it"
    (own,) = events((Reason.ADDRESS_TAKEN, text.replace("secret", "tenant")), other="tenant/name")
    assert "tenant/name" in own.note


def test_no_plan_names_a_service_of_another_namespace_in_an_event() -> None:
    """From objects to note: two tenants ask for one address and one of them for the other's pod."""
    state = ClusterState()
    state.change_services(
        {f"{one}/vm": service("vm", "192.0.2.1", namespace=one, annotations=WHOLE) for one in ("mine", "theirs")}
    )
    state.change_slices(
        {
            f"{one}/vm-ipv4": endpoint_slice("vm", (f"10.0.0.{number}", READY), namespace=one)
            for number, one in enumerate(("mine", "theirs"), 1)
        }
    )
    plan = state.plan()
    assert [str(one.reason) for one in plan.reports] == ["address-taken"]
    notes = [one.note for key, part in plan.parts.items() for one in events_of(key, part)]
    assert notes == ["192.0.2.1: an older Service of another namespace has all of it"]


@given(
    st.lists(st.tuples(st.sampled_from(Reason), st.text(max_size=2000)), min_size=1, max_size=12),
    st.text(min_size=1, max_size=300),
    st.text(max_size=60),
)
def test_whatever_the_texts_the_api_server_takes_name_and_length(
    reports: list[tuple[Reason, str]], name: str, uid: str
) -> None:
    found = events(*reports, key=f"a/{name}", uid=uid)
    assert len({one.reason for one in found}) == len(found)
    for event in found:
        body = body_of(event)
        assert len(body["note"].encode()) <= 1024
        assert "\n" not in body["note"]
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", body["metadata"]["name"])
        assert len(body["metadata"]["name"]) <= 63
