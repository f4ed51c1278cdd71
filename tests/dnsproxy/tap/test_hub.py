from typing import Any

import pytest
import trio

from dnsproxy.tap.filters import TapFilter
from dnsproxy.tap.hub import QUEUE, Subscription, Tap
from dnsproxy.tap.seen import Exchange, Outcome, Seen
from tests.kit.messages import query

ASKED = query("app.example.org")
CLIENT = (None, ("192.0.2.7", 5353))


class Port:
    """A port whose batch is one query, many times."""

    def message(self, position: int) -> bytes:
        return query(f"n{position}.example.org")

    def sender(self, position: int) -> Any:
        return ("192.0.2.7", 5000 + position), (), "key"

    def host(self, sender: Any) -> str:
        return str(sender[0][0])

    def source_port(self, sender: Any) -> int:
        return int(sender[0][1])


def note(tap: Tap, *, message: bytes = ASKED, outcome: Outcome = Outcome.TABLE) -> None:
    tap.note(CLIENT, message, message, outcome, seconds=0.001)


async def take(subscription: Subscription, count: int) -> list[Seen]:
    found: list[Seen] = []
    while len(found) < count:
        found += await subscription.receive(lambda seen: seen)
    return found


async def test_a_listener_gets_what_is_noted_while_it_listens() -> None:
    tap = Tap(lambda name: f"row of {len(name)}")
    note(tap)
    with tap.subscribe() as listener:
        note(tap)
        (seen,) = await take(listener, 1)
    assert not tap.listening
    assert (seen.client, seen.port, seen.datagram, seen.query, seen.outcome) == (
        "192.0.2.7",
        5353,
        False,
        ASKED,
        Outcome.TABLE,
    )
    assert seen.rule == "row of 17"


async def test_a_listener_that_waits_gets_a_query_at_once() -> None:
    tap = Tap()
    with tap.subscribe() as listener:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take, listener, 2)
            await trio.testing.wait_all_tasks_blocked()
            note(tap)
            await trio.testing.wait_all_tasks_blocked()
            note(tap)


async def test_each_listener_has_its_own_filter() -> None:
    tap = Tap()
    with tap.subscribe(TapFilter(outcomes=("failed",))) as failed, tap.subscribe(TapFilter(types=(1,))) as addresses:
        note(tap, outcome=Outcome.FAILED)
        note(tap, outcome=Outcome.TABLE)
        note(tap, message=query("app.example.org", 28), outcome=Outcome.FAILED)
        assert [one.outcome for one in await take(failed, 2)] == [Outcome.FAILED] * 2
        assert [one.outcome for one in await take(addresses, 2)] == [Outcome.FAILED, Outcome.TABLE]


async def test_a_filter_of_clients_is_applied_when_a_query_is_shown() -> None:
    tap = Tap()
    with tap.subscribe(TapFilter(clients=("198.51.100.0/24",))) as listener:
        note(tap)
        tap.note((None, ("198.51.100.1", 9)), ASKED, b"", Outcome.DROPPED, seconds=0)
        (seen,) = await take(listener, 1)
    assert seen.client == "198.51.100.1"


async def test_a_listener_that_reads_nothing_keeps_one_bounded_queue_and_its_drops_are_counted() -> None:
    tap = Tap()
    with tap.subscribe() as slow, tap.subscribe() as other:
        for _ in range(QUEUE + 10):
            note(tap)
        assert slow.take_dropped() == other.take_dropped() == 10
        assert slow.take_dropped() == 0
        assert len(await take(slow, QUEUE)) == QUEUE
        note(tap)
        assert len(await take(slow, 1)) == 1
        assert other.take_dropped() == 1


async def test_what_waits_is_counted_until_it_is_received() -> None:
    tap = Tap()
    with tap.subscribe() as subscription:
        assert subscription.waiting == 0
        note(tap)
        note(tap)
        assert subscription.waiting == 2
        await take(subscription, 2)
        assert subscription.waiting == 0


async def test_large_replies_fill_the_queue_sooner() -> None:
    tap = Tap()
    with tap.subscribe() as listener:
        for _ in range(QUEUE):
            tap.note(CLIENT, ASKED, bytes(65_535), Outcome.UPSTREAM, seconds=0)
        dropped = listener.take_dropped()
        assert dropped > QUEUE - 200
        assert len(await take(listener, QUEUE - dropped)) == QUEUE - dropped
        note(tap)
        assert listener.take_dropped() == 0


@pytest.mark.parametrize(
    ("wanted", "shown", "dropped"),
    [
        pytest.param(TapFilter(), [0, 2, 3], 0, id="everything that was answered"),
        pytest.param(TapFilter(names=("n3.example.org",)), [3], 0, id="one name"),
        pytest.param(TapFilter(outcomes=("failed",)), [2], 0, id="one outcome"),
    ],
)
async def test_a_batch_shows_the_queries_that_were_answered(wanted: TapFilter, shown: list[int], dropped: int) -> None:
    tap = Tap()
    replies = [b"\x84\x00", None, b"\x80\x02", b"\x84\x00"]
    with tap.subscribe(wanted) as listener:
        tap.note_batch(Port(), replies, seconds=0.002)  # type: ignore[arg-type]
        found = await take(listener, len(shown))
        assert listener.take_dropped() == dropped
    assert [one.port - 5000 for one in found] == shown
    assert all(one.datagram and one.reply[:2] == one.query[:2] for one in found)
    assert {one.outcome for one in found} <= {Outcome.TABLE, Outcome.FAILED}


async def test_a_full_queue_drops_the_rest_of_a_batch_and_counts_only_answered_queries() -> None:
    tap = Tap()
    with tap.subscribe() as listener:
        for _ in range(QUEUE - 1):
            note(tap)
        tap.note_batch(Port(), [b"\x84\x00", None, b"\x84\x00", b"\x84\x00"], seconds=0)  # type: ignore[arg-type]
        assert listener.take_dropped() == 2


async def test_what_workers_saw_is_filtered_again_and_their_drops_are_counted() -> None:
    tap = Tap()
    seen = Seen(1.0, 0.1, True, "192.0.2.7", 1, ASKED, ASKED, Outcome.TABLE, "app.example.org")
    with tap.subscribe(TapFilter(types=(28,))) as other, tap.subscribe(TapFilter(types=(1,))) as listener:
        tap.distribute([seen], dropped=3)
        assert await take(listener, 1) == [seen]
        assert (listener.take_dropped(), other.take_dropped()) == (3, 3)


async def test_listeners_rest_after_their_work(autojump_clock: trio.testing.MockClock) -> None:
    """Together they have a tenth of the time, so the next turn waits for what the last one took."""
    tap = Tap()
    begun = autojump_clock.current_time()
    tap.spend(0.05)
    with tap.subscribe() as listener:
        note(tap)
        assert len(await take(listener, 1)) == 1
    assert autojump_clock.current_time() == pytest.approx(begun + 0.5)


def test_the_filters_of_all_listeners_are_known_while_they_listen() -> None:
    tap = Tap()
    changes: list[tuple[TapFilter, ...]] = []
    tap.on_change = lambda: changes.append(tap.wanted)
    with tap.subscribe(TapFilter(types=(1,))), tap.subscribe(TapFilter(types=(1,))):
        pass
    assert changes == [(TapFilter(types=(1,)),)] * 3 + [()]


def test_an_exchange_that_was_shared_has_no_octets() -> None:
    assert Exchange("192.0.2.53:53", True, 0.1).query == b""
