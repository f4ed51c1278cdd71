"""Following a collection (listwatch.py, reading.py) through faults that a real API server cannot be made to have."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest
import structlog
import structlog.testing
import trio
import trio.testing
from trio.testing import MockClock

from sidecar.kubernetes.follower_status import FollowerState, FollowerStatus
from sidecar.kubernetes.listwatch import Changes, follow
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable
from sidecar.kubernetes.protocol import LineSplitter
from sidecar.kubernetes.selector import parse_annotation_selector
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace
from tests.kit.faulty_api import (
    CUT,
    SILENCE,
    Answer,
    FaultyApi,
    bookmark,
    client_in_memory,
    event,
    failure,
    names,
    page,
    status_object,
    thing,
    watch,
)

OBJECT_LINES = [
    ("object", "default/a", "1"),
    ("object", "default/a", "12"),
    ("object", "default/b", "13"),
    ("object deleted", "default/a", None),
]


class _Spec(msgspec.Struct):
    colour: str | None = None


class Thing(msgspec.Struct):
    metadata: ObjectMeta
    spec: _Spec | None = None


THINGS = Collection("Thing", "/apis/example.org/v1/things", Thing)
DISCOVERED = Collection("Thing", "/apis/example.org/v1/things", Thing, discovered=True)
OPTIONAL = Collection("Thing", "/apis/example.org/v1/things", Thing, optional=True)


@dataclass
class Seen:
    """What a follower told."""

    status: FollowerStatus = field(default_factory=FollowerStatus)
    objects: dict[str, Thing | Unreadable] = field(default_factory=dict)
    calls: list[set[str]] = field(default_factory=list)
    syncs: int = 0
    taken_out: list[str] = field(default_factory=list)
    news: trio.Event = field(default_factory=trio.Event)
    started: float = field(default_factory=trio.current_time)

    def change(self, changes: Changes[Thing]) -> None:
        self.calls.append(names(changes))
        for key, value in changes.items():
            if value is None:
                self.objects.pop(key, None)
                self.taken_out.append(key)
            else:
                self.objects[key] = value
        self.wake()

    def synced(self) -> None:
        self.syncs += 1
        self.wake()

    def wake(self) -> None:
        self.news.set()
        self.news = trio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            with trio.move_on_after(0.1):
                await self.news.wait()

    async def until_names(self, *expected: str) -> None:
        await self.until(lambda: self.names == set(expected))

    @property
    def elapsed(self) -> float:
        return trio.current_time() - self.started

    @property
    def names(self) -> set[str]:
        return names(self.objects)


@asynccontextmanager
async def following(
    api: FaultyApi, *, pace: Pace = DEFAULT_PACE, things: Collection[Thing] = THINGS, expected: int = 0
) -> AsyncIterator[Seen]:
    seen = Seen()
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:
        nursery.start_soon(
            lambda: follow(
                client,
                things,
                on_change=seen.change,
                on_synced=seen.synced,
                status=seen.status,
                expected=expected,
                pace=pace,
                draw=lambda: 0.0,
            )
        )
        yield seen
        nursery.cancel_scope.cancel()


async def test_tells_the_list_and_then_each_change(autojump_clock: MockClock) -> None:
    """A watch starts where the list ended, with bookmarks and an end."""
    changes = [event("ADDED", thing("b", "11")), event("MODIFIED", thing("a", "12", colour="red"))]
    api = FaultyApi([page(thing("a"))], [watch(*changes, event("DELETED", thing("b", "13")), SILENCE)])
    async with following(api) as seen:
        await seen.until(lambda: seen.taken_out == ["default/b"])
        assert seen.names == {"a"}
        (kept,) = seen.objects.values()
        assert isinstance(kept, Thing)
        assert kept.spec == _Spec("red")
        assert seen.syncs == 1
    assert dict(api.listed[0].params) == {"limit": "500"}
    assert dict(api.watched[0].params) == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "10",
        "timeoutSeconds": "45",
    }


async def test_joins_the_chunks_of_a_list(autojump_clock: MockClock) -> None:
    """The continue token goes back as it came, and the whole is one sync."""
    api = FaultyApi([page(thing("a"), token="x=/&"), page(thing("b"), token="y"), page(thing("c"))])
    async with following(api) as seen:
        await seen.until(lambda: seen.syncs == 1)
        assert seen.names == {"a", "b", "c"}
    assert [one.params.get("continue") for one in api.listed] == [None, "x=/&", "y"]


async def test_next_chunk_is_as_large_as_the_last_one_was_light(autojump_clock: MockClock) -> None:
    """The API server's time for a chunk hardly depends on what is in it."""
    chunks = [page(*[thing(f"{letter}{number}") for number in range(10)], token="x") for letter in "ab"]
    api = FaultyApi([*chunks, page()])
    async with following(api, pace=Pace(page_size=10, page_octets=5_000)) as seen:
        await seen.until(lambda: seen.syncs == 1)
        assert len(seen.names) == 20
    first, *others = [int(one.params["limit"]) for one in api.listed]
    assert first == 10
    assert all(30 < size < 70 for size in others)


