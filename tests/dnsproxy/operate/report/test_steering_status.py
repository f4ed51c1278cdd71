"""Readiness and metrics of operate."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from dnsproxy.admin.steering_document import RouteRow, SteeringDocument, SubjectRow
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.operate.report.steering_status import SteeringCollector, SteeringStatus


def metrics(status: SteeringStatus) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(SteeringCollector(status))
    lines = generate_latest(registry).decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_it_is_ready_once_every_list_was_read() -> None:
    assert SteeringStatus().why_not_ready()
    assert SteeringStatus(lists="").why_not_ready() == ""


def test_no_name_of_the_cluster_is_a_label() -> None:
    rows = tuple(
        SubjectRow(
            subject=f"ingressclass/{name}",
            decision=decision,
            steered=steered,
            undecided=decision == "leave alone",
            hostnames=1,
            fault=fault,
        )
        for name, decision, steered, fault in (
            ("a", "relay", True, ""),
            ("b", "relay", False, "taken"),
            ("c", "leave alone", False, ""),
        )
    )
    route = RouteRow(service="switchback/ssh", relay_to="git/ssh", managed=False, faults=("it has no port",))
    status = SteeringStatus(document=SteeringDocument(leads=True, subjects=rows, routes=(route,), missing=("x", "y")))
    status.probes[HeaderMode.REQUIRES] = 3
    status.handshakes[False] = 2
    status.write_errors["forbidden"] = 1
    found = metrics(status)
    assert found == {
        "dnsproxy_operate_leads": 1,
        "dnsproxy_operate_missing": 2,
        'dnsproxy_operate_subjects{decision="nothing"}': 0,
        'dnsproxy_operate_subjects{decision="leave alone"}': 1,
        'dnsproxy_operate_subjects{decision="relay"}': 2,
        'dnsproxy_operate_subjects{decision="keep"}': 0,
        "dnsproxy_operate_steered": 1,
        "dnsproxy_operate_undecided": 1,
        "dnsproxy_operate_faults": 2,
        "dnsproxy_operate_writes_total": 0,
        'dnsproxy_operate_write_errors_total{cause="forbidden"}': 1,
        **{f'dnsproxy_operate_probes_total{{mode="{mode.name.lower()}"}}': 0 for mode in HeaderMode},
        'dnsproxy_operate_probes_total{mode="requires"}': 3,
        'dnsproxy_operate_handshakes_total{result="succeeded"}': 0,
        'dnsproxy_operate_handshakes_total{result="failed"}': 2,
    }


def test_a_replica_that_does_not_lead_misses_nothing() -> None:
    # Without probes every class is undecided there; an alert would fire for ever.
    row = SubjectRow(subject="ingressclass/a", decision="keep", steered=True, undecided=True, hostnames=1)
    for leads in (True, False):
        status = SteeringStatus(document=SteeringDocument(leads=leads, subjects=(row,)))
        assert metrics(status)["dnsproxy_operate_undecided"] == leads
