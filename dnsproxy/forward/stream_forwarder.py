"""Forwarding for clients that came over TCP: each query is a task of its connection, and asks over TCP in its turn.

The law: as for datagrams, a reply or SERVFAIL by GIVE_UP, within the same caps; one query may fail alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import structlog
import trio

from dnsproxy import responder
from dnsproxy.counters import Counters, rcode_of
from dnsproxy.forward import replies
from dnsproxy.forward.admission import Admission
from dnsproxy.forward.flight import GIVE_UP
from dnsproxy.forward.loop import LoopProbes
from dnsproxy.forward.upstreams import Upstreams
from dnsproxy.responder import Forward
from dnsproxy.wire import Rcode

_LIMIT: Final = 0xFFFF
_NO_REACHABLE_AUTHORITY = 22  # extended DNS error codes (RFC 8914 section 4)


class StreamForwarder:
    """Shares upstreams, caps and probes with the flights."""

    def __init__(self, upstreams: Upstreams, *, admission: Admission, loops: LoopProbes, counters: Counters) -> None:
        self._upstreams = upstreams
        self._admission = admission
        self._loops = loops
        self._counters = counters
        self._log = structlog.get_logger("dnsproxy.forwarder")

    async def forward(self, forward: Forward, *, client: Hashable) -> bytes:
        """The reply, in bounded time."""
        if self._loops.caught(forward.query.name):
            return responder.refuse(forward.query, Rcode.REFUSED).message
        if not self._admission.admit(client):
            self._counters.forward_overload += 1
            return responder.refuse(forward.query, Rcode.REFUSED).message
        started = trio.current_time()
        passed = None
        try:
            with trio.move_on_after(GIVE_UP):
                passed = await self._exchange(forward)
        except Exception:  # noqa: BLE001  # one query may fail alone: the connection's others go on
            self._counters.failures += 1
            self._log.exception("a query failed", octets=len(forward.query.message))
        finally:
            self._admission.release(client)
        self._counters.forward_seconds.observe(trio.current_time() - started)
        return self._count(forward, passed)

    async def _exchange(self, forward: Forward) -> bytes | None:
        reply = await self._upstreams.exchange(forward.query)
        if reply is None:
            return None
        return replies.pass_on(reply, forward.query, shields=forward.shields, limit=_LIMIT)

    def _count(self, forward: Forward, passed: bytes | None) -> bytes:
        if passed is None:
            self._counters.forward_timeouts += 1
            self._counters.own_by_rcode[Rcode.SERVFAIL] += 1
            return responder.refuse(forward.query, Rcode.SERVFAIL, extended_error=_NO_REACHABLE_AUTHORITY).message
        self._counters.upstream_by_rcode[rcode_of(passed)] += 1
        return passed
