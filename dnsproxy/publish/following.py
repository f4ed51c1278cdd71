"""Reads the table, publishes it, waits and reads again, through failures of either side.

The law: published names stay while the table cannot be read. A table that lost most of its names is published only
when a second read shows it again. Each failure is logged once, not at every read.
"""

from __future__ import annotations

import random
import time
from typing import Final, NoReturn, Protocol

import structlog
import trio

from dnsproxy.admin.publication import Publication
from dnsproxy.publish.publisher_status import CHANGED, FAILED, UNCHANGED, PublishStatus
from dnsproxy.publish.selection import describe_refusal
from dnsproxy.publish.settings import Pace
from dnsproxy.publish.source import Source, SourceError
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

_FIRST_PAUSE: Final = 1.0
"""Seconds after the first failure; doubles up to the interval."""
_JITTER: Final = 0.1
"""Fraction of the interval: hundreds of publishers that started together must not stay in step."""
_FIRST_JITTER: Final = 0.5
"""Until the first table: publishers that a server refused together must not return together."""


class PublishError(Exception):
    """Why a table was not published, on one line; the next read retries."""

    def __init__(self, message: str, *, status: int = ExitStatus.NO) -> None:
        super().__init__(message)
        self.status = status
        """The exit status with --once: 1 if the target refuses, 3 if it was out of reach."""


class Target(Protocol):
    """Where a table is published."""

    async def publish(self, publication: Publication, *, confirmed: bool) -> str:
        """Bring the target to this publication; called after each read, also if the publication is the same.

        Returns why the table is held back, or an empty text. `confirmed`: this is the second read of a table that was
        held back, or the operator allows the loss. Raises PublishError.
        """
        ...


async def follow(source: Source, target: Target, *, pace: Pace, status: PublishStatus) -> NoReturn:
    """Publish the source's table until cancelled."""
    follower = _Follower(source, target, status)
    while True:
        await follower.read_and_publish()
        jitter = _FIRST_JITTER if follower.waits_for_first_table else _JITTER
        await trio.sleep(follower.pause(pace) * random.uniform(1 - jitter, 1 + jitter))  # noqa: S311  # no secret


async def publish_once(
    source: Source, target: Target, *, pace: Pace, status: PublishStatus, allow_loss: bool = False
) -> None:
    """Publish the source's present table; `allow_loss`: also if it lost most of the published names.

    Without that, a second read shows whether a server was just starting.

    Raises StartError: status 3 if the source or the target is out of reach, 1 if the table is refused.
    """
    follower = _Follower(source, target, status, confirmed=allow_loss)
    await follower.read_and_publish()
    if status.held_back and not status.source_trouble and not status.target_trouble:
        await trio.sleep(pace.confirm)
        await follower.read_and_publish()
    if status.source_trouble:
        raise StartError(status.source_trouble, status=ExitStatus.UNKNOWN)
    if status.target_trouble:
        raise StartError(status.target_trouble, status=follower.failure_status)
    if status.held_back:
        raise StartError(describe_refusal(status.held_back), status=ExitStatus.NO)


class _Follower:
    def __init__(self, source: Source, target: Target, status: PublishStatus, *, confirmed: bool | None = None) -> None:
        """`confirmed`: whether a sudden loss is; None: a second read confirms it."""
        self.source = source
        self.confirmed = confirmed
        self.target = target
        self.status = status
        self.last: Publication | None = None
        self.failures = 0
        """Reads in a row that failed."""
        self.holds = 0
        """Reads in a row whose table was held back."""
        self.failure_status: int = ExitStatus.NO
        """The exit status of the target's last failure."""
        self.log = structlog.get_logger("dnsproxy.publish")

    async def read_and_publish(self) -> None:
        status = self.status
        try:
            publication = await self.source.read()
        except SourceError as error:
            status.reads[FAILED] += 1
            self.failures += 1
            if not status.source_trouble:
                self.log.warning("cannot read the table; published names stay", cause=str(error))
            status.source_trouble = str(error)
            return
        if status.source_trouble:
            self.log.info("the table can be read again", source=status.source)
        status.source_trouble, self.failures = "", 0
        status.reads[UNCHANGED if publication is self.last else CHANGED] += 1
        self.last = publication
        await self.publish(publication)

    async def publish(self, publication: Publication) -> None:
        status = self.status
        try:
            confirmed = bool(status.held_back) if self.confirmed is None else self.confirmed
            held_back = await self.target.publish(publication, confirmed=confirmed)
        except PublishError as error:
            status.writes[FAILED] += 1
            if status.target_trouble != str(error):
                self.log.warning("cannot publish", target=status.target, cause=str(error))
            status.target_trouble, self.failure_status = str(error), error.status
            return
        self.holds = self.holds + 1 if held_back else 0
        if held_back and not status.held_back:
            self.log.warning("held back", target=status.target, cause=held_back)
        if status.target_trouble:
            self.log.info("published again", target=status.target)
        status.held_back, status.target_trouble = held_back, ""
        if not held_back:
            status.published_time = time.time()

    @property
    def waits_for_first_table(self) -> bool:
        return bool(self.failures) and self.status.published_time is None

    def pause(self, pace: Pace) -> float:
        if self.holds == 1 and not self.failures:
            return min(pace.confirm, pace.interval)
        if self.waits_for_first_table:
            return min(pace.interval, _FIRST_PAUSE * 2.0 ** min(self.failures - 1, 16))
        return pace.interval
