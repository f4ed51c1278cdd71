"""What all publishers are as programs: they follow a table until a signal, with an admin port beside.

The law: everything that is started lives and dies inside one nursery; what is published is taken out at the end only
where that was asked for.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final, Protocol

import click
import structlog
import trio

from dnsproxy.publish.following import Target, Troubled, follow
from dnsproxy.publish.publisher_status import PublishCollector, PublishStatus, format_page
from dnsproxy.publish.settings import PublisherSettings
from dnsproxy.publish.source import FileSource, ServerSource, Source
from sidecar.admin import Readiness
from sidecar.admin_port import AdminPort, open_admin_port
from sidecar.endpoints import Endpoint
from sidecar.errors import StartError
from sidecar.signals import run_until_signal

GRACE: Final = 20.0
"""Seconds after a signal, for taking out what is published."""

log = structlog.get_logger("dnsproxy.publish")


class RemovableTarget(Target, Protocol):
    """One that can be left as it was before."""

    async def remove(self) -> bool:
        """Take out what is published; whether there was anything. Raises Troubled."""
        ...


def make_source(settings: PublisherSettings) -> Source:
    """Where the table comes from."""
    where = settings.source
    return FileSource(where) if isinstance(where, Path) else ServerSource(where)


async def take_out(target: RemovableTarget, where: str) -> None:
    """Take out what is published, once, and say so. Raises StartError."""
    try:
        removed = await target.remove()
    except Troubled as error:
        raise StartError(str(error), status=error.status) from None
    click.echo(f"{where}: taken out." if removed else f"{where}: there was nothing to take out.", err=True)


async def run_publisher(target: RemovableTarget, settings: PublisherSettings, status: PublishStatus) -> int:
    """Publish until SIGTERM or SIGINT; the exit status. Raises StartError."""
    return await run_until_signal(partial(publish, target, settings, status), grace=GRACE)


async def publish(
    target: RemovableTarget,
    settings: PublisherSettings,
    status: PublishStatus,
    stopping: trio.Event,
    *,
    task_status: trio.TaskStatus[Endpoint | None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Publish until `stopping` is set; the value of its start is the endpoint of the admin port."""
    source = make_source(settings)
    with open_admin_port(settings.admin) as port:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_serve_admin, port, status)
            nursery.start_soon(partial(follow, source, target, pace=settings.pace, status=status))
            log.info("publishing", source=status.source, target=status.target, admin=str(port))
            task_status.started(port.endpoint)
            await stopping.wait()
            nursery.cancel_scope.cancel()
    if settings.remove_on_exit:
        await _remove(target, status)


async def _serve_admin(port: AdminPort, status: PublishStatus) -> None:
    def readiness() -> Readiness:
        reason = status.why_not_ready()
        return Readiness(not reason, reason or f"ready, {status.names} names published")

    await port.serve(PublishCollector(status), readiness=readiness, page=lambda: format_page(status))


async def _remove(target: RemovableTarget, status: PublishStatus) -> None:
    try:
        if await target.remove():
            log.info("taken out", target=status.target)
    except Troubled as error:
        log.warning("could not take out what is published", target=status.target, cause=str(error))
