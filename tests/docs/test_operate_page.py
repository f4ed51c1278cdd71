"""The page on operate has what operate says: rows, keys of its document, Events, metrics and evidence."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from dnsproxy.admin.steering_document import RouteRow, SteeringDocument, SubjectRow, format_steering
from dnsproxy.doctor.facts.model import BalancerAddress, Port
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.doctor.judge.short_circuit import Answer, DataPlane
from dnsproxy.install.report.steering_rows import rows_of_steering
from dnsproxy.operate.decide import handshaking, plan, probing, turns
from dnsproxy.operate.decide.decisions import FAILURES, Verdict, decide
from dnsproxy.operate.decide.facts import Facts, Handshake, ServiceFacts, Subject, SubjectFacts
from dnsproxy.operate.decide.listen_ports import COUNT, FIRST
from dnsproxy.operate.decide.plan import Plan
from dnsproxy.operate.probe.relay_handshake import MOST_PODS
from dnsproxy.operate.report import event_reasons
from dnsproxy.operate.report.lasting import PATIENCE
from dnsproxy.operate.report.rows import subject_rows
from dnsproxy.operate.report.steering_status import SteeringCollector, SteeringStatus
from docs.build import HERE
from sidecar.kubernetes import route_services
from sidecar.kubernetes.events.event import Reason
from sidecar.kubernetes.leases import leading
from tests.dnsproxy.operate.decide.cluster import (
    CLASS,
    KEY,
    NGINX,
    SERVICE,
    cluster,
    probed,
    probes_of,
    route_of,
    service,
)
from tests.kit.ip_mode_documents import compare, rows_in

PAGE: Final = (HERE / "pages" / "operate.md").read_text(encoding="utf-8")
ADDRESS: Final = "203.0.113.10"


def at(*addresses: str) -> tuple[BalancerAddress, ...]:
    return tuple(BalancerAddress(address) for address in addresses)


# --- what status shows ---


def shown() -> Facts:
    """The cluster of the page: one class that is relayed, one that is reached, one that nobody serves."""
    one = service(points=at(ADDRESS))
    plain = service("plain/controller", points=at("203.0.113.20"), ports=(Port(80, "http"),))
    classes = (
        replace(CLASS, status=(ADDRESS,)),
        SubjectFacts(Subject("plain"), 1, ("plain.example.org",), ("203.0.113.20",)),
        SubjectFacts(Subject("old"), 1, ("old.example.org",), ("203.0.113.30",)),
    )
    demanding = {place: replace(seen, detail="plain closed, v1 answered") for place, seen in probes_of(one).items()}
    taking = probes_of(plain, mode=HeaderMode.REJECTS)
    probes = demanding | {place: replace(seen, detail="plain answered") for place, seen in taking.items()}
    detail = "port 80 answered, port 443 answered"
    facts = cluster(classes[0], one, plain, probes=probes, routes=(route_of(),))
    seen = Handshake(KEY, succeeded=True, detail=detail, headers="v1")
    return replace(facts, subjects=classes, handshakes={NGINX: seen})


def test_status_shows_these_rows() -> None:
    facts = shown()
    rows = list(rows_of_steering(SteeringDocument(leads=True, leader="a", subjects=_subjects(facts)), ""))
    said = [f"{row.what:<8}  {row.state:<2}  {row.detail}" for row in rows]
    block = PAGE.partition("<!-- steering -->")[2].partition("```text\n")[2].partition("\n```")[0]
    # The page has the classes in the order of their importance.
    assert sorted(_paragraphs(block.splitlines())) == sorted(_paragraphs(said))


def _subjects(facts: Facts) -> tuple[SubjectRow, ...]:
    return subject_rows(facts, decide(facts), Plan(), {})


def _paragraphs(lines: list[str]) -> list[list[str]]:
    """Each row with the lines below it."""
    found: list[list[str]] = []
    for line in lines:
        if line.startswith(" "):
            found[-1].append(line.strip())
        else:
            found.append([" ".join(line.split())])
    return found


def test_the_keys_of_the_document_are_on_the_page() -> None:
    route = RouteRow(service="switchback/git", relay_to="git/ssh", managed=False, faults=("it has no port",))
    whole = SteeringDocument(leads=True, leader="a", subjects=_subjects(shown()), routes=(route,), missing=("x",))
    section = PAGE.partition("Keys are a promise:")[2].partition("| Event |")[0]
    keys, faults = compare([json.loads(format_steering(whole))], rows_in(section))
    assert faults == []
    assert keys == set(rows_in(section))


def test_every_decision_is_told() -> None:
    assert [one.value for one in Verdict if f"`{one.value}`" not in PAGE.partition("\n## Which Service")[0]] == []


# --- Events, metrics, annotations, numbers ---


def test_every_event_is_told_with_its_kind() -> None:
    reasons = {one.name: one.warns for one in vars(event_reasons).values() if isinstance(one, Reason)}
    rows = re.findall(r"^\| `(\w+)`( \(warning\))? \|", PAGE.partition("| Event |")[2], re.MULTILINE)
    assert {name: bool(warns) for name, warns in rows[: len(reasons)]} == reasons
    assert event_reasons.OPERATOR.controller in PAGE


def test_the_metrics_that_the_page_names_are_there() -> None:
    there = {metric.name for metric in SteeringCollector(SteeringStatus()).collect()}
    named = {name.removesuffix("_total") for name in re.findall(r"`(dnsproxy_operate_\w*[a-z])", PAGE)}
    assert named
    assert named <= there


def test_every_annotation_is_told() -> None:
    names = {
        text for text in vars(route_services).values() if isinstance(text, str) and text.startswith("switchback.dev/")
    }
    assert [name for name in names if f"| `{name}` |" not in PAGE] == []


NUMBERS: Final = [
    (f"from {FIRST} to {FIRST + COUNT - 1}", "ports of the relay"),
    (f"(up to {MOST_PODS})", "pods of the relay"),
    (f"the {probing.MOST_PORTS} web ports", "ports of a Service"),
    ({4: "At most four of its probes are under way, two of them in turn"}[turns.OF_ONE], "its probes"),
    (
        "after "
        + ", ".join(f"{one:g}" for one in handshaking.RETRIES[:-1])
        + f" and {handshaking.RETRIES[-1]:g} seconds",
        "a",
    ),
    ({3: "three"}[FAILURES] + " failures in a row", "failures"),
    ({timedelta(minutes=10): "ten minutes"}[plan.LINGER], "the Service stays"),
    ({timedelta(seconds=10): "ten seconds later"}[plan.PARTING], "the names stay"),
    (f"succeeded within {leading.DURATION:.0f} seconds", "the Lease"),
    (f"missing to decide for {PATIENCE:.0f} seconds", "an Event"),
    ({60.0: "at most once a minute"}[probing.INTERVAL], "probes"),
]


@pytest.mark.parametrize(("text", "about"), NUMBERS, ids=[text for text, _ in NUMBERS])
def test_its_numbers_are_those_of_the_code(text: str, about: str) -> None:
    assert text in " ".join(PAGE.split()), about


# --- what is missing to decide ---

UNKNOWN_PLANE: Final = DataPlane("Calico", Answer.YES, Answer.UNKNOWN, "DaemonSet calico-system/calico-node")
SILENT: Final = {place: probed(HeaderMode.SILENT) for place in probes_of()}


def without_endpoints() -> ServiceFacts:
    return replace(SERVICE, endpoints={80: (), 443: ()})


UNDECIDED: Final[dict[str, Facts]] = {
    "no candidate": cluster(replace(CLASS, status=())),
    "two addresses": cluster(CLASS, SERVICE, service("web/other")),
    "two owners": cluster(
        replace(CLASS, status=(), owners=frozenset(["a"])),
        replace(SERVICE, owners=frozenset(["a"])),
        service("web/other", owners=frozenset(["a"])),
    ),
    "annotated nowhere": cluster(replace(CLASS, backend="no/where")),
    "annotated, no load balancer": cluster(replace(CLASS, backend="a/b"), service("a/b", type="ClusterIP")),
    "our own relay": cluster(
        replace(CLASS, backend="switchback/relay"),
        service("switchback/relay", selector=(("app.kubernetes.io/name", "relay"),)),
    ),
    "no address": cluster(replace(CLASS, backend=KEY), service(points=())),
    "unknown data plane": cluster(
        replace(CLASS, backend=KEY),
        service(points=(BalancerAddress("192.0.2.10", ip_mode="Proxy"),)),
        plane=UNKNOWN_PLANE,
    ),
    "data plane not read": cluster(plane=None, why_no_plane="list daemonsets.apps: forbidden"),
    "no web port": cluster(CLASS, service(ports=(Port(22, "ssh"),))),
    "no endpoint": cluster(CLASS, without_endpoints()),
    "not probed": cluster(probes={}),
    "silent": cluster(probes=SILENT),
}
TOLD: Final = [
    text
    for row in PAGE.partition("\n## Undecided: what to do\n")[2].partition("A fault is not")[0].splitlines()
    if row.startswith("| `")
    for text in re.findall(r"`([^`]+)`", row.split(" | ")[0])
]


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_is_missing_has_a_row(name: str) -> None:
    (decision,) = decide(UNDECIDED[name])
    assert (decision.verdict, decision.waits) == (Verdict.LEAVE_ALONE, True)
    said = " ".join(decision.evidence[-2:])
    assert [text for text in TOLD if _as_said(text) in said]


def test_every_row_is_something_that_is_said() -> None:
    failing = replace(shown(), handshakes={NGINX: Handshake(KEY, succeeded=True, failures=3, headers="v1")})
    said = " ".join(line for facts in (*UNDECIDED.values(), failing) for one in decide(facts) for line in one.evidence)
    assert [text for text in TOLD if _as_said(text) not in said] == []


def _as_said(text: str) -> str:
    """A and B stand for two Services."""
    return text.replace("A and B: ", "").strip()


def test_every_fault_is_one_of_the_code() -> None:
    rows: Any = PAGE.partition("A fault is not")[2].partition("\n\nWithout a row")[0]
    sources = " ".join(
        path.read_text(encoding="utf-8")
        for folder in ("decide", "write")
        for path in (HERE.parent / "dnsproxy" / "operate" / folder).glob("*.py")
    )
    for text in re.findall(r"^\| `([^`]+)`", rows, re.MULTILINE):
        for part in re.split(r", create| (?:N|NAMESPACE)\b", text):
            assert part in sources, text
