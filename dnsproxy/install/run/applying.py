"""Applies an install or an uninstall: read, plan, try, write, and read again, until the plan is empty.

The law: every write is read back, because only a read that leaves nothing to change ends the loop. Concurrent installs
converge; the next run completes an interrupted one. Each ConfigMap is one guarded request, in the order of the edits,
written completely or not at all. A conflict leads to a new read, never to a forced write. Attempts are bounded, with
growing pauses, and a writer that undoes the change each time is not overruled.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import trio

from dnsproxy.cluster_dns.found import Found, ServiceRef
from dnsproxy.cluster_dns.image import Program
from dnsproxy.cluster_dns.method_choice import Choice, Method, choose_method
from dnsproxy.cluster_dns.original_upstreams import find_original
from dnsproxy.cluster_dns.read import discover
from dnsproxy.cluster_dns.refusal import (
    ChangeRefused,
    check_exists,
    check_ready,
    notes_on_readiness,
    upstreams_refusal,
)
from dnsproxy.cluster_dns.requests import Blame, Fault
from dnsproxy.cluster_dns.traces import find_traces
from dnsproxy.corefile.model import CorefileError
from dnsproxy.install.change.config_map import ConfigMapChange, Edits, Wanted, make_write
from dnsproxy.install.change.planning import plan_apply, plan_found
from dnsproxy.install.change.removal import plan_removal
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from dnsproxy.install.change.trial_corefile import after, make_trial
from dnsproxy.install.run.local_coredns import try_change
from dnsproxy.install.run.survey import InstallRequest, Survey, survey
from sidecar.kubernetes.errors import ApiError, Conflict, Forbidden, NotFound, Refused
from sidecar.kubernetes.http import ApiClient
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

ATTEMPTS: Final = 8
"""Reads of the cluster; without conflicts there are two, before and after the write."""
WRITES: Final = 3
"""Writes before a writer that undoes each of them wins."""
REQUEST_SECONDS: Final = 15.0
"""Seconds for one answer of the API server; webhooks may take 10 of them."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 3.0
"""Seconds before the read after a conflict: the first pause, which doubles up to the longest."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The edits that would be written, and the state that they were planned for."""

    found: Found
    choice: Choice
    edits: Edits
    wanted: Wanted | None = None
    """None for an uninstall."""
    survey: Survey | None = None
    """None for an uninstall."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of writing."""

    first: Planned
    """The first plan."""
    last: Planned
    """The plan after the last read."""
    wrote: bool
    reverted: bool = False
    """Whether another writer undid each write."""

    @property
    def edits(self) -> Edits:
        """The edits of the first plan."""
        return self.first.edits


Look = Callable[[], Awaitable[Planned]]


async def plan(client: ApiClient, request: InstallRequest) -> Planned:
    """The plan of an install for the present state of the cluster. Raises ChangeRefused, StartError."""
    return plan_survey(await survey(client, request), request)


def plan_survey(seen: Survey, request: InstallRequest) -> Planned:
    """The plan of an install for a survey. Raises ChangeRefused, StartError."""
    check_seen(seen)
    if seen.rewrites is not None:
        return _plan_rewrites(seen, request, seen.rewrites)
    notes: list[str] = []
    addresses = request.addresses
    if seen.own is not None:
        check_ready(seen.own)
        notes += notes_on_readiness(seen.own)
        addresses = seen.own.stanza_addresses
    notes += seen.notes
    if seen.choice.method is Method.PRINT:
        raise ChangeRefused(seen.choice.why, "print it for the owner: dnsproxy install --method print")
    wanted = Wanted(addresses, seen.zones)
    # Zones with a source are those of live hostnames.
    edits = (plan_found if seen.zones_from else plan_apply)(seen.found, seen.choice, wanted)
    faults = find_original(seen.found, addresses).faults(edits.zones)
    if faults and not request.accepts_upstreams:
        raise ChangeRefused(*upstreams_refusal(faults))
    notes += (f"other upstreams than before: {fault}" for fault in faults)
    return Planned(seen.found, seen.choice, replace(edits, notes=(*notes, *edits.notes)), wanted, seen)


def _plan_rewrites(seen: Survey, request: InstallRequest, live: LiveRewrites) -> Planned:
    """No query comes to dnsproxy, so it need not listen where CoreDNS could ask it, nor forward anywhere."""
    if seen.asked_already and request.method is None:
        reason = "the cluster's DNS asks dnsproxy already, by a configuration without Switchback's markers"
        raise ChangeRefused(reason, "nothing is to be done; --method override-rewrites adds rewrite lines all the same")
    if seen.own is not None and not live.answered and request.admin is None and not find_traces(seen.found):
        check_exists(seen.own)
        _check_all_seen(seen.own.faults)
    wanted = Wanted((), seen.zones, live)
    edits = plan_apply(seen.found, seen.choice, wanted)
    return Planned(seen.found, seen.choice, replace(edits, notes=(*seen.notes, *edits.notes)), wanted, seen)


