"""`dnsproxy ip-mode --apply`: plan, announce, write, prove, and rewrite statuses if asked.

The law: nothing is written that was not announced; --dry-run writes nothing. Done means in effect, as far as a selected
Service can show it. What makes the API server refuse a provider's writes is taken out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dnsproxy.ip_mode.changes import Change, plan_undo
from dnsproxy.ip_mode.discovery import find_version
from dnsproxy.ip_mode.effect import prove, refuse_denied
from dnsproxy.ip_mode.outcome import Report
from dnsproxy.ip_mode.planning import make_apply
from dnsproxy.ip_mode.present import Present, ref_of
from dnsproxy.ip_mode.request import WriteRequest
from dnsproxy.ip_mode.results import Effect, Rewrite
from dnsproxy.ip_mode.rewriting import rewrite_all
from dnsproxy.ip_mode.running import changes_of, connected, prepare
from dnsproxy.ip_mode.selection import PROXY
from dnsproxy.ip_mode.showing import Waiting, announce, finish
from dnsproxy.ip_mode.survey import survey
from dnsproxy.ip_mode.writing import look_last, settle
from sidecar.kubernetes.http import ApiClient
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus


async def apply(request: WriteRequest) -> int:
    """Write the policy, its binding and the annotations; the exit status. Raises StartError."""
    async with connected(request) as client:
        found = await find_version(client)
        if not found.version:
            raise StartError(found.why_none, status=ExitStatus.NO)
        before = await _survey(client, found.version, request)
        report = await prepare(client, make_apply(before, request), request)
        report = await _with_denied(client, report, request)
        announce(report, request)
        if report.dry_run or report.blocked or report.plan.refusals:
            return finish(report, request)

        async def look() -> Sequence[Change]:
            return changes_of(make_apply(await _survey(client, found.version, request), request))

        async def look_back() -> Sequence[Change]:
            return plan_undo(before, await _survey(client, found.version, request))

        made = await settle(client, report.plan.changes, look)
        report = await _prove(client, replace(report, made=made), request)
        if made and report.proof.refused:
            await settle(client, await look_back(), look_back)
            report = replace(report, undone=True)
        elif made:
            # The proof and the statuses take seconds.
            changed, unseen = await look_last(look)
            report = replace(report, changed=changed, unseen=unseen)
        return finish(report, request)


async def _survey(client: ApiClient, version: str, request: WriteRequest) -> Present:
    return await survey(client, version, request, harm=True)


async def _with_denied(client: ApiClient, report: Report, request: WriteRequest) -> Report:
    """The report with what another policy denies; the Services that are asked about are those of its rights."""
    plan = report.plan
    if report.missing or plan.refusals:
        return report
    named = [one for one in plan.services if request.rewrite or ref_of(one) in request.services]
    denied = await refuse_denied(client, named or plan.services[:1])
    return replace(report, plan=replace(plan, refusals=denied, changes=())) if denied else report


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
