"""Ends a program by signals: the first asks it to finish; the second, or the end of the grace period, cancels it.

SIGHUP makes a program read its files again, if it has any; stray_signals.py has the signals without effect. The law:
only this module receives signals, and it ends a cancel scope, never the process.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import structlog
import trio

from sidecar.cli.stray_signals import survive_stray_signals
from sidecar.sockets.descriptors import free_descriptors

_ENDING: Final = (signal.SIGTERM, signal.SIGINT)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def run_until_signal(
    serve: Callable[[trio.Event], Awaitable[None]],
    *,
    grace: float,
    reload: Callable[[], None] | None = None,
    upcoming: int = 0,
) -> int:
    """Run `serve(stopping)` until it returns; returns the exit status: 0, or 130 after Ctrl-C.

    The first SIGTERM or SIGINT sets `stopping`: `serve` should accept no new work, finish its current work, and return.
    It is cancelled after `grace` seconds, or by a second signal. `reload` is called for each SIGHUP. Raises StartError
    if descriptors are missing; `upcoming`: how many `serve` opens for certain.
    """
    free_descriptors(upcoming=upcoming)
    survive_stray_signals()
    stopping = trio.Event()
    status = 0

    async def watch() -> None:
        nonlocal status
        number = await anext(signals)
        status = 128 + number if number == signal.SIGINT else 0
        log.info("stopping", signal=signal.Signals(number).name, grace_seconds=grace)
        stopping.set()
        with trio.move_on_after(grace):
            await anext(signals)
        log.info("stopping now")
        nursery.cancel_scope.cancel()

    with trio.open_signal_receiver(*_ENDING) as received, trio.open_signal_receiver(signal.SIGHUP) as hangups:
        signals = aiter(received)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            nursery.start_soon(_reload_at, hangups, reload)
            await serve(stopping)
            nursery.cancel_scope.cancel()
    return status


async def run_or_end(work: Callable[[], Awaitable[int]]) -> int:
    """Run `work`, and cancel it at SIGTERM or SIGHUP; returns its exit status, or 128 plus the number of the signal.

    By default these end the process at once, and the child processes of `work` would stay. One that the caller ignored,
    as nohup does, stays ignored.
    """
    status = 0

    async def watch() -> None:
        nonlocal status
        status = 128 + await anext(signals)
        nursery.cancel_scope.cancel()

    fatal = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    with trio.open_signal_receiver(*fatal) as received:
        signals = aiter(received)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            status = await work()
            nursery.cancel_scope.cancel()
    return status


async def _reload_at(hangups: AsyncIterator[int], reload: Callable[[], None] | None) -> None:
    async for _ in hangups:
        if reload is None:
            log.info("nothing to reload", signal="SIGHUP")
        else:
            log.info("reading the files again", signal="SIGHUP")
            reload()
