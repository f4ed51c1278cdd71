"""The follower of dnsproxy's pods: news once, silence logged once, and no question without a pod."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog
import trio.testing

from dnsproxy.admin.pod_poller import LONGEST, POLL
from dnsproxy.install.watch.pod_follower import PodFollower
from sidecar.values.endpoints import Endpoint

POD = (Endpoint("192.0.2.7", 8081),)
Clock = trio.testing.MockClock


@dataclass
class Said:
    zones: tuple[str, ...] = ()
    answered: int = 1
    doubt: str = ""


@dataclass
class Pods:
    """What pods say, and when they were asked."""

    said: Said = field(default_factory=Said)
    asked: list[float] = field(default_factory=list)
    news: int = 0

    async def read(self, pods: Sequence[Endpoint]) -> Said:
        assert pods == POD
        self.asked.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        return self.said

    def note(self) -> None:
        self.news += 1


@asynccontextmanager
async def following(pods: Pods) -> AsyncIterator[PodFollower[Said]]:
    follower = PodFollower(pods.read, lambda said, known: known.union(said.zones), pods.note, what="zones")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(follower.run)
        yield follower
        nursery.cancel_scope.cancel()


async def test_news_is_reported_once_and_what_the_look_knew_is_none(autojump_clock: Clock) -> None:
    del autojump_clock
    pods = Pods(Said(("example.org",)))
    with structlog.testing.capture_logs() as logs:
        async with following(pods) as follower:
            await trio.sleep(10)
            assert pods.asked == []
            follower.follow(POD, frozenset(["example.org"]))
            await trio.sleep(10 * POLL)
            assert (len(pods.asked), pods.news) == (10, 0)
            pods.said = Said(("example.org", "example.net"))
            await trio.sleep(10 * POLL)
            assert pods.news == 1
            follower.follow((), frozenset())
            await trio.sleep(POLL)
            asked = len(pods.asked)
            await trio.sleep(10)
            assert len(pods.asked) == asked
    assert [one for one in logs if one["event"] == "new zones"] == [
        {"event": "new zones", "added": ["example.net"], "removed": [], "log_level": "info"}
    ]


async def test_silence_is_logged_once_and_asked_for_ever_more_rarely(autojump_clock: Clock) -> None:
    del autojump_clock
    pods = Pods(Said(answered=0, doubt="no server answers there"))
    with structlog.testing.capture_logs() as logs:
        async with following(pods) as follower:
            follower.follow(POD, frozenset())
            await trio.sleep(35)
            pauses = [later - before for before, later in zip(pods.asked, pods.asked[1:], strict=False)]
            assert pauses == sorted(pauses)
            assert pauses[-1] <= LONGEST + POLL
            pods.said = Said()
            await trio.sleep(20)
    assert [one["event"] for one in logs] == [
        "dnsproxy gives no zones, and those of the stanza stay",
        "dnsproxy gives its zones again",
    ]
    assert logs[0]["cause"] == "no server answers there"
    assert pods.news == 0
