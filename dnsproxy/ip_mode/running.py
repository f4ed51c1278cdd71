"""What --apply and --remove have in common: a client, and the rights before the first write.

The law: a failed request is one line with status 3; a plan whose rights are not all there is not begun.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from dnsproxy.cluster_dns.read import load_client
from dnsproxy.ip_mode.access import missing_rights
from dnsproxy.ip_mode.changes import Change
from dnsproxy.ip_mode.outcome import Report
from dnsproxy.ip_mode.planning import Plan
from dnsproxy.ip_mode.request import WriteRequest
from sidecar.kubernetes.cluster import could_not_ask
from sidecar.kubernetes.errors import ApiError
from sidecar.kubernetes.http import ApiClient
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

_READS = ("get", "list")


@asynccontextmanager
async def connected(request: WriteRequest) -> AsyncIterator[ApiClient]:
    """A client of the cluster. Raises StartError with status 3 for an ApiError of the block."""
    async with await load_client(kubeconfig=request.kubeconfig, context=request.context) as client:
        try:
            yield client
        except ApiError as error:
            raise StartError(could_not_ask(client.cluster, error), status=ExitStatus.UNKNOWN) from None


async def prepare(client: ApiClient, plan: Plan, request: WriteRequest) -> Report:
    """The report of a plan before anything is written. Raises ApiError."""
    missing = await missing_rights(client, plan.grants)
    if any(grant.verb in _READS for grant in missing):
        # What may not be read counted as absent, so the plan is about a cluster that does not exist.
        unseen = replace(plan, changes=(), refusals=(), notes=(), services=())
        return Report(unseen, missing, dry_run=request.dry_run, blocked=True)
    return Report(plan, missing, dry_run=request.dry_run, blocked=bool(missing) and not request.dry_run)


def changes_of(plan: Plan) -> Sequence[Change]:
    """What is left to change. Raises StartError if the cluster changed so that the plan is refused now."""
    if plan.refusals:
        raise StartError(f"meanwhile: {plan.refusals[0]}", status=ExitStatus.NO)
    return plan.changes
