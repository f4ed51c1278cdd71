"""A resolver that a test plays, in place of the system's."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import trio

Found = list[tuple[Any, ...]]


class PlayedResolver(trio.abc.HostnameResolver):
    """Answers with what `answer` is at the moment; while it is None, not at all."""

    def __init__(self) -> None:
        self.answer: list[str] | socket.gaierror | None = None
        self.asked = 0
        self._changed = trio.Event()

    def set(self, answer: list[str] | socket.gaierror) -> None:
        """Answer so from now on, and to whoever waits."""
        self.answer = answer
        self._changed.set()
        self._changed = trio.Event()

    async def getaddrinfo(self, _host: Any, port: Any, _family: int = 0, kind: int = 0, *_: int) -> Found:
        self.asked += 1
        while self.answer is None:
            await self._changed.wait()
        if isinstance(self.answer, socket.gaierror):
            raise self.answer
        return [
            (socket.AF_INET6, kind, 0, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, kind, 0, "", (address, port))
            for address in self.answer
        ]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> tuple[str, str]:
        raise NotImplementedError


@contextmanager
def played_resolver() -> Iterator[PlayedResolver]:
    """Inside the block trio resolves names through the resolver that it gives."""
    resolver = PlayedResolver()
    earlier = trio.socket.set_custom_hostname_resolver(resolver)
    try:
        yield resolver
    finally:
        trio.socket.set_custom_hostname_resolver(earlier)


NO_SUCH_NAME = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
TRY_AGAIN = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
