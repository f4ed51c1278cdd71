"""Listeners of ended connections: bounded queues, and nothing to do without a listener."""

from __future__ import annotations

import trio
import trio.testing

from proxy.tap.ended import Ended, Ending, Outcome
from proxy.tap.filters import TapFilter
from proxy.tap.tap import CHUNK, QUEUE, Tap
from tests.proxy.tap.test_ended import event


async def test_each_listener_gets_what_it_wants_in_order() -> None:
    tap = Tap()
    every, resets = tap.subscribe(), tap.subscribe(TapFilter(ends=(Ending.CLIENT_RESET,)))
    events = [event(port=1), event(Outcome(Ending.CLIENT_RESET), port=2), event(port=3)]
    for one in events:
        tap.note(one)
    assert await every.receive() == (events, 0)
    assert await resets.receive() == ([events[1]], 0)


async def test_a_listener_waits_and_a_cancelled_wait_loses_nothing() -> None:
    tap = Tap()
    subscription = tap.subscribe()
    with trio.CancelScope() as scope:
        scope.cancel()
        await subscription.receive()
    received: list[tuple[list[Ended], int]] = []

    async def receive() -> None:
        received.append(await subscription.receive())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await trio.testing.wait_all_tasks_blocked()
        tap.note(event())
    assert received == [([event()], 0)]


async def test_a_full_queue_drops_what_comes_later_and_counts_it() -> None:
    tap = Tap()
    lost: list[int] = []
    subscription = tap.subscribe(on_drop=lost.append)
    for number in range(QUEUE + 3):
        tap.note(event(port=number))
    tap.note_dropped(4)
    events, dropped = await subscription.receive()
    assert (len(events), dropped, sum(lost)) == (CHUNK, 7, 7)
    ports = [one.port for one in events]
    while not subscription.is_empty:
        events, dropped = subscription.take()
        assert dropped == 0
        ports += [one.port for one in events]
    assert ports == list(range(QUEUE))


def test_the_tap_listens_while_a_listener_is_open() -> None:
    tap = Tap()
    changed = tap.changed
    first, second = tap.subscribe(), tap.subscribe()
    assert tap.listening
    assert changed.is_set()
    first.close()
    assert tap.listening
    second.close()
    second.close()
    assert not tap.listening
    tap.note(event())
    assert first.is_empty
    first.open()
    first.open()
    tap.note(event())
    assert first.take() == ([event()], 0)
