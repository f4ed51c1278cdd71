"""The watcher: reads the cluster's DNS, repairs the stanza, and reports both, until it is cancelled.

The law: a thin shell around state_machine.py, which decides. Looks and writes are those of an install, one at a time,
and each write is guarded by the version that its look read; so any number of watchers may run without a leader.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Final, NoReturn

import structlog
import trio

from dnsproxy.cluster_dns.probe_results import Presence, ProbeResult, places_to_ask, zones_to_ask
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.traces import find_traces
from dnsproxy.corefile.rewrite_lines import MOST
from dnsproxy.corefile.stanza import format_address
from dnsproxy.install.change.config_map import Entry
from dnsproxy.install.change.rewrite_choice import ADVICE
from dnsproxy.install.change.rewrite_coverage import count_left_out, describe_rewrites
from dnsproxy.install.report import event_reasons
from dnsproxy.install.run.applying import Changed, Planned, plan_survey, try_planned, write
from dnsproxy.install.run.live_hostnames import read_coverage
from dnsproxy.install.run.survey import InstallRequest, Readers, Survey, survey
from dnsproxy.install.run.upstream_comparison import compare_upstreams
from dnsproxy.install.watch.followers import Followers
from dnsproxy.install.watch.pod_follower import PodFollower
from dnsproxy.install.watch.state_machine import (
    Action,
    Cause,
    Conflicted,
    Drifted,
    Event,
    InPlace,
    ObjectChanged,
    PlanRefused,
    ReadFailed,
    Standing,
    Tick,
    WatchState,
    WriteFailed,
    Written,
    watch_step,
)
from dnsproxy.install.watch.table_news import Aim, learn_names, names_in, only_follows
from dnsproxy.install.watch.watcher_status import WatchStatus
from sidecar.kubernetes.events.event import About, Reason
from sidecar.kubernetes.events.recorder import EventRecorder
from sidecar.kubernetes.http import ApiClient
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.text import one_line

_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 15.0
"""Seconds between two checks whether the cluster's DNS has loaded the stanza: the first pause, doubled up to the
longest."""

_LOGGED: Final = 20
"""Hostnames in a line of the log: each new one gives another line."""
_WARNINGS: Final = frozenset([Standing.UNDONE, Standing.REFUSED, Standing.UNKNOWN])

_WRITTEN: Final = {
    Cause.FIRST: "the rewrite lines were written",
    Cause.UNDONE: "the rewrite lines were missing or changed, and were written again",
    Cause.MOVED: "the rewrite lines follow dnsproxy's table",
}
_REASONS: Final[dict[Cause, Reason]] = {
    Cause.FIRST: event_reasons.INSTALLED,
    Cause.UNDONE: event_reasons.REPAIRED,
    Cause.MOVED: event_reasons.MOVED,
}

log = structlog.get_logger("dnsproxy.install")


class Watcher:
    """Keeps a cluster as the request says. `seconds`: how long the DNS may take to load it; 0: it is not asked."""

    def __init__(
        self, client: ApiClient, request: InstallRequest, status: WatchStatus, *, dns: Endpoint | None, seconds: float
    ) -> None:
        self._client = client
        self._request = request
        self._status = status
        self._dns = dns
        self._seconds = seconds
        self._recorder = EventRecorder(client, event_reasons.INSTALLER, logger="dnsproxy.install")
        # Before anything is read, dnsproxy's own Service.
        self._own = self._about = About("Service", request.own.namespace, request.own.name)
        self._planned: Planned | None = None
        self._tried: list[tuple[str, tuple[Entry, ...]]] = []
        self._compared = ""
        self._readers = Readers()
        zones, names = self._readers.zones.read, self._readers.rewrites.read
        self._zones = PodFollower(zones, lambda said, known: known.union(said.zones), self._on_change, what="zones")
        self._names = PodFollower(names, learn_names, self._on_change, what="names")
        self._wake = trio.Event()
        self._stands = trio.Event()

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        async with trio.open_nursery() as nursery:
            followers = Followers(self._client, nursery, self._on_change)
            nursery.start_soon(self._recorder.run)
            nursery.start_soon(self._zones.run)
            nursery.start_soon(self._names.run)
            if self._seconds:
                nursery.start_soon(self._check_loaded)
            while True:
                action = self._advance(Tick())
                while action is not None:
                    event = await (self._look(followers) if action is Action.LOOK else self._write())
                    action = self._advance(event)
                await self._rest()

    async def _rest(self) -> None:
        """Wait until the next look is due, or its time changes."""
        with trio.move_on_at(self._status.state.look_at):
            await self._wake.wait()
        self._wake = trio.Event()

    def _on_change(self) -> None:
        self._advance(ObjectChanged())
        self._wake.set()

    def _advance(self, event: Event) -> Action | None:
        before = self._status.state
        drawn = random.random()  # noqa: S311  # no secret
        self._status.state, action = watch_step(before, event, trio.current_time(), drawn)
        self._report(before, self._status.state, event)
        return action

    async def _look(self, followers: Followers) -> Event:
        try:
            seen = await survey(self._client, self._request, self._readers)
            followers.want(seen.asked)
            self._zones.follow(() if seen.rewrites else seen.followed_pods, frozenset(seen.named))
            self._names.follow(seen.followed_pods if seen.rewrites else (), names_in(seen.rewrites))
            self._about = _about(seen) or self._own
            planned = plan_survey(seen, self._request)
            await self._try(planned)
            await self._compare_upstreams(planned)
        except ChangeRefused as refusal:
            return PlanRefused(str(refusal))
        except StartError as error:
            return ReadFailed(str(error))
        self._status.look_time = time.time()
        self._status.target = str(planned.choice.target or "")
        self._status.zones = ", ".join(planned.edits.zones) + (f" (from {seen.zones_from})" if seen.zones_from else "")
        self._note_names(planned, seen)
        await self._compare_zones(planned)
        before, self._planned = self._planned, planned
        if before is None:
            _log_plan(planned)
        uid = self._about.uid if self._about else ""
        aim = _aim_of(planned)
        if not planned.edits.changed:
            return InPlace(str(aim), uid)
        traces = find_traces(planned.found)
        return Drifted(str(aim), uid, follows=before is not None and only_follows(_aim_of(before), aim, traces))

    def _note_names(self, planned: Planned, seen: Survey) -> None:
        """Show how many names are rewritten, and log when there are too many."""
        chosen, live, before = planned.edits.rewrites, seen.rewrites, self._status.left_out
        if chosen is None or live is None:
            self._status.names, self._status.left_out = "", 0
            return
        self._status.names = describe_rewrites(chosen, live)
        self._status.left_out = count_left_out(chosen, live)
        if self._status.left_out != before:
            log.warning("names left out", count=self._status.left_out, most=MOST, advice=ADVICE)

    async def _compare_zones(self, planned: Planned) -> None:
        """Zones that a user named stay as they are, so the hostnames outside them are reported."""
        if self._request.admin is None or not self._request.zones or planned.edits.rewrites is not None:
            return
        before = self._status.coverage
        self._status.coverage = await read_coverage(self._client, self._request.admin, planned.edits.zones)
        hosts = self._status.coverage.hosts
        if hosts != before.hosts:
            log.warning("hostnames outside the zones", hosts=list(hosts[:_LOGGED]), count=len(hosts))

    async def _try(self, planned: Planned) -> None:
        """Let a CoreDNS of this computer load a change that it has not tried before. Raises ChangeRefused."""
        texts = [(str(change.source), change.data) for change in planned.edits.changes if change.changed]
        if texts and texts != self._tried:
            note = await try_planned(planned)
            self._tried = texts
            if note:
                log.info("not tried", cause=one_line(note))

    async def _compare_upstreams(self, planned: Planned) -> None:
        """Before each write, ask dnsproxy where it forwards; a note is logged once. Raises ChangeRefused."""
        if not planned.edits.changed:
            return
        note = await compare_upstreams(planned, self._request, dns=self._dns)
        if note and note != self._compared:
            log.info("note", text=one_line(note))
        self._compared = note

    async def _write(self) -> Event:
        if self._planned is None:
            raise RuntimeError("a write before the first look")
        try:
            await write(self._client, self._planned.edits)
        except Changed:
            return Conflicted()
        except ChangeRefused as refusal:
            return WriteFailed(str(refusal), refused=True)
        except StartError as error:
            return WriteFailed(str(error), refused=False)
        return Written()

    def _report(self, before: WatchState, state: WatchState, event: Event) -> None:
        """Log what has changed, and create Events."""
        if isinstance(event, Written):
            self._status.loaded = None
            log.info("written", target=self._status.target, cause=state.cause.value, repairs=state.repairs)
            self._record_written(state.cause)
        if (state.standing, state.why) == (before.standing, before.why):
            pass
        elif state.standing in _WARNINGS:
            if state.standing is Standing.UNDONE:
                # What the cluster's DNS said was about the stanza that is gone.
                self._status.loaded = None
            log.warning(state.standing.value, cause=one_line(self._status.describe()), target=self._status.target)
        elif state.standing is Standing.INSTALLED:
            log.info("installed", target=self._status.target)
        if isinstance(event, InPlace):
            self._status.stood = True
            self._stands.set()
        if state.standing is not before.standing or isinstance(event, PlanRefused | ReadFailed | WriteFailed):
            # While a failure lasts, there is always an Event of it: the API server deletes Events after an hour.
            self._record_standing(state.standing)

    def _record_written(self, cause: Cause) -> None:
        where, planned = self._status.target, self._planned
        if planned is not None and planned.edits.rewrites is not None:
            self._record(_REASONS[cause], f"{_WRITTEN[cause]}: {self._status.names}: {where}")
        elif cause is Cause.FIRST:
            self._record(event_reasons.INSTALLED, f"the stanza was written: {where}")
        elif cause is Cause.UNDONE:
            self._record(event_reasons.REPAIRED, f"the stanza was missing or changed, and was written again: {where}")
        elif planned is not None and planned.wanted is not None:
            addresses = ", ".join(map(format_address, planned.wanted.addresses))
            self._record(
                event_reasons.MOVED, f"the stanza now asks {addresses} for {', '.join(planned.edits.zones)}: {where}"
            )

    def _record_standing(self, standing: Standing) -> None:
        if standing is Standing.REFUSED:
            self._record(event_reasons.REFUSED, self._status.state.why)
        elif standing is Standing.UNKNOWN:
            self._record(event_reasons.FAILED, self._status.state.why)
        elif standing is Standing.UNDONE:
            text = "another writer keeps undoing the stanza; give it to the owner: dnsproxy install --method print"
            self._record(event_reasons.UNDONE, f"{self._status.describe()}; {text}")

    def _record(self, reason: Reason, note: str) -> None:
        self._recorder.record(self._about, reason, note)

    async def _check_loaded(self) -> NoReturn:
        """After each look that found the stanza in place, ask the cluster's DNS until it has loaded it."""
        while True:
            await self._stands.wait()
            self._stands = trio.Event()
            begun, pause, warned = trio.current_time(), _FIRST_PAUSE, False
            while not await self._is_loaded():
                if trio.current_time() - begun >= self._seconds and not warned:
                    warned = True
                    log.warning("written, not loaded", target=self._status.target, said=one_line(self._status.said))
                    self._record(event_reasons.NOT_LOADED, f"written, but not loaded yet: {self._status.said}")
                await trio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _is_loaded(self) -> bool:
        planned = self._planned
        if planned is None or self._status.state.standing is not Standing.INSTALLED:
            # The next look that finds the stanza starts again.
            return True
        places = (self._dns,) if self._dns else places_to_ask(planned.found)
        asked = await ask_all(places, zones_to_ask(find_traces(planned.found)))
        if self._planned is not planned:
            # A look in the meantime may have found it undone: ask again.
            return False
        loaded = _read(asked)
        self._status.said = "; ".join(f"{one.endpoint} for {one.zone}: {one.said}" for one in asked)
        if loaded and not self._status.loaded:
            log.info("loaded", target=self._status.target)
        self._status.loaded = loaded
        return bool(loaded)


