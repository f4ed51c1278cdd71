"""The spawner: a process that keeps the table and forks the workers. It starts before the event loop does.

A worker that is forked here shares the memory of the modules and of the table with all others, and answers from the
whole table a few milliseconds after its predecessor has died; a new interpreter would take a second, and 30 MB more.
The parent itself cannot fork, because it runs an event loop and threads.

The law: it does one thing at a time and waits only for the parent and its children. No signal but SIGKILL ends it or a
worker, because a terminal and systemd signal all processes of a service at once, and only the parent may end them: it
drains them first. When the parent has gone, nothing stays: workers end by themselves, and after ENDING by SIGKILL.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple, NoReturn

import structlog

from dnsproxy.workers.feed import FeedReader
from dnsproxy.workers.messages import (
    FOR_SPAWNER,
    Begin,
    Ended,
    Frames,
    FromSpawner,
    HostRows,
    Kill,
    Publish,
    Spawn,
    Spawned,
    frame,
)
from dnsproxy.workers.worker import run_worker
from sidecar.sockets.descriptors import raise_descriptor_limit

ENDING: Final = 1.0
"""Seconds for workers to end when the parent has gone or closed their control sockets."""
MOST_DESCRIPTORS: Final = 253
"""The most that one message may carry (SCM_MAX_FD of the kernel)."""
_LOOK: Final = 0.01
"""Seconds between two looks for the end of the spawner, outside any event loop."""
_CHUNK: Final = 1 << 18
_DEAF: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGPIPE,
)


class SpawnerProcess(NamedTuple):
    """The started spawner, as its parent sees it."""

    process: int
    socket: socket.socket

    def __enter__(self) -> SpawnerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        """Wait until it and its workers have ended: a server that starts next must find the ports free."""
        self.socket.close()
        give_up = time.monotonic() + 3 * ENDING
        with suppress(ChildProcessError):
            while not os.waitpid(self.process, os.WNOHANG)[0]:
                if time.monotonic() > give_up:
                    # It was stopped. Its workers have ended by themselves.
                    os.kill(self.process, signal.SIGKILL)
                time.sleep(_LOOK)


def start_spawner() -> SpawnerProcess:
    """Fork the spawner. For a process with one thread, before its event loop."""
    raise_descriptor_limit()
    ours, theirs = socket.socketpair()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    gc.collect()
    gc.freeze()
    process = os.fork()
    if not process:
        _end_with(lambda: _run_spawner(ours, theirs))
    theirs.close()
    return SpawnerProcess(process, ours)


def _run_spawner(parent: socket.socket, control: socket.socket) -> None:
    parent.close()
    for number in _DEAF:
        signal.signal(number, signal.SIG_IGN)
    _Spawner(control).run()


def _end_with(work: Callable[[], None]) -> NoReturn:
    """Work, and end this process without the clean-up of the interpreter, which belongs to the parent."""
    status = 1
    try:
        work()
        status = 0
    except Exception:  # noqa: BLE001  # what follows ends the process
        structlog.get_logger("dnsproxy.workers").exception("a process of --workers failed")
    finally:
        os._exit(status)


class _Spawner:
    """The loop of the spawner's process."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._frames = Frames()
        self._descriptors: list[int] = []
        """Received, and not used yet."""
        self._table = FeedReader()
        self._living: dict[int, int] = {}
        """The process IDs of the workers, by the numbers of their lives."""
        self._wakeups, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        self._wakeup = wakeup

    def run(self) -> None:
        """Work until the parent has gone, then end what is left of the workers."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wakeups, select.POLLIN)
        while True:
            readable = {descriptor for descriptor, _ in poll.poll()}
            if self._wakeups in readable:
                os.read(self._wakeups, _CHUNK)
                self._reap()
            if self._control.fileno() in readable and not self._receive():
                break
        self._end_all()

    def _receive(self) -> bool:
        """Handle what has arrived; False at the end."""
        try:
            octets, descriptors, _, _ = socket.recv_fds(self._control, _CHUNK, MOST_DESCRIPTORS)
        except ConnectionError:
            return False
        self._descriptors += descriptors
        for message in self._frames.feed(octets, FOR_SPAWNER):
            self._handle(message)
        return bool(octets)

    def _handle(self, message: Begin | HostRows | Publish | Spawn | Kill) -> None:
        match message:
            case Begin() | HostRows():
                self._table.pending.append(message)
            case Publish():
                self._table.publish(message)
                self._table.prepare()
            case Spawn():
                self._spawn(message)
            case Kill(worker) if worker in self._living:
                os.kill(self._living[worker], signal.SIGKILL)
            case _:
                pass

    def _spawn(self, message: Spawn) -> None:
        count = 1 + message.streams + message.datagrams
        descriptors, self._descriptors = self._descriptors[:count], self._descriptors[count:]
        # The objects of the table live long: a worker's garbage collector must not visit them, which would copy them.
        gc.freeze()
        try:
            process = os.fork()
        except OSError as error:
            # A limit of processes or of memory. The parent tries again, with pauses.
            structlog.get_logger("dnsproxy.workers").error("no worker can be started", error=error.strerror)
            process = None
        if process == 0:
            _end_with(lambda: self._become(message, descriptors))
        for one in descriptors:
            os.close(one)
        if process is None:
            self._report(Ended(message.worker, -1))
        else:
            self._living[message.worker] = process
            self._report(Spawned(message.worker, process))

    def _become(self, message: Spawn, descriptors: list[int]) -> None:
        """What the child does."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self._wakeups)
        os.close(self._wakeup)
        self._control.close()
        for one in self._descriptors:
            os.close(one)
        control, *sockets = (socket.socket(fileno=one) for one in descriptors)
        run_worker(
            control,
            streams=sockets[: message.streams],
            datagrams=sockets[message.streams :],
            table=self._table,
            place=message.place,
        )

    def _reap(self) -> None:
        """Report the workers that have ended."""
        for worker, process in list(self._living.items()):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                del self._living[worker]
                self._report(Ended(worker, os.waitstatus_to_exitcode(status)))

    def _report(self, message: FromSpawner) -> None:
        # The parent may have gone.
        with suppress(OSError):
            self._control.sendall(frame(message))

    def _end_all(self) -> None:
        give_up = time.monotonic() + ENDING
        poll = select.poll()
        poll.register(self._wakeups, select.POLLIN)
        self._reap()
        while self._living:
            left = give_up - time.monotonic()
            if left <= 0:
                for process in self._living.values():
                    os.kill(process, signal.SIGKILL)
                left = ENDING
            if poll.poll(left * 1000):
                os.read(self._wakeups, _CHUNK)
            self._reap()