async def plan_out(client: ApiClient, where: ServiceRef) -> Planned:
    """The plan of an uninstall for the present state of the cluster. Raises StartError."""
    found = await discover(client, where)
    _check_all_seen(found.faults)
    return Planned(found, choose_method(found), plan_removal(found))


async def settle(client: ApiClient, look: Look, first: Planned) -> Settled:
    """Write until a read leaves nothing to change. Raises ChangeRefused, StartError."""
    planned, wrote = first, 0
    for conflicts in range(ATTEMPTS):
        if not planned.edits.changed or wrote == WRITES:
            return Settled(first, planned, wrote > 0, reverted=planned.edits.changed)
        try:
            await write(client, planned.edits)
            wrote += 1
        except Changed:
            await trio.sleep(_pause(conflicts))
        planned = await look()
    if wrote or not planned.edits.changed:
        return Settled(first, planned, wrote > 0, reverted=planned.edits.changed)
    changed = ", ".join(str(change.source) for change in planned.edits.changes if change.changed)
    raise ChangeRefused(f"{changed} was changed by another writer before each write", "try again later")


async def try_planned(planned: Planned) -> str:
    """Let a CoreDNS of this computer, if there is one, load the change. Returns a note or ``. Raises ChangeRefused."""
    server = planned.found.asked_by_pods
    corefile = server.corefile if server else None
    if server is None or corefile is None or server.program is not Program.COREDNS or not planned.edits.changed:
        return ""
    try:
        before, changed = make_trial(corefile), make_trial(after(corefile, planned.edits, planned.choice))
    except CorefileError as error:
        return f"no CoreDNS of this computer could try the change: {error}"
    tried = await try_change(before, changed)
    if tried is None or not (tried.refused or tried.untried):
        return ""
    if tried.untried:
        return f"no CoreDNS of this computer could try the change: {tried.untried}"
    if server.version is not None and tried.version is not None and tried.version < server.version:
        shown = ".".join(map(str, tried.version))
        return f"CoreDNS {shown} of this computer, older than the cluster's, rejects the change: {tried.refused}"
    raise ChangeRefused(
        f"a CoreDNS of this computer rejects the change: {tried.refused}",
        "report this, with the output of --dry-run; nothing was written",
        place=", ".join(f"ConfigMap {change.source}" for change in planned.edits.changes),
    )


def _pause(conflicts: int) -> float:
    """Seconds to wait, with jitter: two writers that conflicted once should not conflict again."""
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**conflicts)
    return random.uniform(longest / 2, longest)  # noqa: S311  # no secret


def check_seen(seen: Survey) -> None:
    """Raises StartError with status 3 if a part of the cluster could not be read."""
    _check_all_seen(seen.found.faults)
    if seen.own is not None and not seen.own.endpoints:
        _check_all_seen(seen.own.faults)


def _check_all_seen(faults: Iterable[Fault]) -> None:
    blocked = next((fault for fault in faults if fault.blame is Blame.ACCESS), None)
    if blocked is not None:
        raise StartError(str(blocked), status=ExitStatus.UNKNOWN)


class Changed(Exception):
    """Another writer changed a ConfigMap after it was read: read and plan again."""


async def write(client: ApiClient, edits: Edits) -> None:
    """Write the edits. Raises Changed, ChangeRefused if the API server rejects one, StartError with status 3."""
    for change in edits.changes:
        if change.changed:
            await _write_one(client, edits, change)


async def _write_one(client: ApiClient, edits: Edits, change: ConfigMapChange) -> None:
    request = make_write(change)
    name = f"ConfigMap {change.source}"
    try:
        await client.change(
            request.method,
            request.path,
            request.params,
            request.content,
            content_type=request.content_type,
            seconds=REQUEST_SECONDS,
        )
    except (Conflict, NotFound) as error:
        # Not found: it was deleted after it was read.
        raise Changed(f"{name}: {error}") from error
    except Forbidden as error:
        where = f"{change.verb} configmaps {change.source.name} in namespace {change.source.namespace}"
        method = f"the method {edits.method.value} needs it" if edits.method else "it is needed"
        remedy = "grant it (--dry-run prints the Role), or give the text to the owner of the DNS: --method print"
        raise StartError(
            f"not allowed to {where}, and {method}: {error}; {remedy}", status=ExitStatus.UNKNOWN
        ) from None
    except Refused as error:
        raise ChangeRefused(f"the API server rejects the change: {error}", place=name) from None
    except ApiError as error:
        text = f"{name} may or may not be written: {error}; run this again to complete it"
        raise StartError(text, status=ExitStatus.UNKNOWN) from None
