"""The host: a program is the same there and under trio alone, and what its poller watches waits for no turn of trio."""

from __future__ import annotations

import gc
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Protocol

import pytest
import trio

from sidecar.loop.host import Host, make_poller, run_hosted
from sidecar.loop.poller import Handler, Poller

Pair = tuple[socket.socket, socket.socket]


class Run(Protocol):
    """Runs a program to its end."""

    def __call__(self, async_fn: Callable[..., Awaitable[Any]], *args: Any) -> Any: ...


in_both = pytest.mark.parametrize("run", [pytest.param(trio.run, id="trio"), pytest.param(run_hosted, id="host")])


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def taking(sock: socket.socket, seen: list[bytes], then: Callable[[], object] = lambda: None) -> Handler:
    def handler(_events: int) -> None:
        seen.append(sock.recv(100))
        then()

    return handler


@in_both
def test_a_program_returns_what_it_returns(run: Run) -> None:
    async def add(one: int, two: int) -> int:
        await trio.sleep(0.001)
        return one + two

    assert run(add, 1, 2) == 3


@in_both
def test_a_program_raises_what_it_raises(run: Run) -> None:
    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise LookupError("a bug")

    with pytest.raises(LookupError, match="a bug"):
        run(fail)


@in_both
def test_a_socket_has_its_handler_while_all_tasks_sleep(run: Run, pair: Pair) -> None:
    ours, theirs = pair
    seen: list[bytes] = []

    async def program() -> None:
        done = trio.Event()
        with make_poller() as poller:
            poller.add(ours.fileno(), taking(ours, seen, done.set), edge=False)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(poller.run)
                await trio.to_thread.run_sync(theirs.send, b"a")
                await done.wait()
                nursery.cancel_scope.cancel()
            poller.remove(ours.fileno())

    run(program)
    assert seen == [b"a"]


@in_both
def test_a_handler_may_start_a_task_and_set_a_deadline(run: Run, pair: Pair) -> None:
    ours, theirs = pair
    seen: list[bytes] = []
    ended: list[float] = []

    async def task(scope: trio.CancelScope) -> None:
        begun = trio.current_time()
        await trio.sleep(0.01)
        ended.append(trio.current_time() - begun)
        scope.cancel()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            with make_poller() as poller:
                start = partial(nursery.start_soon, task, nursery.cancel_scope)
                poller.add(ours.fileno(), taking(ours, seen, start), edge=False)
                theirs.send(b"a")
                try:
                    await poller.run()
                finally:
                    poller.remove(ours.fileno())

    run(program)
    assert (len(ended), ended[0] >= 0.01) == (1, True)


@in_both
def test_a_handler_that_fails_ends_the_loop_with_its_exception_and_no_other_is_called(run: Run, pair: Pair) -> None:
    ours, theirs = pair
    called: list[int] = []

    def fail(events: int) -> None:
        called.append(events)
        raise LookupError("a bug")

    async def program() -> None:
        with make_poller() as poller:
            poller.add(ours.fileno(), fail, edge=False)
            theirs.send(b"a")
            with pytest.raises(LookupError, match="a bug"):
                await poller.run()
            await trio.sleep(0.01)

    run(program)
    assert len(called) == 1


@in_both
def test_what_is_to_be_done_behind_a_batch_is_done_while_the_loop_runs_and_not_later(run: Run, pair: Pair) -> None:
    ours, theirs = pair
    happened: list[str] = []

    async def program() -> None:
        with make_poller() as poller:
            done = trio.Event()
            poller.add(ours.fileno(), lambda _events: happened.append(ours.recv(1).decode()), edge=False)

            def after() -> None:
                if happened[-1:] == ["a"]:
                    happened.append("after")
                    done.set()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(poller.run, after=after))
                theirs.send(b"a")
                await done.wait()
                nursery.cancel_scope.cancel()
            poller.remove(ours.fileno())
            theirs.send(b"a")
            await trio.sleep(0.01)

    run(program)
    assert happened == ["a", "after"]


@in_both
def test_a_socket_that_never_runs_dry_leaves_tasks_their_turn(run: Run, pair: Pair) -> None:
    ours, theirs = pair
    theirs.send(b"a")
    calls: list[int] = []

    async def program() -> None:
        with make_poller() as poller:
            poller.add(ours.fileno(), calls.append, edge=False)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(poller.run)
                for _ in range(10):
                    await trio.sleep(0.001)
                nursery.cancel_scope.cancel()
            poller.remove(ours.fileno())

    run(program)
    assert len(calls) >= 10


