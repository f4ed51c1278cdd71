"""`dnsproxy ip-mode --remove`: plan, announce, delete, and rewrite statuses if asked.

The law: only what is ours is deleted; nothing there is done. A cluster whose API server serves no policies any more can
still have annotations and statuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dnsproxy.ip_mode.changes import Change
from dnsproxy.ip_mode.discovery import find_version
from dnsproxy.ip_mode.planning import Plan, make_remove
from dnsproxy.ip_mode.request import WriteRequest
from dnsproxy.ip_mode.rewriting import look_again, rewrite_all
from dnsproxy.ip_mode.running import changes_of, connected, prepare
from dnsproxy.ip_mode.showing import Waiting, announce, finish
from dnsproxy.ip_mode.status_writes import VIP
from dnsproxy.ip_mode.survey import survey
from dnsproxy.ip_mode.writing import look_last, settle
from sidecar.kubernetes.http import ApiClient


async def remove(request: WriteRequest) -> int:
    """Delete the binding, the policy and the annotations; the exit status. Raises StartError."""
    async with connected(request) as client:
        version = (await find_version(client)).version
        plan = await _plan(client, version, request)
        report = await prepare(client, plan, request)
        announce(report, request)
        if report.dry_run or report.blocked or plan.refusals:
            return finish(report, request)

        async def look() -> Sequence[Change]:
            return changes_of(await _plan(client, version, request))

        made = await settle(client, plan.changes, look)
        report = replace(report, made=made, rewrote=request.rewrite)
        if request.rewrite:
            waiting = Waiting("the statuses to become VIP", request)
            rewrites = await rewrite_all(client, plan.services, VIP, waiting)
            waiting.end()
            rewrites = await look_again(client, rewrites, VIP)
            changed, unseen = await look_last(look)
            report = replace(report, rewrites=rewrites, changed=changed, unseen=unseen)
        return finish(report, request)


async def _plan(client: ApiClient, version: str, request: WriteRequest) -> Plan:
    return make_remove(await survey(client, version, request), request)