async def test_chunk_that_is_too_large_is_requested_with_fewer_objects(autojump_clock: MockClock) -> None:
    """A tenant's large objects cost no more memory than others; one alone is always taken."""
    large = page(*[thing(f"a{number}") for number in range(10)], token="x")
    api = FaultyApi([large, large, page(thing("a0"), token="x"), page(thing("b"))])
    async with following(api, pace=Pace(page_size=640, most_octets=500)) as seen:
        await seen.until(lambda: seen.syncs == 1)
        assert seen.names == {"a0", "b"}
        assert not seen.status.errors
    assert [int(one.params["limit"]) for one in api.listed][:3] == [640, 80, 10]


async def test_object_that_is_larger_than_any_can_be_ends_a_list(autojump_clock: MockClock) -> None:
    huge = page(thing("a", note="x" * LineSplitter.LIMIT))
    api = FaultyApi([huge, page(thing("a"))], checks=[huge])
    async with following(api, pace=Pace(page_size=2)) as seen:
        await seen.until_names("a")
        assert seen.status.errors["oversized"] == 1


async def test_what_is_no_object_ends_a_list_and_what_came_before_it_counts(autojump_clock: MockClock) -> None:
    """Which of the others are there is not known then, so nothing is taken out, and the list begins anew."""
    whole = page(*[thing(f"a{number}") for number in range(30)])
    broken = page(*[thing(f"b{number}") for number in range(30)], None, thing("c"))
    api = FaultyApi([whole, broken, whole], [failure(410, "Gone"), watch(SILENCE)])
    async with following(api, pace=Pace(slice_size=10)) as seen:
        await seen.until(lambda: seen.status.errors["garbled"] == 1)
        assert len(seen.names) == 60
        await seen.until(lambda: seen.syncs == 2)
        assert seen.names == {f"a{number}" for number in range(30)}


@pytest.mark.parametrize("items", [None, []], ids=["null", "empty"])
async def test_list_without_items_is_a_sync(autojump_clock: MockClock, items: object) -> None:
    """Go writes an empty slice as null."""
    api = FaultyApi([page(items=items)])
    async with following(api) as seen:
        await seen.until(lambda: seen.syncs == 1)
        assert seen.status.synced
        assert not seen.objects


async def test_next_watch_starts_at_the_last_bookmark_or_event(autojump_clock: MockClock) -> None:
    """A watch that ended in order costs no list."""
    first = watch(event("ADDED", thing("b", "11")), 2.0, bookmark("20"), 2.0)
    second = watch(2.0, event("ADDED", thing("c", "21")), 2.0)
    api = FaultyApi([page(thing("a"))], [first, second, watch(SILENCE)])
    async with following(api) as seen:
        await seen.until(lambda: len(api.watched) == 3)
        assert seen.status.bookmarks == 1
        assert seen.status.state is FollowerState.WATCHING
    assert [one.params["resourceVersion"] for one in api.watched] == ["10", "20", "21"]
    assert len(api.listed) == 1


GONE = [failure(410, "Expired"), watch(event("ERROR", status_object(410, "Gone")))]
TOO_LARGE = watch(event("ERROR", status_object(504, "Timeout", "Too large resource version: 7, current: 3")))


