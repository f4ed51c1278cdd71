"""`dnsproxy publish-external-dns`: settings in, an exit status out.

The law: stdout has the plan of a dry run, a line for each change, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from dnsproxy.cluster_dns.read import load_client
from dnsproxy.publish.externaldns.manifests import Style, format_record
from dnsproxy.publish.externaldns.planning import Changes
from dnsproxy.publish.externaldns.settings import ExternalDnsSettings
from dnsproxy.publish.externaldns.target import ExternalDnsTarget
from dnsproxy.publish.following import Troubled, publish_once
from dnsproxy.publish.program import make_source, run_publisher, take_out
from dnsproxy.publish.publisher_status import PublishStatus
from dnsproxy.publish.settings import Doing
from dnsproxy.publish.source import NotReadable
from sidecar.errors import ExitStatus, StartError
from sidecar.kubernetes.http import ApiClient
from sidecar.text import escape_controls


async def run_publish_external_dns(settings: ExternalDnsSettings) -> int:
    """Do what the settings say; the exit status. Raises StartError."""
    common = settings.common
    async with await load_client(kubeconfig=common.kubeconfig, context=common.context) as client:
        style = _style(settings, client)
        status = PublishStatus(source=str(common.source), target=f"{style.kind.shown}s in {style.namespace}")
        target = ExternalDnsTarget(client, style, zones=common.zones, allow_empty=settings.allow_empty, status=status)
        if common.dry_run:
            await _print_plan(settings, target)
        elif common.doing is Doing.REMOVE:
            await take_out(target, status.target)
        elif common.doing is Doing.ONCE:
            await publish_once(make_source(common), target, pace=common.pace, status=status)
            _tell(status)
            return 1 if status.left_out.get("conflict") or status.left_out.get("refused") else 0
        else:
            return await run_publisher(target, common, status)
    return 0


def _style(settings: ExternalDnsSettings, client: ApiClient) -> Style:
    return Style(
        kind=settings.kind,
        namespace=settings.namespace or client.cluster.namespace,
        instance=settings.instance,
        ttl=settings.ttl,
        annotation_prefix=settings.annotation_prefix,
        labels=settings.labels,
        annotations=settings.annotations,
    )


async def _print_plan(settings: ExternalDnsSettings, target: ExternalDnsTarget) -> None:
    removing = settings.common.doing is Doing.REMOVE
    try:
        publication = None if removing else await make_source(settings.common).look()
        seen = await target.look(publication)
    except NotReadable as error:
        raise StartError(str(error), status=ExitStatus.UNKNOWN) from None
    except Troubled as error:
        raise StartError(str(error), status=error.status) from None
    lines = list(_lines(seen.changes))
    click.echo("".join(f"{escape_controls(line)}\n" for line in lines), nl=False)
    if not lines:
        click.echo("Nothing would change.", err=True)


def _lines(changes: Changes) -> Iterator[str]:
    for one in changes.create:
        yield f"create {one.name}: {format_record(one.record)}"
    for one, _ in changes.update:
        yield f"update {one.name}: {format_record(one.record)}"
    for stored in changes.delete:
        yield f"delete {stored.metadata.name}"
    for conflict in changes.conflicts:
        yield f"leave {conflict.manifest.name}: {conflict.reason}"


def _tell(status: PublishStatus) -> None:
    for note in status.notes:
        click.echo(f"Note: {escape_controls(note)}", err=True)
