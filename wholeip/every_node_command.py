"""`wholeip uninstall --every-node NAMESPACE`: ends the agents, and removes the rules by a Job on each Linux node.

The law: the agents have ended before the first Job, because they would put the rules back; and it is done only when
the Job of each node is complete. It takes the Job from the suspended CronJob of the installation, so image and rights
are the same.
"""

from __future__ import annotations

import json
from typing import Any, Final

import click
import msgspec
import trio

from sidecar.cli.progress_line import ProgressLine
from sidecar.kubernetes.config import find_cluster
from sidecar.kubernetes.errors import ApiError, NotFound
from sidecar.kubernetes.hook import check_hook
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection, ObjectMeta
from sidecar.kubernetes.one_shot import list_all
from sidecar.kubernetes.removal import Ended, delete_object, end_workload, is_there
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from wholeip.node_jobs import NAME, NodeJob, make_jobs, unfinished

_AGENTS: Final = "wholeip"
_ANSWER: Final = 10.0
"""Seconds for one answer of the API server."""
_END: Final = 300.0
"""Seconds for all pods of the agents, or of earlier Jobs, to end."""
_JOBS: Final = 360.0
"""Seconds for all Jobs; each has a deadline of 300."""
_PAUSE: Final = 1.0
_LOST: Final = "remove a lost node with `kubectl delete node`, and run this again"


class _Named(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


async def run_on_every_node(
    namespace: str, hook: str | None, kubeconfig: str | None, context: str | None, dry_run: bool
) -> int:
    """Remove the rules from every node, or print the nodes; the exit status. Raises StartError."""
    cluster = await find_cluster(kubeconfig=kubeconfig, context=context, status=ExitStatus.UNKNOWN)
    async with ApiClient(cluster) as client:
        try:
            if hook is not None:
                await check_hook(client, *hook.split("/"))
            return await remove_from_nodes(client, namespace, dry_run=dry_run)
        except ApiError as error:
            raise StartError(f"not every node's rules are removed: {error}", status=ExitStatus.UNKNOWN) from error


async def remove_from_nodes(
    client: ApiClient, namespace: str, *, dry_run: bool, jobs_seconds: float = _JOBS, end_seconds: float = _END
) -> int:
    """The same with a client. Raises ApiError, StartError."""
    cron_job = await _cron_job(client, namespace)
    linux = Collection("Node", "/api/v1/nodes", _Named, label_selector="kubernetes.io/os=linux")
    nodes = [one.metadata.name for one in (await list_all(client, linux)).values()]
    if dry_run:
        click.echo(f"Would end the agents in {namespace}, and remove the rules on: {' '.join(sorted(nodes))}")
        return 0
    await _end_agents(client, namespace, seconds=end_seconds)
    jobs = await _create_jobs(client, namespace, cron_job, nodes, seconds=end_seconds)
    left = await _await_jobs(client, namespace, jobs, seconds=jobs_seconds)
    for node, state in sorted(left.items()):
        click.echo(f"{node}: {state or 'its Job has not ended'}", err=True)
    if left:
        raise StartError(f"{len(left)} of {len(nodes)} nodes still have rules: {_LOST}", status=ExitStatus.NO)
    if await is_there(client, _agents_path(namespace)):
        raise _created_again(namespace)
    for job in jobs.values():
        await delete_object(client, f"/apis/batch/v1/namespaces/{namespace}/jobs/{job}")
    click.echo(f"Removed the rules of {len(nodes)} nodes.")
    return 0


async def _cron_job(client: ApiClient, namespace: str) -> dict[str, Any]:
    path = f"/apis/batch/v1/namespaces/{namespace}/cronjobs/{NAME}"
    try:
        found: dict[str, Any] = json.loads(await client.get(path, seconds=_ANSWER))
    except NotFound as error:
        raise StartError(
            f"there is no CronJob {namespace}/{NAME}: apply wholeip again, or run `wholeip uninstall` on each node",
            status=ExitStatus.NO,
        ) from error
    return found


async def _end_agents(client: ApiClient, namespace: str, *, seconds: float) -> None:
    line = ProgressLine()

    def wait(passed: float) -> None:
        line.show(f"Waiting for the agents to end, {passed:.0f} of up to {seconds:.0f} s")

    ended = await end_workload(client, _agents_path(namespace), seconds=seconds, on_wait=wait)
    line.clear()
    if ended is Ended.REMAINS:
        raise StartError(
            f"an agent in {namespace} does not end, and would keep the rules: {_LOST}", status=ExitStatus.NO
        )
    if ended is Ended.AGAIN:
        raise _created_again(namespace)


def _agents_path(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{_AGENTS}"


def _created_again(namespace: str) -> StartError:
    text = f"another program has created {namespace}/{_AGENTS} again: suspend it (Argo CD, Flux) and run this again"
    return StartError(text, status=ExitStatus.NO)


async def _create_jobs(
    client: ApiClient, namespace: str, cron_job: dict[str, Any], nodes: list[str], *, seconds: float
) -> dict[str, str]:
    """The names of the Jobs by node; those of an earlier removal go first."""
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    for old in (await list_all(client, _jobs_in(namespace))).values():
        if await end_workload(client, f"{path}/{old.metadata.name}", seconds=seconds) is Ended.REMAINS:
            raise StartError(
                f"the Job {old.metadata.name} of an earlier removal does not end: {_LOST}", status=ExitStatus.NO
            )
    jobs = make_jobs(cron_job, nodes)
    for job in jobs.values():
        body = json.dumps(job).encode()
        await client.change("POST", path, {}, body, content_type="application/json", seconds=_ANSWER)
    return {node: job["metadata"]["name"] for node, job in jobs.items()}


async def _await_jobs(client: ApiClient, namespace: str, jobs: dict[str, str], *, seconds: float) -> dict[str, str]:
    """The nodes that are left when each Job has ended, or after `seconds`."""
    line, left = ProgressLine(), dict.fromkeys(jobs, "")
    with trio.move_on_after(seconds):
        while True:
            seen = (await list_all(client, _jobs_in(namespace))).values()
            left = unfinished(jobs, [one for one in seen if isinstance(one, NodeJob)])
            if all(left.values()):
                break
            line.show(f"Removing the rules: {len(jobs) - len(left)} of {len(jobs)} nodes")
            await trio.sleep(_PAUSE)
    line.clear()
    return left


def _jobs_in(namespace: str) -> Collection[NodeJob]:
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    return Collection("Job", path, NodeJob, label_selector=f"app.kubernetes.io/name={NAME}")