@pytest.mark.parametrize("gone", [*GONE, TOO_LARGE], ids=["status", "event", "from-the-future"])
async def test_gone_lists_again_at_once_and_takes_nothing_out(autojump_clock: MockClock, gone: Answer) -> None:
    """410, however it comes, is a new list; unchanged objects are not told again."""
    api = FaultyApi([page(thing("a")), page(thing("a"), thing("b"), version="30")], [gone, watch(SILENCE)])
    async with following(api) as seen:
        await seen.until(lambda: len(api.watched) == 2)
        assert seen.calls == [{"a"}, {"b"}]
        assert seen.taken_out == []
    assert api.listed[1].time - api.listed[0].time == 0
    assert api.watched[1].params["resourceVersion"] == "30"


async def test_gone_again_and_again_backs_off(autojump_clock: MockClock) -> None:
    """A server that forgets at once is not asked without pause."""
    api = FaultyApi([page(thing("a"))], [failure(410, "Gone")])
    async with following(api) as seen:
        await seen.until(lambda: seen.elapsed > 29)
        assert seen.names == {"a"}
        assert seen.taken_out == []
    assert len(api.listed) <= 7


async def test_list_cut_between_chunks_takes_nothing_out(autojump_clock: MockClock) -> None:
    """410 on a continue token: the list begins anew, and what the cut one lacked is still there."""
    full = page(thing("a"), thing("b"), thing("c"))
    cut = [page(thing("c"), token="x"), failure(410, "Expired")]
    api = FaultyApi([full, *cut, page(thing("c"), thing("b"))], [failure(410, "Gone"), watch(SILENCE)])
    async with following(api) as seen:
        await seen.until(lambda: seen.syncs == 2)
        assert seen.names == {"b", "c"}
        assert seen.taken_out == ["default/a"]
    assert [one.params.get("continue") for one in api.listed] == [None, None, "x", None]


BODY = json.dumps({"metadata": {"resourceVersion": "10"}, "items": [thing("z")]}).encode()

TROUBLE = {
    "500": failure(500, "InternalError"),
    "503-html": Answer([b"<html><h1>503 no backend</h1></html>"], 503, {"content-type": "text/html"}),
    "200-html": Answer([b"<html>Please log in</html>"]),
    "302-to-a-login-page": Answer([], 302, {"location": "https://login.example.org/"}),
    "403": failure(403, "Forbidden"),
    "400": failure(400, "BadRequest"),
    "cut-json": Answer([BODY[:-7]]),
    "cut-connection": Answer([BODY[:30], CUT]),
    "cut-before-the-body": Answer([CUT]),
    "nested-to-death": Answer([b'{"metadata":{},"items":' + b"[" * 200_000]),
    "not-utf-8": Answer([BODY.replace(b'"z"', b'"\xff"')]),
    "no-metadata": Answer([b'{"items": []}']),
    "empty-body": Answer([]),
}


@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE.keys())
async def test_trouble_with_a_list_keeps_what_is_known(autojump_clock: MockClock, trouble: Answer) -> None:
    """Whatever comes instead of a list, it is asked for again, more and more slowly, and nothing is taken out."""
    lists = [page(thing("a")), *[trouble] * 3, page(thing("a"), thing("b"))]
    api = FaultyApi(lists, [failure(410, "Gone"), watch(SILENCE)])
    async with following(api) as seen:
        await seen.until(lambda: seen.status.state is FollowerState.RETRYING)
        assert seen.names == {"a"}
        assert seen.status.synced
        assert seen.status.describe().startswith("retrying: ")
        await seen.until_names("a", "b")
        assert seen.status.error is None
        assert seen.taken_out == []
        assert seen.status.errors.total() == 4
    waits = [later.time - sooner.time for sooner, later in zip(api.listed[1:], api.listed[2:], strict=False)]
    assert waits == pytest.approx([2, 4, 8], abs=0.01)


WATCH_TROUBLE = {key: TROUBLE[key] for key in ("500", "503-html", "403", "cut-before-the-body")} | {
    "cut-line": watch(event("ADDED", thing("b", "11"))[:-9]),
    "cut-connection": watch(event("ADDED", thing("b", "11"))[:-9], CUT),
    "error-event": watch(event("ERROR", status_object(500, "InternalError"))),
}


