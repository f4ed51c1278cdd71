"""The route of a counted document: when names are counted anew, when only what is new is added, and when neither."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final

import trio
from trio.testing import MockClock

from dnsproxy.admin.counted_route import CountedRoute
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import Verdict
from sidecar.admin.answers import Answer

PATH: Final = "/counted"
NOBODY: Final = Verdict(None, (), ())


class Tape:
    """Something that is counted, and notes what was asked of it."""

    def __init__(self, *, adds: bool = True, steps: int = 1) -> None:
        self.asked: list[str] = []
        self.adds = adds
        self.steps = steps

    def add_fresh(self) -> Generator[None, None, bool]:
        self.asked.append("add")
        yield
        return self.adds

    def count(self) -> Generator[None, None, None]:
        self.asked.append("count")
        for _ in range(self.steps):
            yield


class Played:
    def __init__(self, counted: Tape) -> None:
        self.counted = counted
        self.registry = Registry(targets=Targets(), guards=Guards())
        self.waiting: list[str] = []
        self.beside = 0
        self.written = 0
        route = CountedRoute(
            PATH,
            self.registry,
            counted,
            write=self._write,
            waiting_for=lambda: tuple(self.waiting),
            beside=lambda: self.beside,
        )
        self._show = route.routes()[PATH]

    def _write(self, waiting_for: Sequence[str]) -> tuple[bytes, str]:
        self.written += 1
        return ",".join(waiting_for).encode(), str(self.written)

    def change(self) -> None:
        self.registry.outcomes.note(("app.example.org", Reach.NAME), NOBODY)

    async def ask(self) -> Answer:
        answer = self._show({})
        assert not isinstance(answer, Answer)
        return await answer


async def test_the_document_stays_while_no_name_is_judged(autojump_clock: MockClock) -> None:
    played = Played(Tape())
    first = await played.ask()
    await trio.sleep(10)
    assert (await played.ask()).headers == first.headers == {"ETag": '"1"'}
    assert (played.counted.asked, played.written) == (["count"], 1)


async def test_what_is_new_is_added_at_once_and_all_is_counted_after_a_rest(autojump_clock: MockClock) -> None:
    played = Played(Tape())
    await played.ask()
    for _ in range(2):
        played.change()
        await played.ask()
        await played.ask()
    assert played.counted.asked == ["count", "add", "add"]
    await trio.sleep(6)
    await played.ask()
    await played.ask()
    assert played.counted.asked == ["count", "add", "add", "count"]


async def test_too_many_new_names_are_counted_at_once(autojump_clock: MockClock) -> None:
    played = Played(Tape(adds=False))
    await played.ask()
    await trio.sleep(1)
    played.change()
    await played.ask()
    assert played.counted.asked == ["count", "add", "count"]


async def test_counting_takes_at_most_half_of_the_time_and_loses_nothing(autojump_clock: MockClock) -> None:
    played = Played(Tape(adds=False, steps=20_000))
    await played.ask()
    played.change()
    await played.ask()
    assert played.counted.asked == ["count", "add"]
    await trio.sleep(4)
    await played.ask()
    assert played.counted.asked == ["count", "add", "add", "count"]


async def test_requests_at_once_are_answered_by_one_count(autojump_clock: MockClock) -> None:
    played = Played(Tape(steps=10_000))
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(played.ask)
    assert (played.counted.asked, played.written) == (["count"], 1)


async def test_what_is_waited_for_is_read_before_the_count(autojump_clock: MockClock) -> None:
    """A source that reports while names are counted may have names that this count did not see."""
    played = Played(Tape(steps=200_000))
    played.waiting = ["Ingress"]

    async def report() -> None:
        played.waiting = []

    async with trio.open_nursery() as nursery:
        nursery.start_soon(report)
        first = await played.ask()
    assert first.body in {b"Ingress", b""}
    assert (await played.ask()).body == b""


async def test_what_is_beside_the_count_makes_another_document_without_a_count(autojump_clock: MockClock) -> None:
    played = Played(Tape())
    first = await played.ask()
    played.beside = 1
    assert (await played.ask()).headers != first.headers
    await played.ask()
    assert (played.counted.asked, played.written) == (["count"], 2)
