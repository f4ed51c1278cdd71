"""The status page of `dnsproxy operate`: every decision with its evidence, the route Services, the stanza.

The law: pure; everything from outside is escaped, and the page says the same as the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markupsafe import Markup

from dnsproxy.admin.steering_document import RouteRow, SteeringDocument, SubjectRow
from dnsproxy.operate.decide.decisions import Verdict
from dnsproxy.operate.report.steering_status import SteeringStatus
from sidecar.admin.page.document import Fact, Frame, Level, document, facts, notes, section, table, text
from sidecar.admin.page.markup import joined

PAGES = (("./", "Overview"),)
_SHOWN = {
    Verdict.NOTHING.value: "not claimed: pods reach it",
    Verdict.LEAVE_ALONE.value: "not claimed: not decided",
    Verdict.RELAY.value: "relayed",
    Verdict.KEEP.value: "as before: not decided",
}


def format_page(status: SteeringStatus, stanza: Iterable[Fact], *, why_not_ready: str) -> str:
    """The page as HTML; `stanza` are the facts of the installer, none if it does not run."""
    found = status.document
    state = Fact("State", why_not_ready or "ready", Level.BAD if why_not_ready else Level.OK)
    rows = list(stanza)
    parts = [
        section("Steering", joined([facts(_rows(status)), notes(_notes(found))]), key="steering"),
        section("Ingress classes and Gateways", _subjects(found), key="subjects"),
        section("Route Services", _routes(found), key="routes"),
        *([section("The stanza", facts(rows), key="stanza")] if rows else []),
    ]
    frame = Frame(
        "dnsproxy operate", PAGES, state, raw=(("metrics", "metrics"), ("readyz", "readiness"), ("steering", "JSON"))
    )
    return document(frame, title="Steering", path="./", body=joined(parts))


def _notes(found: SteeringDocument) -> tuple[str, ...]:
    return (*found.missing, *(one.shown for one in found.unknown_addresses))


def _rows(status: SteeringStatus) -> Iterator[Fact]:
    found = status.document
    leads = "this replica" if found.leads else found.leader or "none"
    yield Fact("Leader", leads, Level.PLAIN if found.leader else Level.WARN)
    if status.lease_fault:
        yield Fact("Lease", status.lease_fault, Level.WARN)
    yield Fact("Read", "everything" if not found.missing else "not everything: nothing counts as absent meanwhile")
    yield Fact("Writes", f"{status.writes:,}")
    failed = status.write_errors.total()
    yield Fact("Failed writes", f"{failed:,}", Level.WARN if failed else Level.PLAIN)


def _subjects(found: SteeringDocument) -> Markup:
    headings = ("Class or Gateway", "Decision", "Controller", "Relay", "Names", "Evidence")
    rows = (_subject(one) for one in found.subjects)
    return table("What is decided, and why", headings, rows, empty="No class and no Gateway has hostnames here.")


def _subject(one: SubjectRow) -> tuple[Markup, ...]:
    level = Level.BAD if one.fault else Level.WARN if one.undecided else Level.OK
    decision = "relayed, its names are answered" if one.steered else _SHOWN.get(one.decision, one.decision)
    evidence = [*one.evidence, *([one.fault] if one.fault else [])]
    return (
        text(one.subject),
        text(decision, level),
        text(one.backend or "not known"),
        text(one.relay or "none"),
        text(f"{one.hostnames:,}"),
        text("; ".join(evidence)),
    )


def _routes(found: SteeringDocument) -> Markup:
    headings = ("Service", "Backend", "Managed by", "Faults")
    return table("What the relay relays", headings, map(_route, found.routes), empty="There is no route Service.")


def _route(one: RouteRow) -> tuple[Markup, ...]:
    faults = text("; ".join(one.faults), Level.BAD) if one.faults else text("none")
    return text(one.service), text(one.relay_to), text("dnsproxy operate" if one.managed else "people"), faults