@pytest.mark.parametrize("trouble", WATCH_TROUBLE.values(), ids=WATCH_TROUBLE.keys())
async def test_trouble_with_a_watch_goes_on_from_the_last_version(autojump_clock: MockClock, trouble: Answer) -> None:
    """No new list, nothing lost, half an event never told."""
    api = FaultyApi([page(thing("a"))], [trouble, watch(event("ADDED", thing("b", "11")), SILENCE)])
    async with following(api) as seen:
        await seen.until_names("a", "b")
        assert seen.taken_out == []
    assert [one.params["resourceVersion"] for one in api.watched] == ["10", "10"]
    assert api.watched[1].time - api.watched[0].time >= 1
    assert len(api.listed) == 1


async def test_garbage_in_a_watch_is_answered_with_a_list(autojump_clock: MockClock) -> None:
    """The same version would bring the same garbage."""
    api = FaultyApi([page(thing("a")), page(thing("b"), version="20")], [watch(b"<html>\n", SILENCE), watch(SILENCE)])
    async with following(api) as seen:
        await seen.until_names("b")
        assert seen.status.errors["garbled"] == 1


async def test_watch_that_always_ends_at_once_backs_off(autojump_clock: MockClock) -> None:
    """Without a pause this would take all of a core, here and at the server."""
    api = FaultyApi([page(thing("a"))], [watch()])
    async with following(api) as seen:
        await seen.until(lambda: seen.elapsed > 50)
        assert seen.status.state is FollowerState.RETRYING
        assert "at once" in seen.status.describe()
    waits = [later.time - sooner.time for sooner, later in zip(api.watched, api.watched[1:], strict=False)]
    assert waits == pytest.approx([1, 2, 4, 8, 15, 15], abs=0.2)


async def test_silence_is_noticed_within_a_minute(autojump_clock: MockClock) -> None:
    """A connection that died without a FIN looks like a quiet cluster, except that the server should end the watch."""
    api = FaultyApi([page(thing("a"))], [watch(event("ADDED", thing("b", "11")), SILENCE)])
    async with following(api) as seen:
        await seen.until(lambda: seen.status.state is FollowerState.RETRYING)
        assert trio.current_time() - api.watched[0].time < 60
        assert seen.status.errors["timeout"] == 1
        assert seen.names == {"a", "b"}
        age = seen.status.age(trio.current_time())
        assert age is not None
        assert 50 < age < 60


async def test_dripping_is_no_sign_of_life(autojump_clock: MockClock) -> None:
    """A watch that sends spaces for ever ends when it should."""
    api = FaultyApi([page()], [watch(*(b" ", 1.0) * 100)])
    async with following(api) as seen:
        await seen.until(lambda: seen.status.errors["timeout"] == 1)
        assert trio.current_time() - api.watched[0].time < 60


async def test_silent_list_is_given_up(autojump_clock: MockClock) -> None:
    """The same for a list."""
    api = FaultyApi([Answer([BODY[:20], SILENCE]), page(thing("a"))])
    async with following(api, pace=Pace(list_timeout=20)) as seen:
        await seen.until_names("a")
        assert seen.status.errors["timeout"] == 1


@pytest.mark.parametrize("where", ["header", "body"])
async def test_retry_after_is_obeyed(autojump_clock: MockClock, where: str) -> None:
    """Where it is longer than our own pause; in the header, or in the Status alone."""
    busy = failure(429, "TooManyRequests", retry_after="17")
    if where == "body":
        busy = Answer([json.dumps(status_object(429, "x") | {"details": {"retryAfterSeconds": 17}}).encode()], 429)
    api = FaultyApi([busy, page(thing("a"))])
    async with following(api) as seen:
        await seen.until_names("a")
        assert seen.status.errors["too-many-requests"] == 1
    assert api.listed[1].time - api.listed[0].time == pytest.approx(17, abs=0.01)


async def test_list_that_lost_everything_is_confirmed_by_a_second(autojump_clock: MockClock) -> None:
    """Empty lists have come from servers that were starting; two in a row are believed."""
    api = FaultyApi([page(thing("a"), thing("b")), page(), page()], [failure(410, "Gone"), watch(SILENCE)])
    async with following(api) as seen:
        await seen.until(lambda: seen.status.doubted)
        assert seen.names == {"a", "b"}
        await seen.until(lambda: seen.syncs == 2)
        assert not seen.objects
        assert not seen.status.doubted
    assert api.listed[2].time - api.listed[1].time == pytest.approx(DEFAULT_PACE.confirm, abs=0.01)


