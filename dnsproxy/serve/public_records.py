"""Public records: the addresses of a hostname, and whether a domain exists, as the upstreams know them.

The law: it asks the upstreams, because this server would answer from its own table, and each question has a deadline.
Tested in test_ownership_watch.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio

from dnsproxy.dns import names, wire
from dnsproxy.dns.addresses import AddressReply, PublicRecord, join_replies, parse_address_reply
from dnsproxy.dns.wire import Query, Rcode, Type

Ask = Callable[[Query], Awaitable[bytes | None]]
"""Ask the upstreams: the complete reply to the query; None if there is none."""

_LABEL: Final = "switchback-{:012x}"
LONGEST_WILDCARD: Final = names.MAXIMUM_NAME - 2 - len(_LABEL.format(0))
"""Characters of a wildcard that has room for a random name below it."""


class PublicRecords:
    """Asks; `timeout` in seconds for one hostname."""

    def __init__(self, ask: Ask, *, timeout: float) -> None:
        self._ask = ask
        self._timeout = timeout

    async def resolve(self, hostname: str) -> PublicRecord | None:
        """The public record of a hostname; None without an answer."""
        replies: dict[Type, AddressReply | None] = {Type.A: None, Type.AAAA: None}

        async def ask(rtype: Type) -> None:
            replies[rtype] = await self._reply(hostname, rtype)

        with trio.move_on_after(self._timeout):
            async with trio.open_nursery() as nursery:
                for rtype in replies:
                    nursery.start_soon(partial(ask, rtype))
        return join_replies(replies.values())

    async def exists(self, domain: str) -> bool | None:
        """Whether a domain has any record; None without an answer."""
        reply = None
        with trio.move_on_after(self._timeout):
            reply = await self._reply(domain, Type.A)
        if reply is None or reply.rcode not in (Rcode.NOERROR, Rcode.NXDOMAIN):
            return None
        return reply.rcode == Rcode.NOERROR

    async def _reply(self, hostname: str, rtype: Type) -> AddressReply | None:
        reply = await self._ask(wire.plain_query(names.to_wire(hostname), rtype))
        return parse_address_reply(reply) if reply is not None else None


def name_to_ask(hostname: str, random: float) -> str:
    """The hostname, or a random name that its wildcard covers."""
    return hostname if not names.is_wildcard(hostname) else _LABEL.format(int(random * 2**48)) + hostname[1:]
