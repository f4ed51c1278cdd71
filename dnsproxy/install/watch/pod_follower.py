"""Follows what dnsproxy's pods say about their tables, and reports what the last look did not see.

The law: a thin shell; a pod that does not answer changes nothing, and is logged once until one answers again. News is
reported once: the state machine decides whether and when it is written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, NoReturn, Protocol, TypeVar

import structlog

from dnsproxy.admin.pod_poller import PodPoller
from sidecar.values.endpoints import Endpoint
from sidecar.values.text import one_line

_LOGGED: Final = 10

log = structlog.get_logger("dnsproxy.install")


class Said(Protocol):
    """What the pods said together."""

    @property
    def answered(self) -> int:
        """Pods that answered."""

    @property
    def doubt(self) -> str:
        """Why something may be missing."""


S = TypeVar("S", bound=Said)
Known = frozenset[str]


class PodFollower(Generic[S]):
    """Calls `on_news` when `learn` makes something else of an answer and of what the last look knew.

    `what` names it in the log: `zones`, `names`.
    """

    def __init__(
        self,
        read: Callable[[Sequence[Endpoint]], Awaitable[S]],
        learn: Callable[[S, Known], Known],
        on_news: Callable[[], None],
        *,
        what: str,
    ) -> None:
        self._read = read
        self._learn = learn
        self._known: Known = frozenset()
        self._on_news = on_news
        self._what = what
        self._poller = PodPoller(self._look)
        self._answers = True

    def follow(self, pods: tuple[Endpoint, ...], known: Known) -> None:
        """Ask these pods, and none without any; the caller knows this already."""
        self._known = known
        self._poller.follow(pods)

    async def run(self) -> NoReturn:
        """Ask until cancelled."""
        await self._poller.run()

    async def _look(self, pods: Sequence[Endpoint]) -> bool:
        said = await self._read(pods)
        self._note(said)
        known = self._learn(said, self._known)
        if known != self._known:
            added, removed = known - self._known, self._known - known
            log.info(f"new {self._what}", added=sorted(added)[:_LOGGED], removed=sorted(removed)[:_LOGGED])
            self._known = known
            self._on_news()
        return said.answered > 0

    def _note(self, said: Said) -> None:
        answers = said.answered > 0
        if answers != self._answers and answers:
            log.info(f"dnsproxy gives its {self._what} again")
        elif answers != self._answers:
            log.warning(f"dnsproxy gives no {self._what}, and those of the stanza stay", cause=one_line(said.doubt))
        self._answers = answers