async def test_first_list_without_what_an_earlier_run_knew_is_confirmed_by_a_second(autojump_clock: MockClock) -> None:
    """And then believed: the next list is judged by what there is."""
    api = FaultyApi([page(), page(), page()], [failure(410, "Gone"), watch(SILENCE)])
    async with following(api, expected=3) as seen:
        await seen.until(lambda: seen.status.doubted)
        assert seen.syncs == 0
        await seen.until(lambda: seen.syncs == 2)
        assert not seen.status.doubted
    assert api.listed[1].time - api.listed[0].time == pytest.approx(DEFAULT_PACE.confirm, abs=0.01)
    assert api.listed[2].time - api.listed[1].time == pytest.approx(0, abs=0.01)


async def test_kind_that_is_gone_since_an_earlier_run_is_confirmed_by_a_second_look(autojump_clock: MockClock) -> None:
    """A discovery that failed for a moment says the same."""
    api = FaultyApi([failure(404, "NotFound"), page(thing("a"))])
    async with following(api, expected=1) as seen:
        await seen.until(lambda: seen.status.synced)
        assert seen.names == {"a"}


@pytest.mark.parametrize("left", [0, 2])
async def test_list_that_lost_nearly_everything_for_a_moment_changes_nothing(
    autojump_clock: MockClock, left: int
) -> None:
    """The second list has it all again."""
    full = page(*[thing(f"a{number}") for number in range(50)])
    few = page(*[thing(f"a{number}") for number in range(left)])
    api = FaultyApi([full, few, full], [failure(410, "Gone"), watch(SILENCE)])
    async with following(api) as seen:
        await seen.until(lambda: seen.syncs == 2)
        assert len(seen.objects) == 50
        assert seen.taken_out == []


async def test_deletions_told_by_events_are_believed(autojump_clock: MockClock) -> None:
    """One event per object is no accident."""
    deleted = [event("DELETED", thing(name, "11")) for name in "ab"]
    api = FaultyApi([page(thing("a"), thing("b"))], [watch(*deleted, SILENCE)])
    async with following(api) as seen:
        await seen.until_names()


async def test_kind_that_is_not_there_is_an_empty_one_until_it_comes(autojump_clock: MockClock) -> None:
    """A CustomResourceDefinition may come later; what waits for the sync need not wait for it."""
    api = FaultyApi([failure(404, "NotFound"), failure(404, "NotFound"), page(thing("a"))])
    async with following(api) as seen:
        await seen.until(lambda: seen.status.synced)
        assert seen.status.absent
        await seen.until_names("a")
        assert not seen.status.absent


async def test_kind_that_goes_away_is_confirmed_before_it_counts(autojump_clock: MockClock) -> None:
    """A server that is starting may not know its custom kinds yet."""
    missing = failure(404, "NotFound")
    back = FaultyApi([page(thing("a")), missing, page(thing("a"))], [missing, watch(SILENCE)])
    async with following(back) as seen:
        await seen.until(lambda: seen.syncs == 2)
        assert seen.taken_out == []
    gone = FaultyApi([page(thing("a")), missing], [missing])
    async with following(gone) as seen:
        await seen.until_names()


async def test_kind_that_is_discovered_stays_as_it_was_while_it_is_not_found(autojump_clock: MockClock) -> None:
    """Whoever asks which kinds there are decides; 404 may only mean that this version of it has ended."""
    missing = failure(404, "NotFound")
    gone = FaultyApi([page(thing("a")), *[missing] * 4, page(thing("b"))], [missing, watch(SILENCE)])
    async with following(gone, things=DISCOVERED) as seen:
        await seen.until(lambda: seen.status.errors["not-found"] == 4)
        assert seen.names == {"a"}
        assert seen.status.absent
        await seen.until_names("b")
    never = FaultyApi([missing])
    async with following(never, things=DISCOVERED) as seen:
        await seen.until(lambda: seen.status.errors["not-found"] == 3)
        assert not seen.status.synced


