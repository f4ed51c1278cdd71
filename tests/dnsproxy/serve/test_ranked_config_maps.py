"""Of several ConfigMaps the first that is there decides, whatever comes, goes or is hidden."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.serve.ranked_config_maps import Hidden, RankedConfigMaps
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.structs.workload import ConfigMap
from sidecar.kubernetes.watch_policy import Pace
from tests.kit.faulty_api import client_in_memory, failure
from tests.kit.live_api import LiveApi

FIRST, SECOND, THIRD = (ObjectRef(f"{name}-system", name) for name in ("first", "second", "third"))
ALL: Final = (FIRST, SECOND, THIRD)
PACE: Final = Pace(backoff_limit=8)
"""After 30 seconds of failures the next attempt may come 30 later, and the deadline of a test is 60."""


def path_of(ref: ObjectRef) -> str:
    return f"/api/v1/namespaces/{ref.namespace}/configmaps"


def put(api: LiveApi, ref: ObjectRef, text: str = "a") -> None:
    api.put("", "configmaps", {"metadata": {"name": ref.name, "namespace": ref.namespace}, "data": {"key": text}})


def remove(api: LiveApi, ref: ObjectRef) -> None:
    api.remove("", "configmaps", str(ref))


def make_api(*there: ObjectRef, hidden: Sequence[ObjectRef] = ()) -> LiveApi:
    api = LiveApi()
    api.provide("v1", "configmaps")
    for ref in there:
        put(api, ref)
    for ref in hidden:
        api.faults[path_of(ref)] = failure(403, "Forbidden")
    return api


@dataclass
class Followed:
    refs: Sequence[ObjectRef]
    heard: list[tuple[ObjectRef, str] | None] = field(default_factory=list)
    """What was found, with its content; None for nothing."""
    synced: int = 0
    ranked: RankedConfigMaps = field(init=False)

    def __post_init__(self) -> None:
        self.ranked = RankedConfigMaps(
            self.refs, on_found=self._find, on_missing=self._miss, on_synced=self._note_synced
        )

    def _find(self, ref: ObjectRef, found: ConfigMap | Unreadable) -> None:
        text = "unreadable" if isinstance(found, Unreadable) else (found.data or {})["key"]
        self.heard.append((ref, text))

    def _miss(self, hidden: Hidden) -> None:
        assert hidden == self.ranked.hidden
        self.heard.append(None)

    def _note_synced(self) -> None:
        self.synced += 1

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110  # the state of a task, which gives no signal; the clock jumps
            await trio.sleep(0.1)

    async def until_heard(self, ref: ObjectRef | None, text: str = "a") -> None:
        wanted = (ref, text) if ref else None
        await self.until(lambda: bool(self.heard) and self.heard[-1] == wanted)
        assert self.ranked.decides == ref

    @property
    def watched(self) -> list[str]:
        return [status.kind.removeprefix("ConfigMap ") for status in self.ranked.statuses]


@asynccontextmanager
async def following(api: LiveApi, *refs: ObjectRef, expected: ObjectRef | None = None) -> AsyncIterator[Followed]:
    followed = Followed(refs or ALL)
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:

        async def run() -> None:
            await followed.ranked.run(client, expected=expected, pace=PACE)

        nursery.start_soon(run)
        yield followed
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "there",
    [one for size in range(4) for one in itertools.combinations(ALL, size)],
    ids=lambda there: " ".join(map(str, there)) or "none",
)
async def test_the_first_that_is_there_decides_and_later_ones_are_not_read(
    autojump_clock: MockClock, there: tuple[ObjectRef, ...]
) -> None:
    first = next((ref for ref in ALL if ref in there), None)
    api = make_api(*there)
    async with following(api) as followed:
        await followed.until(lambda: followed.synced > 0)
        await trio.sleep(20)
        assert followed.heard == [(first, "a") if first else None]
        wanted = ALL[: ALL.index(first) + 1] if first else ALL
        assert followed.watched == [str(ref) for ref in wanted]
        assert {one.path for one in api.asked} == {path_of(ref) for ref in wanted}


async def test_whatever_comes_and_goes_the_first_that_is_there_decides(autojump_clock: MockClock) -> None:
    """Every step from each set of them to each of its neighbours."""
    there: set[ObjectRef] = set()
    api = make_api()
    walk = [*(2, 1, 2, 0, 2, 1, 2, 0), *(0, 1, 0, 2, 0, 1, 0, 2), *(1, 2, 1, 0, 1, 2, 1, 0)]
    async with following(api) as followed:
        for number, turned in enumerate(walk):
            ref = ALL[turned]
            if ref in there:
                remove(api, ref)
            else:
                put(api, ref, str(number))
            there ^= {ref}
            first = next((one for one in ALL if one in there), None)
            await followed.until(lambda first=first: followed.ranked.decides == first)  # type: ignore[misc]
            await trio.sleep(0.5)
            assert followed.ranked.decides == first
            assert (followed.heard[-1] or (None,))[0] == first


async def test_a_better_one_takes_over_within_a_second_and_the_other_is_read_no_more(
    autojump_clock: MockClock,
) -> None:
    api = make_api(SECOND)
    async with following(api) as followed:
        await followed.until_heard(SECOND)
        with trio.fail_after(1):
            put(api, FIRST)
            await followed.until_heard(FIRST)
        put(api, SECOND, "b")
        await trio.sleep(2)
        assert followed.heard == [(SECOND, "a"), (FIRST, "a")]
        with trio.fail_after(1):
            remove(api, FIRST)
            await followed.until_heard(SECOND, "b")


@pytest.mark.parametrize("also", ["changes", "goes"])
async def test_what_a_later_one_does_at_the_same_moment_counts_for_nothing(
    autojump_clock: MockClock, also: str
) -> None:
    """Both events may arrive before the later one is let go of, in either order."""
    api = make_api()
    async with following(api, FIRST, SECOND) as followed:
        for number in range(30):
            put(api, SECOND, f"{number}")
            await followed.until_heard(SECOND, f"{number}")
            put(api, FIRST)
            if also == "changes":
                put(api, SECOND, "late")
            else:
                remove(api, SECOND)
            await followed.until(lambda: followed.ranked.decides == FIRST)
            await trio.sleep(0.2)
            assert followed.heard[-1] == (FIRST, "a")
            remove(api, FIRST)


async def test_a_change_of_the_one_that_decides_is_followed(autojump_clock: MockClock) -> None:
    api = make_api(SECOND)
    async with following(api) as followed:
        await followed.until_heard(SECOND)
        put(api, SECOND, "b")
        await followed.until_heard(SECOND, "b")
        api.put("", "configmaps", {"metadata": {"name": SECOND.name, "namespace": SECOND.namespace}, "data": 1})
        await followed.until_heard(SECOND, "unreadable")


async def test_a_hidden_one_is_skipped_named_once_and_decides_once_it_is_shown(autojump_clock: MockClock) -> None:
    api = make_api(FIRST, THIRD, hidden=[FIRST, SECOND])
    with capture_logs() as logs:
        async with following(api) as followed:
            await followed.until_heard(THIRD)
            assert set(followed.ranked.hidden) == {FIRST, SECOND}
            assert "403" in followed.ranked.hidden[FIRST]
            await trio.sleep(15)
            del api.faults[path_of(SECOND)]
            await trio.sleep(15)
            assert followed.ranked.decides == THIRD
            del api.faults[path_of(FIRST)]
            await followed.until_heard(FIRST)
            assert followed.ranked.hidden == {}
            assert followed.heard == [(THIRD, "a"), (FIRST, "a")]
    skipped = [one["config_map"] for one in logs if one["event"] == "a ConfigMap that cannot be read is skipped"]
    assert skipped == [str(FIRST), str(SECOND)]


async def test_where_all_are_hidden_or_absent_none_decides_and_nothing_waits(autojump_clock: MockClock) -> None:
    async with following(make_api(hidden=[SECOND])) as followed:
        await followed.until(lambda: followed.synced > 0)
        assert (followed.heard, followed.ranked.decides) == ([None], None)
        assert set(followed.ranked.hidden) == {SECOND}


async def test_none_decides_while_a_better_one_is_unknown(autojump_clock: MockClock) -> None:
    """A server that starts while a part of the API fails must not ask other upstreams than before."""
    api = make_api(FIRST, SECOND)
    api.faults[path_of(FIRST)] = failure(500, "Error")
    async with following(api) as followed:
        await trio.sleep(15)
        assert (followed.heard, followed.synced, followed.watched) == ([], 0, [str(FIRST)])
        api.faults.clear()
        await followed.until_heard(FIRST)


async def test_an_outage_changes_nothing(autojump_clock: MockClock) -> None:
    api = make_api(SECOND)
    async with following(api) as followed:
        await followed.until_heard(SECOND)
        api.crash()
        await trio.sleep(15)
        assert (followed.ranked.decides, followed.heard) == (SECOND, [(SECOND, "a")])
        api.recover()
        put(api, SECOND, "b")
        await followed.until_heard(SECOND, "b")


async def test_one_that_was_there_before_is_missed_only_if_two_lists_say_so(autojump_clock: MockClock) -> None:
    api = make_api()
    async with following(api, FIRST, expected=FIRST) as followed:
        await followed.until(lambda: followed.ranked.statuses[0].doubted)
        assert followed.heard == []
        await followed.until_heard(None)


async def test_one_that_is_named_twice_is_followed_once(autojump_clock: MockClock) -> None:
    api = make_api(SECOND)
    async with following(api, FIRST, FIRST, SECOND, FIRST) as followed:
        await followed.until_heard(SECOND)
        assert followed.ranked.refs == (FIRST, SECOND)
