"""The poller on real sockets: which handlers it calls, how often, and what it does not do."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pytest
import trio
import trio.testing

from sidecar.loop.poller import BROKEN, READABLE, WRITABLE, Handler, Poller


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


@pytest.fixture
def poller() -> Iterator[Poller]:
    with Poller() as made:
        yield made


def drain(sock: socket.socket, seen: list[bytes]) -> Handler:
    def handler(_events: int) -> None:
        while True:
            try:
                seen.append(sock.recv(1))
            except BlockingIOError:
                return

    return handler


def note(seen: list[int]) -> Callable[[int], None]:
    return seen.append


def test_what_is_ready_before_it_is_added_is_reported(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    theirs.send(b"a")
    seen: list[int] = []
    poller.add(ours.fileno(), note(seen))
    poller.dispatch()
    assert [events & READABLE != 0 for events in seen] == [True]


def test_an_edge_is_reported_once_until_new_octets_come(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    seen: list[int] = []
    poller.add(ours.fileno(), note(seen))
    theirs.send(b"a")
    poller.dispatch()
    poller.dispatch()
    assert len(seen) == 1
    theirs.send(b"b")
    poller.dispatch()
    assert len(seen) == 2


def test_a_level_is_reported_until_the_octets_are_taken(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    seen: list[int] = []
    poller.add(ours.fileno(), note(seen), edge=False)
    theirs.send(b"a")
    poller.dispatch()
    poller.dispatch()
    ours.recv(1)
    poller.dispatch()
    assert len(seen) == 2


@pytest.mark.parametrize("writable", [pytest.param(True, id="asked for"), pytest.param(False, id="not asked for")])
def test_room_to_write_is_reported_where_it_was_asked_for(
    poller: Poller, pair: tuple[socket.socket, socket.socket], writable: bool
) -> None:
    seen: list[int] = []
    poller.add(pair[0].fileno(), note(seen), writable=writable)
    poller.dispatch()
    assert [events & WRITABLE for events in seen] == ([WRITABLE] if writable else [])


def test_an_end_is_readable_and_a_break_is_named(poller: Poller, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    seen: list[int] = []
    poller.add(ours.fileno(), note(seen))
    theirs.shutdown(socket.SHUT_WR)
    poller.dispatch()
    assert seen[-1] & READABLE
    assert not seen[-1] & BROKEN
    theirs.close()
    poller.dispatch()
    assert seen[-1] & BROKEN


def test_a_refused_datagram_is_named_a_break(poller: Poller) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.setblocking(False)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
            closed.bind(("127.0.0.1", 0))
            # Connected to itself it takes datagrams from no one else, and holds its port.
            closed.connect(closed.getsockname())
            asker.connect(closed.getsockname())
            seen: list[int] = []
            poller.add(asker.fileno(), note(seen))
            asker.send(b"a")
            poller.dispatch()
    assert seen[-1] & BROKEN


def test_what_was_removed_is_called_no_more(poller: Poller, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    seen: list[int] = []
    poller.add(ours.fileno(), note(seen))
    poller.remove(ours.fileno())
    theirs.send(b"a")
    poller.dispatch()
    assert (seen, len(poller)) == ([], 0)


def test_removing_twice_or_what_was_never_added_does_nothing(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    poller.remove(pair[0].fileno())
    poller.add(pair[0].fileno(), note([]))
    poller.remove(pair[0].fileno())
    poller.remove(pair[0].fileno())
    assert len(poller) == 0


def test_adding_twice_is_an_error_that_keeps_the_first_handler(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    seen: list[int] = []
    poller.add(pair[0].fileno(), note(seen))
    with pytest.raises(FileExistsError):
        poller.add(pair[0].fileno(), note([]))
    pair[1].send(b"a")
    poller.dispatch()
    assert len(seen) == 1


def test_a_handler_may_remove_others_of_the_same_batch(poller: Poller) -> None:
    with ExitStack() as stack:
        pairs = [socket.socketpair() for _ in range(5)]
        for ours, theirs in pairs:
            stack.enter_context(ours)
            stack.enter_context(theirs)
            theirs.send(b"a")
        called: list[int] = []

        def remove_all(_events: int) -> None:
            called.append(1)
            for ours, _ in pairs:
                poller.remove(ours.fileno())

        for ours, _ in pairs:
            poller.add(ours.fileno(), remove_all)
        poller.dispatch()
    assert (called, len(poller)) == ([1], 0)


def test_more_than_a_batch_is_dispatched_in_turns_and_none_is_forgotten(poller: Poller) -> None:
    with ExitStack() as stack:
        called: set[int] = set()
        for number in range(300):
            ours, theirs = socket.socketpair()
            stack.enter_context(ours)
            stack.enter_context(theirs)
            theirs.send(b"a")
            poller.add(ours.fileno(), lambda _events, number=number: called.add(number))  # type: ignore[misc]
        poller.dispatch()
        assert 0 < len(called) < 300
        poller.dispatch()
        assert len(called) == 300


@pytest.mark.parametrize(("batch", "dispatches"), [(1, 10), (4, 3), (10, 1), (64, 1)])
def test_a_batch_is_as_large_as_it_was_made(batch: int, dispatches: int) -> None:
    with Poller(batch=batch) as poller, ExitStack() as stack:
        called: list[int] = []
        for number in range(10):
            ours, theirs = socket.socketpair()
            stack.enter_context(ours)
            stack.enter_context(theirs)
            theirs.send(b"a")
            poller.add(ours.fileno(), lambda _events, number=number: called.append(number))  # type: ignore[misc]
        sizes = []
        for _ in range(dispatches):
            before = len(called)
            poller.dispatch()
            sizes.append(len(called) - before)
        assert max(sizes) <= batch
        assert sorted(called) == list(range(10))


def test_leaving_the_block_closes_the_one_descriptor_and_none_of_the_watched(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    with Poller() as poller:
        poller.add(pair[0].fileno(), note([]))
    assert len(poller) == 0
    with pytest.raises(ValueError, match="closed"):
        poller.dispatch()
    pair[0].send(b"still open")
    assert pair[1].recv(20) == b"still open"


async def test_one_task_serves_many_sockets_until_it_is_cancelled(poller: Poller) -> None:
    seen: list[list[bytes]] = [[] for _ in range(20)]
    with ExitStack() as stack:
        pairs = [socket.socketpair() for _ in seen]
        for (ours, theirs), octets in zip(pairs, seen, strict=True):
            stack.enter_context(ours)
            stack.enter_context(theirs)
            ours.setblocking(False)
            poller.add(ours.fileno(), drain(ours, octets))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.run)
            for _ in range(3):
                for _, theirs in pairs:
                    theirs.send(b"ab")
                await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert seen == [[b"a", b"b"] * 3] * 20


async def test_a_socket_added_while_the_loop_waits_is_served(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    seen: list[bytes] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(poller.run)
        await trio.testing.wait_all_tasks_blocked()
        theirs.send(b"a")
        poller.add(ours.fileno(), drain(ours, seen))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert seen == [b"a"]


async def test_a_socket_that_never_runs_dry_leaves_other_tasks_their_turn(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    theirs.send(b"a")
    turns: list[int] = []
    poller.add(ours.fileno(), note(turns), edge=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(poller.run)
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert len(turns) >= 5


async def test_what_is_to_be_done_behind_a_batch_is_done_once_and_behind_all_of_it() -> None:
    """Handlers leave work that is cheaper together."""
    happened: list[str] = []
    with Poller(batch=3) as poller, ExitStack() as stack:
        pairs = [socket.socketpair() for _ in range(7)]
        for ours, theirs in pairs:
            stack.enter_context(ours)
            stack.enter_context(theirs)
            theirs.send(b"a")
            poller.add(ours.fileno(), lambda _events: happened.append("handler"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(poller.run, after=lambda: happened.append("after")))
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert happened == [*["handler"] * 3, "after", *["handler"] * 3, "after", "handler", "after"]


async def test_where_nothing_happens_there_is_nothing_to_do_behind_it(poller: Poller) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(poller.run, after=lambda: pytest.fail("nothing was there to be done")))
        await trio.testing.wait_all_tasks_blocked()
        assert poller.turn == 0
        nursery.cancel_scope.cancel()


async def test_a_bug_in_what_is_done_behind_a_batch_ends_the_loop_loudly(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    def fail() -> None:
        raise RuntimeError("a bug")

    poller.add(pair[0].fileno(), note([]))
    pair[1].send(b"a")
    with pytest.raises(RuntimeError, match="a bug"):
        await poller.run(after=fail)


async def test_a_bug_in_a_handler_ends_the_loop_loudly(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    def fail(_events: int) -> None:
        raise RuntimeError("a bug")

    poller.add(pair[0].fileno(), fail)
    pair[1].send(b"a")
    with pytest.raises(RuntimeError, match="a bug"):
        await poller.run()


@pytest.mark.parametrize("writable", [True, False])
def test_what_is_modified_is_reported_anew(
    poller: Poller, pair: tuple[socket.socket, socket.socket], writable: bool
) -> None:
    ours, theirs = pair
    seen: list[int] = []
    poller.add(ours.fileno(), note(seen))
    theirs.send(b"a")
    poller.dispatch()
    poller.modify(ours.fileno(), writable=writable)
    poller.dispatch()
    assert [events & READABLE != 0 for events in seen] == [True, True]
    assert [events & WRITABLE != 0 for events in seen] == [False, writable]


def test_modifying_what_is_not_watched_does_nothing(poller: Poller, pair: tuple[socket.socket, socket.socket]) -> None:
    poller.modify(pair[0].fileno())
    pair[1].send(b"a")
    assert poller.dispatch() == 0


def test_what_is_forgotten_and_closed_is_called_no_more_and_its_number_can_be_watched_again(poller: Poller) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        seen: list[int] = []
        poller.add(ours.fileno(), note(seen))
        theirs.send(b"a")
        number = ours.fileno()
        poller.forget(number)
        ours.close()
        assert (poller.dispatch(), len(poller)) == (0, 0)
    one, other = socket.socketpair()
    with one, other:
        again = one if one.fileno() == number else other
        assert again.fileno() == number
        poller.add(number, note(seen))
        (other if again is one else one).send(b"a")
        assert poller.dispatch() == 1
    assert len(seen) == 1


def test_dispatching_says_how_many_were_ready(poller: Poller, pair: tuple[socket.socket, socket.socket]) -> None:
    assert poller.dispatch() == 0
    poller.add(pair[0].fileno(), note([]))
    pair[1].send(b"a")
    assert poller.dispatch(60.0) == 1


async def test_a_loop_that_lingers_takes_what_comes_of_what_it_did_without_a_turn_of_trio(
    poller: Poller, pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair
    # No busy machine shall end it between two messages.
    monkeypatch.setattr("sidecar.loop.poller.BUSY_SECONDS", 60.0)
    turns_before: list[int] = []
    turns = 0

    def answer(_events: int) -> None:
        ours.recv(1)
        turns_before.append(turns)
        if len(turns_before) < 5:
            theirs.send(b"a")

    poller.add(ours.fileno(), answer)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(poller.run, linger=0.001))
        theirs.send(b"a")
        while len(turns_before) < 5:
            await trio.lowlevel.checkpoint()
            turns += 1
        nursery.cancel_scope.cancel()
    assert len(set(turns_before)) == 1


async def test_a_loop_that_lingers_lets_the_others_have_their_turn(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair

    def answer_for_ever(_events: int) -> None:
        ours.recv(1)
        theirs.send(b"a")

    poller.add(ours.fileno(), answer_for_ever)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(poller.run, linger=0.001))
        theirs.send(b"a")
        for _ in range(5):
            await trio.lowlevel.checkpoint()
        assert poller.turn > 0
        nursery.cancel_scope.cancel()