async def test_optional_kind_that_we_may_not_see_is_an_empty_one(autojump_clock: MockClock) -> None:
    """What is refused from the start holds up nobody; what is refused later is kept."""
    forbidden = failure(403, "Forbidden")
    at_first = FaultyApi([forbidden, page(thing("a"))])
    async with following(at_first, things=OPTIONAL) as seen:
        await seen.until(lambda: seen.status.synced)
        assert seen.status.absent
        await seen.until_names("a")
    later = FaultyApi([page(thing("a")), forbidden], [failure(410, "Gone")])
    async with following(later, things=OPTIONAL) as seen:
        await seen.until(lambda: seen.status.errors["forbidden"] == 4)
        assert seen.names == {"a"}


async def test_one_bad_object_harms_no_other(autojump_clock: MockClock) -> None:
    """It is told as unreadable, with its name and the reason, by list and by event."""
    bad, worse = thing("bad", colour=5), thing("worse", "12", colour=[])
    api = FaultyApi([page(thing("a"), bad, thing("b"))], [watch(event("ADDED", worse), SILENCE)])
    async with following(api) as seen:
        await seen.until_names("a", "b", "bad", "worse")
        unreadable = seen.objects["default/bad"]
        assert isinstance(unreadable, Unreadable)
        assert "colour" in unreadable.reason
        assert isinstance(seen.objects["default/worse"], Unreadable)
        assert seen.status.unreadable == 2


async def test_unknown_event_type_is_passed_over(autojump_clock: MockClock) -> None:
    """A later Kubernetes may have more of them."""
    strange = event("FROBNICATED", thing("x"))
    api = FaultyApi([page()], [watch(strange, event("ADDED", thing("a", "11")), SILENCE)])
    async with following(api) as seen:
        await seen.until_names("a")


async def test_changes_that_arrive_together_are_told_together(autojump_clock: MockClock) -> None:
    """One call for what one read brought, also where a line is cut by the framing."""
    lines = b"".join(event("ADDED", thing(f"a{number}", str(11 + number))) for number in range(20))
    api = FaultyApi([page()], [watch(lines[:333], lines[333:], SILENCE)])
    async with following(api) as seen:
        await seen.until(lambda: len(seen.objects) == 20)
        assert len(seen.calls) <= 2


async def test_long_list_lets_other_tasks_run(autojump_clock: MockClock) -> None:
    """It is told in slices, and between two of them everybody has a turn."""
    turns: list[int] = []
    api = FaultyApi([page(*[thing(f"a{number}") for number in range(500)])])

    async def other(seen: Seen) -> None:
        while True:
            turns.append(len(seen.objects))
            await trio.lowlevel.checkpoint()

    async with following(api, pace=Pace(slice_size=100)) as seen, trio.open_nursery() as nursery:
        nursery.start_soon(other, seen)
        await seen.until(lambda: seen.syncs == 1)
        nursery.cancel_scope.cancel()
    assert [len(call) for call in seen.calls] == [100] * 5
    # The order of turns is random in trio, so one of the four may be passed over.
    assert len({100, 200, 300, 400} & set(turns)) >= 2


async def test_a_version_that_went_back_after_a_lost_connection_is_a_list(autojump_clock: MockClock) -> None:
    """A restored server accepts the watch from its future, and sends nothing."""
    lists = [page(thing("a"), thing("b", "95"), version="100"), page(thing("c", "80"), thing("b", "95"), version="90")]
    api = FaultyApi(lists, [watch(2.0, CUT), watch(SILENCE)], checks=[page(thing("c", "80"), version="90", token="x")])
    with structlog.testing.capture_logs() as logs:
        async with following(api) as seen:
            await seen.until(lambda: seen.syncs == 2)
            assert seen.names == {"b", "c"}
            assert seen.status.errors["restored"] == 1
            # Its version is the same, but it may be another b.
            assert seen.calls[1] == {"b", "c"}
            await seen.until(lambda: len(api.watched) == 2)
    assert [one.params["resourceVersion"] for one in api.watched] == ["100", "90"]
    assert [dict(one.params) for one in api.checked] == [{"limit": "1"}] * 2
    assert api.checked[1].time - api.checked[0].time == pytest.approx(30 - 2 - 1, abs=3)
    restored = [line for line in logs if "restored" in line["event"]]
    assert [(line["seen"], line["now"], line["log_level"]) for line in restored] == [("100", "90", "warning")]


