"""The status page of operate."""

from __future__ import annotations

from dnsproxy.admin.steering_document import RouteRow, SteeringDocument, SubjectRow
from dnsproxy.hostnames.public_addresses import UnknownAddress
from dnsproxy.operate.report.page import format_page
from dnsproxy.operate.report.steering_status import SteeringStatus
from sidecar.admin.page.document import Fact

BAD = "<script>alert(1)</script>"


def test_everything_from_the_cluster_is_escaped() -> None:
    row = SubjectRow(
        subject=BAD, decision=BAD, steered=False, hostnames=1, backend=BAD, relay=BAD, evidence=(BAD,), fault=BAD
    )
    route = RouteRow(service=BAD, relay_to=BAD, managed=False, faults=(BAD,))
    document = SteeringDocument(leads=False, leader=BAD, subjects=(row,), routes=(route,), missing=(BAD,))
    status = SteeringStatus(document=document, lease_fault=BAD)
    page = format_page(status, [Fact("Where", BAD)], why_not_ready=BAD)
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert") >= 10


def test_it_shows_decision_evidence_and_the_stanza() -> None:
    row = SubjectRow(
        subject="ingressclass/nginx",
        decision="relay",
        steered=True,
        hostnames=1234,
        backend="web/nginx",
        relay="switchback/relay-nginx",
        evidence=("port 443 demands the PROXY header",),
    )
    status = SteeringStatus(document=SteeringDocument(leads=True, leader="me", subjects=(row,)), lists="")
    page = format_page(status, [Fact("Where", "Corefile in ConfigMap kube-system/coredns")], why_not_ready="")
    for text in ("ingressclass/nginx", "web/nginx", "1,234", "port 443 demands", "this replica", "kube-system/coredns"):
        assert text in page


def test_without_an_installer_there_is_no_stanza() -> None:
    page = format_page(SteeringStatus(), (), why_not_ready="the lists are not read")
    assert "The stanza" not in page
    assert "the lists are not read" in page
    assert "No class and no Gateway has hostnames here." in page


def test_an_address_that_no_status_names_is_a_note() -> None:
    unknown = UnknownAddress(address=BAD, hostnames=12, asked=14, examples=(BAD,))
    document = SteeringDocument(leads=True, leader="me", unknown_addresses=(unknown,))
    page = format_page(SteeringStatus(document=document, lists=""), (), why_not_ready="")
    assert "12 of 14 asked hosts lead to &lt;script&gt;" in page
    assert "if it is your router, name it, if it is a CDN, leave it" in page
    assert "<script>alert" not in page
