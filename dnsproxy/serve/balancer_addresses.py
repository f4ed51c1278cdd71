"""The addresses of load balancers whose statuses have only hostnames, as the upstreams know them.

The law: a thin shell. A record that is no CNAME, but has the addresses of such a hostname (an alias of the provider's
DNS), leads to the same load balancer. Each hostname is asked when it comes, and again after its TTL. Without an answer
the last addresses stay; if the hostname has no record any more they go, because the provider gives them to others.
Their number is bounded, and the first by name count.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from itertools import chain
from typing import Final

import trio

from dnsproxy.dns.addresses import is_address, join_replies, parse_address_reply
from dnsproxy.dns.names import BadName, parse_hostname, to_wire
from dnsproxy.dns.wire import Query, Type, plain_query
from dnsproxy.hostnames.keeper import TableKeeper

MOST: Final = 64
"""Hostnames that are asked."""
_SHORTEST: Final = 30.0
_LONGEST: Final = 300.0
_EVERY: Final = 1.0
"""Seconds between two looks at what is due."""
_ANSWER: Final = 2.0

Ask = Callable[[Query], Awaitable[bytes | None]]
"""Ask the upstreams, whatever the table has: a whole reply, or None."""


class BalancerAddresses:
    """Tells a keeper's registry; run() must be running."""

    def __init__(self, keeper: TableKeeper, ask: Ask) -> None:
        self._keeper = keeper
        self._ask = ask
        self._due: dict[str, float] = {}
        self._found: dict[str, tuple[str, ...]] = {}

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await trio.sleep(_EVERY)
            hostnames = list(self._hostnames())
            self._due = {one: self._due.get(one, 0.0) for one in hostnames}
            for hostname in hostnames:
                if self._due[hostname] <= trio.current_time():
                    self._due[hostname] = trio.current_time() + await self._look(hostname)
            found = {one: self._found[one] for one in hostnames if one in self._found}
            if self._keeper.registry.set_balancer_addresses(found):
                self._keeper.wake()
            self._found = found

    def _hostnames(self) -> Iterator[str]:
        balancers = self._keeper.registry.balancers
        names = sorted({one for one in chain(balancers.replaced, balancers.known) if "/" not in one})
        yield from [one for one in names if not is_address(one)][:MOST]

    async def _look(self, hostname: str) -> float:
        """Look a hostname up. Returns seconds until the next look."""
        try:
            name = to_wire(parse_hostname(hostname))
        except BadName:
            return _LONGEST
        replies = []
        for rtype in (Type.A, Type.AAAA):
            octets = None
            with trio.move_on_after(_ANSWER):
                octets = await self._ask(plain_query(name, rtype))
            replies.append(parse_address_reply(octets) if octets is not None else None)
        record = join_replies(replies)
        if record is None:
            return _SHORTEST
        self._found[hostname] = record.addresses
        return min(max(float(record.ttl or 0), _SHORTEST), _LONGEST)