async def test_a_lost_connection_costs_one_small_request_and_no_list(autojump_clock: MockClock) -> None:
    """And a watch that is well costs none, however often the server ends it in time."""
    quiet = watch(5.0)
    api = FaultyApi([page(thing("a"))], [*[quiet] * 3, watch(2.0, CUT), quiet, quiet, watch(SILENCE)])
    async with following(api, pace=Pace(watch_timeout=5)) as seen:
        await seen.until(lambda: len(api.watched) == 4)
        assert api.checked == []
        await seen.until(lambda: len(api.watched) == 7)
    assert (len(api.listed), len(api.checked)) == (1, 1)


async def test_a_version_that_only_one_look_finds_too_early_changes_nothing(autojump_clock: MockClock) -> None:
    """A replica that lags, or a proxy that cached."""
    api = FaultyApi(
        [page(thing("a"), version="100")],
        [watch(2.0, CUT), watch(SILENCE)],
        checks=[page(version="99"), page(version="101")],
    )
    async with following(api) as seen:
        await seen.until(lambda: len(api.watched) == 2)
        assert seen.syncs == 1
    assert [one.params["resourceVersion"] for one in api.watched] == ["100", "100"]


@pytest.mark.parametrize("current", ["", "w-99", "099"], ids=["none", "opaque", "leading zero"])
async def test_a_version_that_is_no_decimal_number_is_not_compared(autojump_clock: MockClock, current: str) -> None:
    api = FaultyApi([page(version="100")], [watch(2.0, CUT), watch(SILENCE)], checks=[page(version=current)])
    async with following(api) as seen:
        await seen.until(lambda: len(api.watched) == 2)
        assert (seen.syncs, len(api.checked)) == (1, 1)


async def test_a_check_that_fails_is_made_again_and_keeps_what_is_known(autojump_clock: MockClock) -> None:
    api = FaultyApi(
        [page(thing("a"), version="100")],
        [watch(2.0, CUT), watch(event("ADDED", thing("b", "101")), SILENCE)],
        checks=[*[failure(503, "ServiceUnavailable")] * 2, page(version="100")],
    )
    async with following(api) as seen:
        await seen.until_names("a", "b")
        assert seen.taken_out == []
        assert seen.status.errors["server-trouble"] == 3
    waits = [later.time - sooner.time for sooner, later in zip(api.checked, api.checked[1:], strict=False)]
    assert waits == pytest.approx([2, 4], abs=0.01)


async def test_a_list_that_went_back_reports_its_objects_again_whatever_caused_it(autojump_clock: MockClock) -> None:
    """Some servers answer a version of the future with an error."""
    lists = [page(thing("a", "95"), version="100"), page(thing("a", "95"), version="96")]
    api = FaultyApi(lists, [TOO_LARGE, watch(SILENCE)])
    async with following(api) as seen:
        await seen.until(lambda: seen.syncs == 2)
        assert seen.calls == [{"a"}, {"a"}]


async def test_a_restored_state_is_logged_once_however_often_its_list_fails(autojump_clock: MockClock) -> None:
    """An API server that has just started often cuts long lists."""
    cut = [page(thing("c", "80"), version="90", token="x"), failure(503, "ServiceUnavailable")]
    lists = [page(thing("a"), thing("b", "80"), version="100"), *cut * 3, page(thing("b", "80"), version="90")]
    api = FaultyApi(lists, [failure(410, "Gone"), watch(SILENCE)])
    with structlog.testing.capture_logs() as logs:
        async with following(api) as seen:
            await seen.until(lambda: seen.syncs == 2)
            assert seen.names == {"b"}
            assert {"b"} in seen.calls[1:]
            assert seen.status.errors["restored"] == 1
    assert sum("restored" in line["event"] for line in logs) == 1


async def test_many_deletions_that_a_list_implies_are_told_in_slices(autojump_clock: MockClock) -> None:
    api = FaultyApi([page(*[thing(f"a{number}") for number in range(25)]), page(), page()], [failure(410, "Gone")])
    async with following(api, pace=Pace(slice_size=10)) as seen:
        await seen.until(lambda: seen.syncs == 2)
        assert not seen.objects
        assert [len(call) for call in seen.calls] == [10, 10, 5, 10, 10, 5]


