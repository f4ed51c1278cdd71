"""`dnsproxy publish-hosts`: settings in, an exit status out.

The law: stdout has the diff of a dry run and nothing else. What a person has to mend is status 1, what could not be
found out is status 3.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click
import structlog

from dnsproxy.cluster_dns.read import load_client
from dnsproxy.publish.configmaps.target import ConfigMapTarget
from dnsproxy.publish.following import Troubled, publish_once
from dnsproxy.publish.hosts.target import HostsTarget, check_name
from dnsproxy.publish.program import make_source, run_publisher, take_out
from dnsproxy.publish.publisher_status import PublishStatus
from dnsproxy.publish.settings import Doing, HostsSettings
from dnsproxy.publish.source import NotReadable
from sidecar.diffs import format_diff
from sidecar.errors import ExitStatus, StartError
from sidecar.text import escape_controls

log = structlog.get_logger("dnsproxy.publish")


async def run_publish_hosts(settings: HostsSettings) -> int:
    """Do what the settings say; the exit status. Raises StartError."""
    common = settings.common
    status = PublishStatus(source=str(common.source), target=str(settings.to))
    async with _opened(settings, status) as target:
        if common.dry_run and isinstance(target, HostsTarget):
            await _print_diff(settings, target)
        elif common.doing is Doing.REMOVE:
            await take_out(target, str(settings.to))
        elif common.doing is Doing.ONCE:
            await publish_once(make_source(common), target, pace=common.pace, status=status)
        else:
            return await run_publisher(target, common, status)
    return 0


@asynccontextmanager
async def _opened(settings: HostsSettings, status: PublishStatus) -> AsyncIterator[HostsTarget | ConfigMapTarget]:
    zones = settings.common.zones
    if not isinstance(settings.to, Path):
        async with await load_client(kubeconfig=settings.common.kubeconfig, context=settings.common.context) as client:
            yield ConfigMapTarget(client, settings.to, zones=zones, status=status)
        return
    if not settings.force and (fault := check_name(settings.to)):
        raise StartError(f"--to {fault}")
    if not zones and settings.common.doing is not Doing.REMOVE:
        log.warning("without --zone, any hostname that an object of the cluster claims counts on this node")
    yield HostsTarget(settings.to, zones=zones, status=status)


async def _print_diff(settings: HostsSettings, target: HostsTarget) -> None:
    removing = settings.common.doing is Doing.REMOVE
    try:
        publication = None if removing else await make_source(settings.common).look()
        change = await target.plan(publication)
    except NotReadable as error:
        raise StartError(str(error), status=ExitStatus.UNKNOWN) from None
    except Troubled as error:
        raise StartError(str(error), status=error.status) from None
    diff = format_diff(change.old, change.new, str(settings.to).lstrip("/"))
    click.echo(escape_controls(diff, keep="\n\t"), nl=False)
    if not change.changed:
        click.echo("Nothing would change.", err=True)
