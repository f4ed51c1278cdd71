"""Schedule: the Events of one agent that wait to be sent, and when each is due.

The law: for each Service and reason there is at most one request in 5 minutes, however often its reports change; a
report that ends before its turn is never sent. An Event stays due until `sent` is called. All times are in seconds of
one clock. Its size is that of the present reports, plus what was sent in the last 5 minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import inf

from sidecar.kubernetes.events.event import EVERY
from wholeip.mappings.plan import Part, Plan
from wholeip.service_events.service_event import ServiceEvent, event_reason, events_of
from wholeip.service_events.turns import Turns, first_wait, repeat_wait, turns_of

_Slot = tuple[str, str, str]
"""NAMESPACE/NAME and uid of a Service, and a reason."""


@dataclass(slots=True)
class _Entry:
    event: ServiceEvent | None
    """None: the report has ended."""
    due: float
    sent: float = -inf
    """When this Service and reason had their last request."""


class Schedule:
    """The Events of the agent on one node. `nodes` returns the present names of all Nodes."""

    def __init__(self, node: str, nodes: Callable[[], Collection[str]], draw: Callable[[], float]) -> None:
        """`draw` returns random numbers from [0, 1)."""
        self._node = node
        self._nodes = nodes
        self._draw = draw
        self._known: dict[str, Part] = {}
        """By Service: the part that the entries are of; none without reports."""
        self._entries: dict[_Slot, _Entry] = {}

    def __len__(self) -> int:
        """The number of Services and reasons that are kept."""
        return len(self._entries)

    def note(self, services: Iterable[str] | None, plan: Plan, now: float) -> None:
        """Take over the reports of these Services (None: of all) from the plan that the kernel has."""
        if services is None:
            self._purge(now)
            services = [*plan.parts, *(one for one in self._known if one not in plan.parts)]
        turns: Turns | None = None
        for service in services:
            part, known = plan.part(service), self._known.get(service)
            if part.reports:
                if known is not None and known.uid == part.uid and known.reports == part.reports:
                    continue
                turns = turns or turns_of(self._node, self._nodes())
                self._change(service, part, turns, now)
                self._known[service] = part
            elif known is not None:
                self._forget(service, self._known.pop(service), kept=frozenset(), now=now)

    @property
    def due(self) -> float:
        """When the next Event is due; inf: none is."""
        return min((one.due for one in self._entries.values() if one.event is not None), default=inf)

    def next(self, now: float) -> ServiceEvent | None:
        """The Event that has been due for the longest time, or None."""
        waiting = [one for one in self._entries.values() if one.event is not None and one.due <= now]
        return min(waiting, key=lambda one: one.due).event if waiting else None

    def sent(self, event: ServiceEvent, now: float) -> None:
        """The API server has answered, whatever it was."""
        self._purge(now)
        # A report that ended meanwhile may begin again.
        entry = self._entries.setdefault(_slot(event), _Entry(None, inf))
        entry.sent = now
        if entry.event == event:
            turn = turns_of(self._node, self._nodes()).turn(event.name)
            entry.due = now + repeat_wait(turn, self._draw())
        else:
            entry.due = max(entry.due, now + EVERY)

    def failed(self, event: ServiceEvent, now: float) -> None:
        """The API server has failed at it, which may be for this Event alone: those that are due already go first."""
        slot = _slot(event)
        entry = self._entries.get(slot)
        if entry is not None and entry.event == event:
            entry.due = max(entry.due, now)
            # Of those that are due at the same time, the first one goes first.
            self._entries[slot] = self._entries.pop(slot)

    def _change(self, service: str, part: Part, turns: Turns, now: float) -> None:
        events = {_slot(one): one for one in events_of(service, part)}
        if (known := self._known.get(service)) is not None:
            self._forget(service, known, kept=frozenset(events), now=now)
        for slot, event in events.items():
            entry = self._entries.get(slot)
            due = now + first_wait(turns.turn(event.name), self._draw())
            if entry is None:
                self._entries[slot] = _Entry(event, due)
            elif entry.event != event:
                # A report whose details keep changing must not wait for ever.
                earliest = due if entry.event is None else min(due, entry.due)
                entry.event, entry.due = event, max(earliest, entry.sent + EVERY)

    def _forget(self, service: str, known: Part, *, kept: Collection[_Slot], now: float) -> None:
        """The reports of `known` have ended, except those kept."""
        slots = {(service, known.uid, event_reason(one.reason).name) for one in known.reports}
        for slot in slots.difference(kept):
            if (entry := self._entries.get(slot)) is None:
                continue
            entry.event = None
            if entry.sent + EVERY <= now:
                del self._entries[slot]

    def _purge(self, now: float) -> None:
        ended = [slot for slot, one in self._entries.items() if one.event is None and one.sent + EVERY <= now]
        for slot in ended:
            del self._entries[slot]


def _slot(event: ServiceEvent) -> _Slot:
    about = event.about
    return f"{about.namespace}/{about.name}", about.uid, event.reason.name