async def test_server_that_is_down_at_the_start_is_waited_for(autojump_clock: MockClock) -> None:
    """Never more than one try in a second."""
    api = FaultyApi([page(thing("a"))], down=True)
    async with following(api) as seen:
        await seen.until(lambda: seen.status.errors["server-trouble"] >= 4)
        assert not seen.status.synced
        assert seen.status.contact is None
        assert "refused" in seen.status.describe()
        assert trio.current_time() > 1
        api.down = False
        await seen.until_names("a")


async def test_trouble_is_logged_once_and_so_is_its_end(autojump_clock: MockClock) -> None:
    """Not for each try: an outage of a night is two lines."""
    api = FaultyApi([page(thing("a"))], [*[failure(500, "InternalError")] * 4, watch(5.0), watch(SILENCE)])
    with structlog.testing.capture_logs() as logs:
        async with following(api) as seen:
            await seen.until(lambda: len(api.watched) == 6)
    told = [line for line in logs if line["log_level"] != "debug"]
    assert [line["event"] for line in told] == ["synced", "retrying", "recovered"]
    assert told[1]["cause"] == "server-trouble"


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
async def test_each_object_is_a_line_at_the_level_debug_alone(autojump_clock: MockClock, level: int) -> None:
    changes = [event("MODIFIED", thing("a", "12", colour="red")), event("MODIFIED", thing("b", "13", colour=7))]
    api = FaultyApi([page(thing("a"))], [watch(*changes, event("DELETED", thing("a", "14")), SILENCE)])
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(level))
    with structlog.testing.capture_logs() as logs:
        async with following(api) as seen:
            await seen.until(lambda: seen.taken_out == ["default/a"])
    told = [(one["event"], one["object"], one["version"]) for one in logs if one["log_level"] == "debug"]
    assert told == (OBJECT_LINES if level == logging.DEBUG else [])


async def test_list_is_read_again_now_and_then(autojump_clock: MockClock) -> None:
    """Insurance against what a watch never showed."""
    api = FaultyApi([page(thing("a")), page(thing("b"))], [watch(5.0)])
    async with following(api, pace=Pace(relist=12)) as seen:
        await seen.until_names("b")
    assert len(api.watched) == 3


async def test_fault_of_the_receiver_ends_the_follower(autojump_clock: MockClock) -> None:
    """It is a bug, and bugs are not retried."""

    def fail(_: Changes[Thing]) -> None:
        raise ZeroDivisionError

    api = FaultyApi([page(thing("a"))])
    with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
        async with client_in_memory(api) as client:
            await follow(client, THINGS, on_change=fail)


async def test_label_selector_goes_with_lists_and_watches(autojump_clock: MockClock) -> None:
    """Whoever follows a part of a collection says so to the server."""
    api = FaultyApi([page()])
    chosen = Collection("Thing", THINGS.path, Thing, label_selector="app=web")
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:
        nursery.start_soon(lambda: follow(client, chosen, on_change=lambda _: None))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [one.params["labelSelector"] for one in api.asked] == ["app=web"] * 2


async def test_objects_that_the_selector_leaves_out_come_and_go(autojump_clock: MockClock) -> None:
    def annotated(name: str, version: str, **annotations: str) -> dict[str, Any]:
        item = thing(name, version)
        item["metadata"]["annotations"] = annotations
        return item

    selected = replace(THINGS, annotation_selector=parse_annotation_selector("team=web"), label_selector="a=b")
    api = FaultyApi(
        [page(annotated("a", "1", team="web"), annotated("b", "2"))],
        [
            watch(
                event("MODIFIED", annotated("b", "11", team="web")),
                1.0,
                event("MODIFIED", annotated("a", "12", team="api")),
                event("ADDED", annotated("c", "13")),
                1.0,
                event("MODIFIED", annotated("a", "14", team="web")),
                SILENCE,
            )
        ],
    )
    async with following(api, things=selected) as seen:
        await seen.until(lambda: seen.syncs == 1)
        assert (seen.names, seen.status.objects) == ({"a"}, 1)
        await seen.until_names("a", "b")
        await seen.until_names("b")
        assert (seen.taken_out, seen.status.objects) == (["default/a"], 1)
        await seen.until_names("a", "b")
    assert {one.params.get("labelSelector") for one in api.asked} == {"a=b"}
    assert api.watched
