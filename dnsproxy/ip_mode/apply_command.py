"""`dnsproxy ip-mode --apply`: plan, announce, write, prove, and rewrite statuses if asked.

The law: nothing is written that was not announced; --dry-run writes nothing. Done means in effect, as far as a selected
Service can show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dnsproxy.ip_mode.changes import Change
from dnsproxy.ip_mode.discovery import find_version
from dnsproxy.ip_mode.effect import prove
from dnsproxy.ip_mode.outcome import Report
from dnsproxy.ip_mode.planning import Plan, make_apply
from dnsproxy.ip_mode.request import WriteRequest
from dnsproxy.ip_mode.results import Effect, Rewrite
from dnsproxy.ip_mode.rewriting import rewrite_all
from dnsproxy.ip_mode.running import changes_of, connected, prepare
from dnsproxy.ip_mode.selection import PROXY
from dnsproxy.ip_mode.showing import Waiting, announce, finish
from dnsproxy.ip_mode.survey import survey
from dnsproxy.ip_mode.writing import settle
from sidecar.kubernetes.http import ApiClient
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus


async def apply(request: WriteRequest) -> int:
    """Write the policy, its binding and the annotations; the exit status. Raises StartError."""
    async with connected(request) as client:
        found = await find_version(client)
        if not found.version:
            raise StartError(found.why_none, status=ExitStatus.NO)
        plan = await _plan(client, found.version, request)
        report = await prepare(client, plan, request)
        announce(report, request)
        if report.dry_run or report.blocked or plan.refusals:
            return finish(report, request)

        async def look() -> Sequence[Change]:
            return changes_of(await _plan(client, found.version, request))

        made = await settle(client, plan.changes, look)
        return finish(await _prove(client, replace(report, made=made), request), request)


async def _plan(client: ApiClient, version: str, request: WriteRequest) -> Plan:
    return make_apply(await survey(client, version, request, harm=True), request)


async def _prove(client: ApiClient, report: Report, request: WriteRequest) -> Report:
    services = report.plan.services
    if not services:
        return report
    waiting = Waiting("the policy to be in effect", request)
    proof = await prove(client, services[0], waiting)
    rewrites: tuple[Rewrite, ...] = ()
    if request.rewrite and proof.effect is Effect.YES:
        rewrites = await rewrite_all(client, services, PROXY, waiting)
    waiting.end()
    return replace(report, proof=proof, rewrites=rewrites, rewrote=bool(rewrites))
