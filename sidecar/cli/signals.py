"""The end of a program: a first signal asks it to finish, a second one or the end of the grace makes it.

The law: signals are received here and nowhere else, and what they end is a cancel scope, never the process.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import trio

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def run_until_signal(serve: Callable[[trio.Event], Awaitable[None]], *, grace: float) -> int:
    """Run `serve(stopping)` until it returns; gives the exit status, 0, or 130 after Ctrl-C.

    The first SIGTERM or SIGINT sets `stopping`: serve should take no new work, finish what it has, and return. It is
    cancelled when grace seconds have passed or a second signal comes.
    """
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

    with trio.open_signal_receiver(*_SIGNALS) as received:
        signals = aiter(received)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await serve(stopping)
            nursery.cancel_scope.cancel()
    return status
