"""The steering loop: facts, decisions, plan, guarded writes, probes, and a report, after each change.

The law: one task decides and writes, and only while this replica leads; the others follow, so that the next one knows
everything but the probes. Its state is in the route Services alone. What cannot be read changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NoReturn

import structlog
import trio

from dnsproxy.admin.steering_document import SteeringDocument
from dnsproxy.cluster_dns.operate_objects import LEASE
from dnsproxy.hostnames.public_addresses import UnknownAddress
from dnsproxy.operate.decide.decisions import Decision, Verdict, decide
from dnsproxy.operate.decide.facts import Facts, Subject
from dnsproxy.operate.decide.names import service_name
from dnsproxy.operate.decide.plan import Change, Patch, Plan, plan
from dnsproxy.operate.decide.route_faults import Backend, find_route_faults, lasting_faults
from dnsproxy.operate.observe.observation import Observation, Places
from dnsproxy.operate.probe.probing_tasks import ProbingTasks
from dnsproxy.operate.report import event_reasons
from dnsproxy.operate.report.lasting import Stopped, note_stopped
from dnsproxy.operate.report.rows import route_rows, subject_rows
from dnsproxy.operate.report.steering_status import SteeringStatus
from dnsproxy.operate.report.unknown_events import unknown_events
from dnsproxy.operate.write.service_writer import ServiceWriter
from sidecar.kubernetes.events.recorder import EventRecorder
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.leases.lease_keeper import LeaseKeeper
from sidecar.values.text import one_line

TICK: Final = 1.0
"""Seconds, at most, until the loop looks what is due."""
GATHER: Final = 0.05
"""Seconds for which changes are gathered: a rollout changes many objects at once."""

log = structlog.get_logger("dnsproxy.operate")


class Steering:
    """Steers the names of one cluster; run() must be running. `identity` is unique for each process."""

    def __init__(self, client: ApiClient, places: Places, status: SteeringStatus, *, identity: str) -> None:
        self._client = client
        self._places = places
        self._status = status
        self._recorder = EventRecorder(client, event_reasons.OPERATOR, logger="dnsproxy.operate")
        self._lease = LeaseKeeper(client, places.namespace, LEASE, identity=identity, logger="dnsproxy.operate")
        self._writer = ServiceWriter(client, places.namespace)
        self._observation = Observation(client, places, self._on_change)
        self._wake = trio.Event()
        self._led = False
        self._stopped: dict[Subject, Stopped] = {}
        self._unknown: dict[str, Stopped] = {}
        """By address."""
        self._route_faults: dict[str, tuple[str, ...]] = {}

    async def run(self) -> NoReturn:
        """Steer until cancelled. What is steered then stays."""
        async with trio.open_nursery() as nursery:
            probing = ProbingTasks(nursery, self._status, self._on_change)
            nursery.start_soon(self._recorder.run)
            nursery.start_soon(self._lease.run)
            nursery.start_soon(self._observation.run)
            while True:
                await self._step(probing)
                await self._rest()

    def _on_change(self) -> None:
        self._wake.set()

    async def _rest(self) -> None:
        with trio.move_on_after(TICK):
            await self._wake.wait()
            await trio.sleep(GATHER)
        self._wake = trio.Event()

    async def _step(self, probing: ProbingTasks) -> None:
        leads = self._lease.leads
        if leads != self._led:
            self._led = leads
            probing.forget()
            self._stopped.clear()
            self._unknown.clear()
        facts = probing.known(self._observation.facts())
        decisions = decide(facts)
        wanted = plan(facts, decisions, now=datetime.now(UTC))
        faults = self._find_route_faults()
        self._show(facts, decisions, wanted, faults)
        if not leads or self._status.lists:
            return
        now = trio.current_time()
        probing.start_due(facts, decisions, others_until=self._lease.state.other_until)
        self._report_stopped(decisions, wanted, complete=facts.complete)
        self._report_unknown(self._observation.subjects.unknown_addresses)
        changing = {f"{self._places.namespace}/{one.route.name}" for one in wanted.changes}
        self._report_route_faults(lasting_faults(faults, changing=changing))
        self._report_written(await self._writer.write(wanted.changes, now=now), decisions)

    def _find_route_faults(self) -> dict[str, tuple[str, ...]]:
        services = self._observation.services
        known = services.objects if services.status.synced else None
        backends = None if known is None else {key: Backend(one.ports, one.external) for key, one in known.items()}
        routes = self._observation.route_services.objects
        return find_route_faults(routes, backends, relay_selector=self._places.relay_selector)

    def _show(
        self, facts: Facts, decisions: tuple[Decision, ...], wanted: Plan, faults: dict[str, tuple[str, ...]]
    ) -> None:
        """Bring the status up to date."""
        status = self._status
        unread = [one for one in self._observation.statuses if not one.synced]
        status.lists = "; ".join(f"{one.kind}: {one.describe()}" for one in unread)
        status.lease_fault = self._lease.fault
        status.writes, status.write_errors = self._writer.written, self._writer.errors
        status.document = SteeringDocument(
            leads=self._led,
            leader=self._lease.holder,
            subjects=subject_rows(facts, decisions, wanted, self._writer.faults),
            routes=route_rows(facts, faults),
            missing=self._observation.missing,
            unknown_addresses=self._observation.subjects.unknown_addresses,
        )

    def _report_stopped(self, decisions: tuple[Decision, ...], wanted: Plan, *, complete: bool) -> None:
        """Log and create Events for what stops a decision, once it has lasted."""
        unplanned = dict(wanted.faults)
        unwritten = {
            one.subject: unplanned.get(one.subject, "") or self._writer.faults.get(service_name(one.subject), "")
            for one in decisions
        }
        reasons = {one.subject: unwritten[one.subject] or (one.evidence[-1] if one.waits else "") for one in decisions}
        self._stopped, to_report = note_stopped(self._stopped, reasons, complete=complete, now=trio.current_time())
        for one in decisions:
            if one.subject in to_report:
                reason = event_reasons.NOT_WRITTEN if unwritten[one.subject] else event_reasons.UNDECIDED
                text = unwritten[one.subject] or "; ".join(one.evidence)
                log.warning(reason.name, subject=str(one.subject), cause=one_line(text))
                self._recorder.record(event_reasons.about_subject(one.subject), reason, text)

    def _report_unknown(self, addresses: tuple[UnknownAddress, ...]) -> None:
        """The same for addresses that no status names: one Event for those of a class or Gateway."""
        # The numbers and the subject change with the queries; the address is what is reported.
        reasons = {one.address: "no status names it" for one in addresses}
        self._unknown, to_report = note_stopped(self._unknown, reasons, complete=True, now=trio.current_time())
        for about, text in unknown_events(addresses, to_report, service=str(self._places.service)):
            log.warning(event_reasons.UNKNOWN_ADDRESS.name, about=f"{about.kind} {about.name}", cause=one_line(text))
            self._recorder.record(about, event_reasons.UNKNOWN_ADDRESS, text)

    def _report_route_faults(self, faults: dict[str, tuple[str, ...]]) -> None:
        """The same for route Services, at once."""
        for key, why_not in faults.items():
            if self._route_faults.get(key) != why_not:
                log.warning("fault of a route Service", service=key, cause=one_line("; ".join(why_not)))
                self._recorder.record(event_reasons.about_service(key), event_reasons.ROUTE_FAULT, "; ".join(why_not))
        self._route_faults = faults

    def _report_written(self, written: Iterable[Change], decisions: tuple[Decision, ...]) -> None:
        """Log and create Events for names that are answered otherwise from now on."""
        by_name = {service_name(one.subject): one for one in decisions}
        for change in written:
            if not isinstance(change, Patch) or change.before.subjects == change.route.subjects:
                continue
            decision = by_name.get(change.route.name)
            evidence = "; ".join(decision.evidence) if decision is not None else "it has no hostnames any more"
            service = f"{self._places.namespace}/{change.route.name}"
            if change.route.subjects:
                reason, text = event_reasons.STEERED, f"its names are answered with Service {service}"
            elif decision is not None and decision.verdict is Verdict.RELAY:
                reason, text = event_reasons.RELAY_FAILS, "its names are not claimed any more"
            else:
                reason, text = event_reasons.LET_GO, "its names are not claimed any more"
            subject = decision.subject if decision is not None else None
            log.info(reason.name, subject=str(subject), service=service, evidence=one_line(evidence))
            about = (
                event_reasons.about_subject(subject) if subject is not None else event_reasons.about_service(service)
            )
            self._recorder.record(about, reason, f"{text}: {evidence}")
