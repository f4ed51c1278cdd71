"""Applying: look, plan, try, write, and look again, until the cluster is as it should be.

The law: it ends when a look at the cluster gives no more change, so a write is always read back, two who install at
once come to the same end, and who is killed anywhere is finished by the next run. A conflict means a new look, never a
forced write; the tries are bounded, with a growing pause, and whoever undoes our writes is not fought.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import trio

from dnsproxy.cluster_dns.choice import Choice, Method, choose_method
from dnsproxy.cluster_dns.found import Found, ServiceRef
from dnsproxy.cluster_dns.image import Program
from dnsproxy.cluster_dns.read import discover
from dnsproxy.cluster_dns.requests import Blame, Fault
from dnsproxy.corefile.model import CorefileError
from dnsproxy.install.change.edits import Edits, Wanted
from dnsproxy.install.change.planning import plan_apply
from dnsproxy.install.change.readiness import check_ready, notes_on_readiness
from dnsproxy.install.change.refusal import Refusal
from dnsproxy.install.change.removal import plan_removal
from dnsproxy.install.change.trial_corefile import after, make_trial
from dnsproxy.install.run.local_coredns import try_change
from dnsproxy.install.run.survey import Order, Survey, survey
from dnsproxy.install.run.writing import Changed, write
from sidecar.kubernetes.http import ApiClient
from sidecar.values.errors import ExitStatus, StartError

TRIES: Final = 8
"""Looks at the cluster; a quiet one takes two, before and after the write."""
WRITES: Final = 3
"""Rounds of writing; whoever undid that many means it."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 3.0
"""Seconds between two looks, after a conflict."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What would be written, and what it rests on."""

    found: Found
    choice: Choice
    edits: Edits
    wanted: Wanted | None = None
    """None for an uninstall."""
    survey: Survey | None = None
    """Likewise."""


@dataclass(frozen=True, slots=True)
class Settled:
    """How the writing ended."""

    first: Planned
    """What was planned at first: what was to change."""
    last: Planned
    """What was seen at the end."""
    wrote: bool
    reverted: bool = False
    """Whether somebody undid it each time."""

    @property
    def edits(self) -> Edits:
        """The edits that it began with."""
        return self.first.edits


Look = Callable[[], Awaitable[Planned]]


async def plan(client: ApiClient, order: Order) -> Planned:
    """What an install would write now. Raises Refusal, StartError."""
    return plan_survey(await survey(client, order), order)


def plan_survey(seen: Survey, order: Order) -> Planned:
    """What an install would write to what was seen. Raises Refusal, StartError."""
    check_seen(seen)
    notes: list[str] = []
    addresses = order.addresses
    if seen.own is not None:
        check_ready(seen.own)
        notes += notes_on_readiness(seen.own)
        addresses = seen.own.endpoints
    if seen.choice.method is Method.PRINT:
        raise Refusal(seen.choice.why, "print it for the owner: dnsproxy install --method print")
    wanted = Wanted(addresses, seen.zones)
    edits = plan_apply(seen.found, seen.choice, wanted)
    return Planned(seen.found, seen.choice, replace(edits, notes=(*notes, *edits.notes)), wanted, seen)


async def plan_out(client: ApiClient, where: ServiceRef) -> Planned:
    """What an uninstall would write now. Raises StartError."""
    found = await discover(client, where)
    _check_all_seen(found.faults)
    return Planned(found, choose_method(found), plan_removal(found))


async def settle(client: ApiClient, look: Look, first: Planned) -> Settled:
    """Write until a look gives no more change. Raises Refusal, StartError."""
    planned, wrote = first, 0
    for setbacks in range(TRIES):
        if not planned.edits.changed or wrote == WRITES:
            return Settled(first, planned, wrote > 0, reverted=planned.edits.changed)
        try:
            await write(client, planned.edits)
            wrote += 1
        except Changed:
            await trio.sleep(_pause(setbacks))
        planned = await look()
    if wrote or not planned.edits.changed:
        return Settled(first, planned, wrote > 0, reverted=planned.edits.changed)
    changed = ", ".join(str(change.source) for change in planned.edits.changes if change.changed)
    raise Refusal(f"{changed} was changed by somebody else each time before it could be written", "try again later")


async def try_planned(planned: Planned) -> str:
    """Has a CoreDNS of this computer try the change, if there is one. Gives a note or nothing; raises Refusal."""
    server = planned.found.asked_by_pods
    corefile = server.corefile if server else None
    if server is None or corefile is None or server.program is not Program.COREDNS or not planned.edits.changed:
        return ""
    try:
        before, changed = make_trial(corefile), make_trial(after(corefile, planned.edits, planned.choice))
    except CorefileError as error:
        return f"no CoreDNS of this computer could try it: {error}"
    tried = await try_change(before, changed)
    if tried is None or not (tried.refused or tried.untried):
        return ""
    if tried.untried:
        return f"no CoreDNS of this computer could try it: {tried.untried}"
    if server.version is not None and tried.version is not None and tried.version < server.version:
        shown = ".".join(map(str, tried.version))
        return f"the CoreDNS {shown} of this computer is older than the cluster's and does not take it: {tried.refused}"
    raise Refusal(
        f"a CoreDNS of this computer does not load it: {tried.refused}",
        "report this, with the output of --dry-run; nothing was written",
        place=", ".join(f"ConfigMap {change.source}" for change in planned.edits.changes),
    )


def _pause(setbacks: int) -> float:
    """With jitter, so that two who met once do not meet again."""
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**setbacks)
    return random.uniform(longest / 2, longest)  # noqa: S311  # no secret


def check_seen(seen: Survey) -> None:
    """Nothing is decided on what was seen in part. Raises StartError with status 3."""
    _check_all_seen(seen.found.faults)
    if seen.own is not None and not seen.own.endpoints:
        _check_all_seen(seen.own.faults)


def _check_all_seen(faults: Iterable[Fault]) -> None:
    blocked = next((fault for fault in faults if fault.blame is Blame.ACCESS), None)
    if blocked is not None:
        raise StartError(str(blocked), status=ExitStatus.UNKNOWN)