def _read(asked: Sequence[ProbeResult]) -> bool | None:
    """Whether all answers show the stanza; silent servers are ignored, None if all are silent."""
    states = {one.state for one in asked} - {Presence.SILENT}
    return states == {Presence.YES} if states else None


def _aim_of(planned: Planned) -> Aim:
    edits, wanted = planned.edits, planned.wanted
    rewrites = frozenset(edits.rewrites.rewrites) if edits.rewrites else None
    return Aim(str(planned.choice.target), wanted.addresses if wanted else (), edits.zones, rewrites)


def _about(seen: Survey) -> About | None:
    """The ConfigMap to write, else the one with the Corefile, else the Service."""
    server, service = seen.found.asked_by_pods, seen.found.service
    corefile = server.corefile if server else None
    source = seen.choice.target.source if seen.choice.target else corefile.source if corefile else None
    if source is not None:
        uid = source.object.metadata.uid if source.object else ""
        return About("ConfigMap", source.namespace, source.name, uid)
    return About("Service", service.namespace, service.name) if service else None


def _log_plan(planned: Planned) -> None:
    log.info(
        "method",
        method=planned.edits.method.value if planned.edits.method else None,
        target=str(planned.choice.target),
        zones=list(planned.edits.zones),
        asks=list(map(str, planned.wanted.addresses if planned.wanted else ())),
    )
    for note in planned.edits.notes:
        log.info("note", text=one_line(note))
