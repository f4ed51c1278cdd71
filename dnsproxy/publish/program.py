"""The frame of all publishers: preview, publish once, remove, or follow the table until a signal.

The law: stdout has the preview of a dry run and nothing else. All tasks run in one nursery; what is published is
removed at the end only with --remove-on-exit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import click
import structlog
import trio

from dnsproxy.admin.publication import Publication
from dnsproxy.publish.following import PublishError, Target, follow, publish_once
from dnsproxy.publish.publisher_status import PublishCollector, PublishStatus, format_page
from dnsproxy.publish.settings import Mode, PublisherSettings
from dnsproxy.publish.source import FileSource, ServerSource, Source, SourceError
from sidecar.admin.port import AdminPort, open_admin_port
from sidecar.admin.server import Readiness
from sidecar.cli.signals import run_until_signal
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import escape_controls

GRACE: Final = 20.0
"""Seconds after a signal, to remove what is published."""

log = structlog.get_logger("dnsproxy.publish")


class RemovableTarget(Target, Protocol):
    """A target that can be restored to its state before publishing."""

    async def remove(self) -> bool:
        """Remove what is published; whether there was anything. Raises PublishError."""
        ...


Preview = Callable[[Publication | None], Awaitable[str]]
"""What publishing this table would change, as escaped text; None: what removing would change. Empty: nothing.

Raises PublishError.
"""


async def run_publisher(
    target: RemovableTarget, settings: PublisherSettings, status: PublishStatus, *, preview: Preview | None = None
) -> int:
    """Do what the settings say; the exit status. Raises StartError."""
    if settings.dry_run and preview is not None:
        await _print_preview(preview, settings)
    elif settings.mode is Mode.REMOVE:
        await _remove_once(target, status)
    elif settings.mode is Mode.ONCE:
        source, allow_loss = make_source(settings), settings.allow_loss
        await publish_once(source, target, pace=settings.pace, status=status, allow_loss=allow_loss)
        return _report(status)
    else:
        return await run_until_signal(partial(publish, target, settings, status), grace=GRACE)
    return ExitStatus.DONE


def make_source(settings: PublisherSettings) -> Source:
    """The source of the table."""
    source = settings.source
    return FileSource(source) if isinstance(source, Path) else ServerSource(source)


async def _print_preview(preview: Preview, settings: PublisherSettings) -> None:
    removing = settings.mode is Mode.REMOVE
    try:
        text = await preview(None if removing else await make_source(settings).read())
    except SourceError as error:
        raise StartError(str(error), status=ExitStatus.UNKNOWN) from None
    except PublishError as error:
        raise StartError(str(error), status=error.status) from None
    click.echo(text, nl=False)
    if not text:
        click.echo("Nothing would change.", err=True)


async def _remove_once(target: RemovableTarget, status: PublishStatus) -> None:
    try:
        removed = await target.remove()
    except PublishError as error:
        raise StartError(str(error), status=error.status) from None
    click.echo(f"{status.target}: removed." if removed else f"{status.target}: there was nothing to remove.", err=True)


def _report(status: PublishStatus) -> ExitStatus:
    for note in status.notes:
        click.echo(f"Note: {escape_controls(note)}", err=True)
    return ExitStatus.NO if status.is_incomplete() else ExitStatus.DONE


async def publish(
    target: RemovableTarget,
    settings: PublisherSettings,
    status: PublishStatus,
    stopping: trio.Event,
    *,
    task_status: trio.TaskStatus[Endpoint | None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Publish until `stopping` is set; its start value is the endpoint of the admin port."""
    source = make_source(settings)
    with open_admin_port(settings.admin, hosts=settings.admin_hosts) as port:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_serve_admin, port, status)
            nursery.start_soon(partial(follow, source, target, pace=settings.pace, status=status))
            log.info("publishing", source=status.source, target=status.target, admin=str(port))
            task_status.started(port.endpoint)
            await stopping.wait()
            nursery.cancel_scope.cancel()
    if settings.remove_on_exit:
        await _remove_at_exit(target, status)


async def _serve_admin(port: AdminPort, status: PublishStatus) -> None:
    def readiness() -> Readiness:
        reason = status.why_not_ready()
        return Readiness(not reason, reason or f"ready, {status.names} names published")

    await port.serve(PublishCollector(status), prefix="dnsproxy", readiness=readiness, page=lambda: format_page(status))


async def _remove_at_exit(target: RemovableTarget, status: PublishStatus) -> None:
    try:
        if await target.remove():
            log.info("removed", target=status.target)
    except PublishError as error:
        log.warning("cannot remove what is published", target=status.target, cause=str(error))