@in_both
def test_a_task_that_never_waits_leaves_sockets_their_turn(run: Run, pair: Pair) -> None:
    ours, theirs = pair
    seen: list[bytes] = []

    async def spin() -> None:
        while True:
            await trio.lowlevel.checkpoint()

    async def program() -> None:
        with make_poller() as poller:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(poller.run)
                nursery.start_soon(spin)
                poller.add(ours.fileno(), taking(ours, seen, nursery.cancel_scope.cancel), edge=False)
                theirs.send(b"a")
            poller.remove(ours.fileno())

    run(program)
    assert seen == [b"a"]


@in_both
def test_sockets_of_trio_and_threads_wake_their_tasks(run: Run) -> None:
    async def program() -> list[bytes]:
        ours, theirs = trio.socket.socketpair()
        with ours, theirs:
            received = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(theirs.send, b"by a task")
                received.append(await ours.recv(100))
            await trio.to_thread.run_sync(partial(trio.from_thread.run, theirs.send, b"by a thread"))
            received.append(await ours.recv(100))
            return received

    assert run(program) == [b"by a task", b"by a thread"]


@in_both
def test_no_descriptor_is_left_behind(run: Run) -> None:
    async def program() -> None:
        with make_poller():
            await trio.lowlevel.checkpoint()

    run(program)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        run(program)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_the_poller_of_a_hosted_program_is_its_host_also_after_its_block() -> None:
    async def program() -> None:
        with make_poller() as poller:
            assert isinstance(poller, Host)
        with make_poller(batch=3) as again:
            assert again is poller

    run_hosted(program)


@pytest.mark.parametrize("where", ["outside", "trio"])
def test_without_a_host_each_poller_is_one_of_its_own(where: str) -> None:
    async def make() -> Poller:
        return make_poller()

    made = [trio.run(make) if where == "trio" else make_poller() for _ in range(2)]
    for one in made:
        with one:
            assert not isinstance(one, Host)
    assert made[0] is not made[1]


def test_a_handler_does_not_wait_for_trio(pair: Pair) -> None:
    """It is called in the thread of the loop, and not within a task."""
    ours, theirs = pair
    seen: list[tuple[bool, bool]] = []

    async def program() -> None:
        done = trio.Event()

        def handler(_events: int) -> None:
            ours.recv(1)
            seen.append((threading.current_thread() is threading.main_thread(), trio.lowlevel.in_trio_task()))
            done.set()

        with make_poller() as poller:
            poller.add(ours.fileno(), handler, edge=False)
            theirs.send(b"a")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(poller.run)
                await done.wait()
                nursery.cancel_scope.cancel()
            poller.remove(ours.fileno())

    run_hosted(program)
    assert seen == [(True, False)]


@in_both
def test_handlers_are_called_while_the_loop_runs_and_neither_before_nor_after(run: Run, pair: Pair) -> None:
    ours, theirs = pair
    seen: list[bytes] = []

    async def program() -> None:
        with make_poller() as poller:
            for octets in (b"a", b"b"):
                taken = trio.Event()
                poller.add(ours.fileno(), taking(ours, seen, taken.set), edge=False)
                theirs.send(octets)
                before = list(seen)
                for _ in range(20):
                    await trio.lowlevel.checkpoint()
                assert seen == before
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(poller.run)
                    await taken.wait()
                    nursery.cancel_scope.cancel()
                poller.remove(ours.fileno())

    run(program)
    assert seen == [b"a", b"b"]


@in_both
def test_a_loop_that_failed_may_run_again(run: Run, pair: Pair) -> None:
    ours, theirs = pair

    def fail(_events: int) -> None:
        raise LookupError(ours.recv(1).decode())

    async def program() -> None:
        with make_poller() as poller:
            poller.add(ours.fileno(), fail, edge=False)
            for octet in ("a", "b"):
                theirs.send(octet.encode())
                with pytest.raises(LookupError, match=octet):
                    await poller.run()
            poller.remove(ours.fileno())

    run(program)


def test_a_host_that_closes_waits_for_a_thread_that_still_rings(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another descriptor may have the number of the bell then."""
    ours, theirs = pair
    theirs.send(b"a")
    host = Host()
    ring = os.eventfd_write
    closed = threading.Event()
    rung: list[bool] = []

    def ring_late(bell: int, value: int) -> None:
        rung.append(closed.wait(timeout=0.05))
        ring(bell, value)

    async def program() -> None:
        # It never runs dry, so the host finds each turn without its bell.
        host.add(ours.fileno(), lambda _events: None, edge=False)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.run)
            monkeypatch.setattr(os, "eventfd_write", ring_late)
            await trio.sleep(0.001)
            nursery.cancel_scope.cancel()
        host.remove(ours.fileno())

    host.run_guest(program)
    host.close()
    closed.set()
    assert set(rung) == {False}


def test_without_a_second_thread_a_program_runs_under_trio_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node may be at its limit of processes when DNS has to start."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def program() -> bool:
        with make_poller() as poller:
            return isinstance(poller, Host)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert run_hosted(program) is False
