"""The steering in the status."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.admin.steering_document import RouteRow, SteeringDocument, SubjectRow, format_steering, parse_steering
from dnsproxy.install.report.steering_rows import faults_of_steering, format_steering_values, rows_of_steering


def subject(**changes: Any) -> SubjectRow:
    values: dict[str, Any] = {
        "subject": "ingressclass/nginx",
        "decision": "relay",
        "steered": True,
        "hostnames": 2,
        "backend": "web/nginx",
        "relay": "switchback/relay-nginx",
        "evidence": ("port 443 demands the PROXY header",),
    }
    return SubjectRow(**(values | changes))


def document(*subjects: SubjectRow, **changes: Any) -> SteeringDocument:
    values: dict[str, Any] = {"leads": True, "leader": "a", "subjects": subjects}
    return SteeringDocument(**(values | changes))


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        pytest.param(
            document(subject()),
            [
                "steering ok ingressclass/nginx: relay for web/nginx; names are answered with switchback/relay-nginx",
                "  port 443 demands the PROXY header",
            ],
            id="steered",
        ),
        pytest.param(
            document(subject(decision="nothing", steered=False, evidence=())),
            ["steering ok ingressclass/nginx: nothing for web/nginx; names are not claimed"],
            id="nothing",
        ),
        pytest.param(
            document(
                subject(decision="leave alone", steered=False, undecided=True, backend="", evidence=("annotate it",))
            ),
            ["steering ? ingressclass/nginx: leave alone; names are not claimed", "  annotate it"],
            id="undecided",
        ),
        pytest.param(
            document(subject(steered=False, evidence=(), fault="Service x is there")),
            ["steering no ingressclass/nginx: relay for web/nginx; names are not claimed", "  Service x is there"],
            id="a fault",
        ),
        pytest.param(
            document(leader="", leads=False),
            ["steering ? no replica of dnsproxy operate leads, so nothing is probed or written"],
            id="no leader",
        ),
        pytest.param(
            document(missing=("Service: syncing",)),
            ["steering ? not read, so nothing counts as absent: Service: syncing"],
            id="not read",
        ),
        pytest.param(
            document(
                routes=(
                    RouteRow(service="switchback/relay-nginx", relay_to="web/nginx", managed=True),
                    RouteRow(service="switchback/ssh", relay_to="git/ssh", managed=False),
                    RouteRow(service="switchback/bad", relay_to="", managed=False, faults=("it has no port",)),
                )
            ),
            ["route ok switchback/ssh to git/ssh", "route no switchback/bad to nowhere", "  it has no port"],
            id="routes of people",
        ),
        pytest.param(None, [], id="operate does not run"),
    ],
)
def test_each_decision_has_its_state_and_evidence(found: SteeringDocument | None, lines: list[str]) -> None:
    rows = rows_of_steering(found, "")
    assert [" ".join((row.what, row.state, row.detail)) for row in rows] == lines


def test_an_operate_that_cannot_be_asked_is_unknown_and_not_absent() -> None:
    (row,) = rows_of_steering(None, "403")
    assert (row.state, row.detail) == ("?", "dnsproxy operate could not be asked: 403")
    assert format_steering_values(None, "403") == {"unknown": "403"}
    assert format_steering_values(None, "") is None


def test_only_faults_make_the_verdict_worse() -> None:
    found = document(subject(), subject(subject="ingressclass/b", undecided=True), subject(fault="taken"))
    assert list(faults_of_steering(found)) == ["ingressclass/nginx: taken"]
    assert list(faults_of_steering(None)) == []


def test_the_document_is_read_as_it_was_written() -> None:
    found = document(subject(), routes=(RouteRow(service="a/b", relay_to="c/d", managed=True),), missing=("x",))
    assert parse_steering(format_steering(found)) == found


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"{}",
        b"[]",
        b'{"leads": 1}',
        b'{"leads": true, "subjects": [1]}',
        b'{"leads":true,"subjects":[' + b"[" * 100_000,
    ],
)
def test_any_other_document_is_a_value_error(octets: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # of msgspec, or ours
        parse_steering(octets)


def test_json_has_what_the_table_has() -> None:
    values = format_steering_values(document(subject()), "")
    assert values is not None
    assert list(values["subjects"][0]["evidence"]) == ["port 443 demands the PROXY header"]
