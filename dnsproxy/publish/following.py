"""Following: look at the table, publish it, wait, and look again, through every fault of either side.

The law: what is published stays as it is while the table cannot be read, and a table that lost nearly everything is
published when a second look shows it again. Each trouble is told once, not once a look.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Final, NoReturn, Protocol

import structlog
import trio

from dnsproxy.admin.publication import Publication
from dnsproxy.publish.publisher_status import CHANGED, FAILED, UNCHANGED, PublishStatus
from dnsproxy.publish.source import NotReadable, Source
from sidecar.errors import ExitStatus, StartError

SECOND_LOOK: Final = 2.0
"""Seconds until a doubtful table is looked at again, at most: a source that is starting has then found its feet."""
_FIRST_PAUSE: Final = 1.0
"""Seconds after a first failure; it doubles up to the interval."""
_JITTER: Final = 0.1
"""Of the interval, more or less: hundreds that started together must not come together for ever."""
_FIRST_JITTER: Final = 0.5
"""Until there is a first table: those whom a server turned away together must not come back together."""


class Troubled(Exception):
    """What kept a table from being published, on one line; the next look tries again."""

    def __init__(self, message: str, *, status: int = 1) -> None:
        super().__init__(message)
        self.status = status
        """The exit status of who tries once: 1 it is refused, 3 it could not be found out."""


class Target(Protocol):
    """Where a table is published."""

    async def publish(self, publication: Publication, *, confirmed: bool) -> str:
        """Make what is published be what the publication says; asked again at each look, also with the same one.

        Gives why it was held back, or an empty text. `confirmed`: this is the second look at what was held back.
        Raises Troubled.
        """
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """Times in seconds."""

    interval: float = 10.0
    second_look: float = SECOND_LOOK


async def follow(source: Source, target: Target, *, pace: Pace, status: PublishStatus) -> NoReturn:
    """Publish what the source says until cancelled."""
    follower = _Follower(source, target, status)
    while True:
        await follower.look()
        jitter = _FIRST_JITTER if follower.waits_for_a_first_table else _JITTER
        await trio.sleep(follower.pause(pace) * random.uniform(1 - jitter, 1 + jitter))  # noqa: S311  # no secret


async def publish_once(source: Source, target: Target, *, pace: Pace, status: PublishStatus) -> None:
    """Publish what the source says now.

    Raises StartError: status 3 where either side cannot be asked, 1 where the table is refused.
    """
    follower = _Follower(source, target, status)
    await follower.look()
    if status.held_back and not status.source_trouble and not status.target_trouble:
        await trio.sleep(pace.second_look)
        await follower.look()
    if status.source_trouble:
        raise StartError(status.source_trouble, status=ExitStatus.UNKNOWN)
    if status.target_trouble:
        raise StartError(status.target_trouble, status=follower.refusal)
    if status.held_back:
        raise StartError(status.held_back, status=ExitStatus.NO)


class _Follower:
    def __init__(self, source: Source, target: Target, status: PublishStatus) -> None:
        self.source = source
        self.target = target
        self.status = status
        self.last: Publication | None = None
        self.failures = 0
        self.holds = 0
        """Looks in a row whose table was held back."""
        self.refusal = 1
        """The status of the last trouble with the target."""
        self.log = structlog.get_logger("dnsproxy.publish")

    async def look(self) -> None:
        status = self.status
        try:
            publication = await self.source.look()
        except NotReadable as error:
            status.looks[FAILED] += 1
            self.failures += 1
            if not status.source_trouble:
                self.log.warning("cannot read the table; what is published stays", cause=str(error))
            status.source_trouble = str(error)
            return
        if status.source_trouble:
            self.log.info("the table can be read again", source=status.source)
        status.source_trouble, self.failures = "", 0
        status.looks[UNCHANGED if publication is self.last else CHANGED] += 1
        self.last = publication
        await self.publish(publication)

    async def publish(self, publication: Publication) -> None:
        status = self.status
        try:
            held_back = await self.target.publish(publication, confirmed=bool(status.held_back))
        except Troubled as error:
            status.writes[FAILED] += 1
            if status.target_trouble != str(error):
                self.log.warning("cannot publish", target=status.target, cause=str(error))
            status.target_trouble, self.refusal = str(error), error.status
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
    def waits_for_a_first_table(self) -> bool:
        return bool(self.failures) and self.status.published_time is None

    def pause(self, pace: Pace) -> float:
        if self.holds == 1 and not self.failures:
            return min(pace.second_look, pace.interval)
        if self.waits_for_a_first_table:
            return min(pace.interval, _FIRST_PAUSE * 2.0 ** min(self.failures - 1, 16))
        return pace.interval
