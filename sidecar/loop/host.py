"""Runs a trio program as the guest of a poller: a socket of the hot path wakes its handler, and not trio.

On a machine at rest the caches have forgotten trio's scheduler, and a turn of it takes longer than an answer. In guest
mode (trio.lowlevel.start_guest_run) the thread waits for the poller, trio waits for its own sockets and deadlines in a
thread beside it, and its turn is one more handler. What a poller watches is handled at once; everything else takes a
change of threads more.

The law: a program is the same here and under trio alone, where poller.Poller takes the host's place. A handler that
raises ends Host.run, which is a task of the program; no other handler is called after it.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, TypeVarTuple

import trio

from sidecar.loop.poller import BATCH, Poller

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

_UNTIL_READY: Final = -1.0
_HOST: Final[trio.lowlevel.RunVar[Host | None]] = trio.lowlevel.RunVar("host", default=None)


def run_hosted(async_fn: Callable[[*Arguments], Awaitable[Result]], *args: *Arguments, batch: int = BATCH) -> Result:
    """As trio.run, with a host for make_poller; `batch`: the most handlers that it calls between two turns of trio.

    Under trio alone if no second thread can be started (pids.max, cgroups(7)).
    """
    if not _may_start_threads():
        return trio.run(async_fn, *args)
    host = Host(batch=batch)
    try:
        return host.run_guest(async_fn, *args)
    finally:
        host.close()


def make_poller(*, batch: int = BATCH) -> Poller:
    """The host of this program; under trio alone, or outside it, a new poller of its own batch.

    Enter it in either case. Who added a descriptor must remove it, because a host outlives its block.
    """
    host = _HOST.get() if trio.lowlevel.in_trio_run() else None
    return Poller(batch=batch) if host is None else host


class Host(Poller):
    """A poller that is the loop of its thread, and owns its epoll instance and an eventfd until close()."""

    def __init__(self, *, batch: int = BATCH) -> None:
        super().__init__(batch=batch)
        self._turns: deque[Callable[[], object]] = deque()
        """What trio wants to be called in this thread."""
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        """Readable when another thread has added a turn."""
        self._ringing = threading.Lock()
        """Held by the other thread: its turn may be taken, and be the last one, before the bell rings."""
        self._epoll.register(self._bell, select.EPOLLIN)
        self._alone = select.poll()
        """Watches the bell alone, while run() does not run."""
        self._alone.register(self._bell, select.POLLIN)
        self._running = False
        self._after: Callable[[], None] = _nothing
        self._failure: Exception | None = None
        self._failed = trio.Event()

    def __exit__(self, *_: object) -> None:
        """Close nothing: the program goes on."""

    def close(self) -> None:
        """Close what the host owns; its program has ended."""
        super().__exit__()
        with self._ringing:
            os.close(self._bell)

    # Ctrl-C then cancels the program's main task, and does not end the loop amid a handler.
    @trio.lowlevel.enable_ki_protection
    def run_guest(self, async_fn: Callable[[*Arguments], Awaitable[Result]], *args: *Arguments) -> Result:
        """Run a program to its end; what it returns or raises."""
        outcomes: list[Any] = []

        async def program() -> Result:
            _HOST.set(self)
            return await async_fn(*args)

        trio.lowlevel.start_guest_run(
            program,
            run_sync_soon_threadsafe=self._add_turn,
            run_sync_soon_not_threadsafe=self._turns.append,
            done_callback=outcomes.append,
        )
        while not outcomes:
            self._wait()
            for _ in range(len(self._turns)):
                self._turns.popleft()()
        result: Result = outcomes[0].unwrap()
        return result

    async def run(self, *, after: Callable[[], None] | None = None, linger: float = 0.0) -> None:
        """See Poller.run; the host itself calls the handlers meanwhile, and waits for the next batch in any case."""
        del linger
        self._after = after or _nothing
        self._failure, self._failed = None, trio.Event()
        self._running = True
        try:
            await self._failed.wait()
        finally:
            self._running = False
        if self._failure is not None:
            raise self._failure

    def _add_turn(self, turn: Callable[[], object]) -> None:
        with self._ringing:
            self._turns.append(turn)
            os.eventfd_write(self._bell, 1)

    def _wait(self) -> None:
        """Wait for a handler's descriptor, or a turn."""
        timeout = 0.0 if self._turns else _UNTIL_READY
        if not self._running:
            if self._alone.poll(timeout):
                os.eventfd_read(self._bell)
            return
        try:
            if self.dispatch(timeout):
                self._after()
        except Exception as error:  # noqa: BLE001  # raised by run(): here it would leave trio without an end
            self._running = False
            self._failure = error
            self._failed.set()

    def _handle_unknown(self, descriptor: int) -> None:
        if descriptor == self._bell:
            os.eventfd_read(descriptor)


def _may_start_threads() -> bool:
    thread = threading.Thread(target=_nothing)
    try:
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True


def _nothing() -> None:
    """The default of `after` in run(); also the work of the thread that shows whether one can be started."""
