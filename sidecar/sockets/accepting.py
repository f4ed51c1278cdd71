"""Accepts connections, and waits while the process or the system has no resources for another one.

The law: a shortage ends no listener and delays only new connections, which wait in the kernel's queue. It is logged
once at its beginning and once at its end, with its duration: a line for each attempt would cost more than it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NoReturn

import structlog
import trio

from sidecar.sockets.descriptors import EXHAUSTED

PAUSE: Final = 0.1
"""Seconds between two attempts."""
CALM: Final = 5.0
"""Seconds without a failure after which a shortage has ended: it comes and goes with each connection that ends."""


class Shortage:
    """A time in which attempts fail for want of resources; all times in seconds of one clock."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._last = -math.inf

    @property
    def lasting(self) -> bool:
        """Whether one has begun and not ended."""
        return self._since is not None

    def begin(self, now: float) -> bool:
        """Note a failure; whether it is the first one of a shortage."""
        first = self._since is None
        if self._since is None:
            self._since = now
        self._last = now
        return first

    def end(self, now: float) -> float | None:
        """Note that there is no failure now; the duration of the shortage if it has ended with this."""
        if self._since is None or now - self._last < CALM:
            return None
        lasted, self._since = self._last - self._since, None
        return lasted


async def accept_connections(
    listener: trio.SocketListener, begin: Callable[[trio.SocketStream], object], *, name: str
) -> NoReturn:
    """Call `begin` with each connection until cancelled; `name` is the port's in the log.

    Raises OSError if the listener itself is broken.
    """
    log = structlog.get_logger("sidecar.sockets")
    shortage = Shortage()
    while True:
        try:
            with trio.move_on_after(CALM if shortage.lasting else math.inf):
                begin(await listener.accept())
        except OSError as error:
            if error.errno not in EXHAUSTED:
                raise
            if shortage.begin(trio.current_time()):
                log.warning("cannot accept connections; they wait", port=name, cause=error.strerror)
            await trio.sleep(PAUSE)
        else:
            lasted = shortage.end(trio.current_time())
            if lasted is not None:
                log.info("accepting connections again", port=name, seconds=round(lasted, 1))
