"""An upstream: a server that queries are forwarded to, the ways to it, and what is known of its health.

The law: health is judged by outcomes, and what is left out is looked at again until it is well. Which upstream is asked
next, and when, is the forwarder's business.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

import structlog
import trio

from dnsproxy.datagrams.connected import Batches
from dnsproxy.dns import wire
from dnsproxy.dns.wire import Query, random_ids
from dnsproxy.forward import replies
from dnsproxy.forward.deadlines import LOOP_EVERY, LOOP_TIMEOUT, LOOPING_EVERY, PROBE_EVERY
from dnsproxy.forward.flight import Health
from dnsproxy.forward.loop import LoopProbes
from dnsproxy.forward.pipeline import Pipeline
from dnsproxy.forward.settings import TlsEndpoint
from dnsproxy.forward.source_ports import SourcePorts
from dnsproxy.forward.upstream_socket import Receiver
from sidecar.endpoints import Endpoint
from sidecar.poller import Poller
from sidecar.socket_address import family_of, socket_address

_LARGEST: Final = 65535
_PROBE: Final = wire.plain_query(b"\0", 2)  # `. IN NS`, as CoreDNS asks


class Upstream:
    """One server. run() must be running for its streams and its health."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        poller: Poller,
        batches: Batches,
        receiver: Receiver,
        use_tcp: bool = False,
        looped: Callable[[], None] = lambda: None,
    ) -> None:
        self.endpoint = endpoint
        self.pipeline = Pipeline(endpoint)
        self.stream_only = use_tcp or isinstance(endpoint, TlsEndpoint)
        """Whether it is never asked over UDP."""
        self.health = Health()
        self._ids = random_ids()
        self.life = trio.CancelScope()
        """What run() lives in."""
        self.looping = False
        """Whether it leads back to us; then it is not asked."""
        self.ports = SourcePorts(
            endpoint, ids=self._ids, health=self.health, poller=poller, batches=batches, receiver=receiver
        )
        self._looped = looped
        self._log = structlog.get_logger("dnsproxy.upstream")

    def __str__(self) -> str:
        return str(self.endpoint)

    async def run(self, loops: LoopProbes | None) -> None:
        """Keep its streams and look after its health until cancelled; without LoopProbes it is trusted not to loop."""
        with self.life:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.pipeline.run)
                nursery.start_soon(self._watch_health)
                if loops is not None:
                    nursery.start_soon(self._watch_loop, loops)

    async def _watch_health(self) -> None:
        """An upstream that has gone behind the others gets no queries that could show it well again: ask it."""
        while True:
            await trio.sleep(PROBE_EVERY)
            if self.health.failing and await self._ask_in_time(_PROBE, timeout=PROBE_EVERY):
                self.health.misses = 0

    async def _watch_loop(self, loops: LoopProbes) -> None:
        while True:
            came_back = trio.Event()
            probe = loops.make(came_back.set)
            try:
                answered = await self._ask_in_time(probe, timeout=LOOP_TIMEOUT)
            finally:
                loops.forget(probe)
            # Silence mends nothing: the probe may be lost on its way round.
            self._note_loop(came_back.is_set() or (self.looping and not answered))
            await trio.sleep(LOOPING_EVERY if self.looping else LOOP_EVERY)

    def _note_loop(self, looping: bool) -> None:
        if looping and not self.looping:
            self._log.error(
                "this upstream leads back to us; it is left out until it does not. In a pod, use dnsPolicy: Default, "
                "or name other servers with --upstream",
                upstream=str(self),
            )
        elif self.looping and not looping:
            self._log.info("this upstream no longer leads back to us", upstream=str(self))
        if looping != self.looping:
            self.looping = looping
            self._looped()

    async def _ask_in_time(self, query: Query, *, timeout: float) -> bool:
        """Whether anything comes back."""
        with trio.move_on_after(timeout):
            ask = self.pipeline.ask if self.stream_only else self.ask_datagram
            return await ask(query) is not None
        return False

    async def ask_datagram(self, query: Query) -> bytes | None:
        """Ask over UDP from a port of its own: the reply, its ID still ours; None where the kernel refuses."""
        message_id = next(self._ids)
        try:
            with trio.socket.socket(family_of(self.endpoint), socket.SOCK_DGRAM) as sock:
                await sock.connect(socket_address(self.endpoint))
                await sock.send(message_id + query.message[2:])
                while True:
                    reply = await sock.recv(_LARGEST)
                    if reply[:2] == message_id and replies.belongs(reply, query.question):
                        return reply
        except OSError:
            return None
