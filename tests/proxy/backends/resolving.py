"""A resolver that a test plays, in place of the hosts file and the nameservers."""

from __future__ import annotations

import trio

from proxy.backends.health import Cause, Failure
from proxy.backends.name_resolver import Found

NO_SUCH_NAME = Failure(Cause.DNS_NXDOMAIN, "no such name")
TRY_AGAIN = Failure(Cause.DNS_ERROR, "SERVFAIL")
SILENCE = Failure(Cause.DNS_TIMEOUT, "no answer within 5 s")


class PlayedResolver:
    """Returns the last answer that was set, and waits for the first one."""

    def __init__(self) -> None:
        self.asked = 0
        self._answer: Found | Failure | None = None
        self._changed = trio.Event()

    def set(self, answer: list[str] | Failure, *, seconds: float = 0.02) -> None:
        """Set the answer, also for waiting callers."""
        self._answer = answer if isinstance(answer, Failure) else Found(tuple(answer), seconds)
        self._changed.set()
        self._changed = trio.Event()

    async def look_up(self, _name: str) -> Found | Failure:
        self.asked += 1
        while self._answer is None:
            await self._changed.wait()
        return self._answer
