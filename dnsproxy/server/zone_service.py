"""The contract of zones that a server answers for beside the table: see dnsproxy/primary/zone_server.py.

The law: whoever answers, the table's answers do not wait for it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from dnsproxy.answers.decide import Outcome
from dnsproxy.dns.wire import Query


class Transfer(Protocol):
    """An answer of many messages (RFC 5936)."""

    def messages(self) -> AsyncGenerator[bytes, None]:
        """The messages, in order; each is made when the one before it was sent."""

    def finish(self) -> None:
        """Note that the client accepted all of them."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """An answer that another process has to give."""

    answer: Callable[[], Awaitable[bytes | None]]
    """The reply, in bounded time; None: that process is to serve the connection, from this query on."""


class ZoneService(Protocol):
    """Answers queries about zones that the table does not have."""

    def concerns(self, message: bytes, outcome: Outcome) -> Query | None:
        """The query, if it is for such a zone; None if the table's outcome stands."""

    def answer_datagram(self, query: Query, *, client: str, reply: Callable[[bytes], None]) -> None:
        """Call `reply` with the answer, now or later."""

    def answer_stream(self, query: Query, *, client: str) -> bytes | Transfer | Elsewhere:
        """What to send over TCP."""

    def takes_connection(self, query: Query, *, client: str) -> bool:
        """Whether the query is for a transfer, and the address may ask for one."""
