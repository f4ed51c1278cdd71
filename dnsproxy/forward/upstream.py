"""An upstream: a server that queries are forwarded to, the ways to ask it, and its health.

The law: health is judged by replies, and a failing or looping upstream is probed until it recovers. upstreams.py
decides which upstream is asked next, deadlines.py when.
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
from dnsproxy.forward.deadlines import LOOP_EVERY, LOOP_TIMEOUT, LOOPING_EVERY, PROBE_EVERY, STREAM_PROBE_EVERY
from dnsproxy.forward.dial import default_context
from dnsproxy.forward.flight import Health
from dnsproxy.forward.loop import LoopProbes, shows_loop
from dnsproxy.forward.pipeline import MakeContext, Pipeline
from dnsproxy.forward.settings import TcpEndpoint, TlsEndpoint
from dnsproxy.forward.source_ports import SOCKETS, SourcePorts
from dnsproxy.forward.upstream_socket import Receiver
from sidecar.loop.poller import Poller
from sidecar.sockets.socket_address import family_of, socket_address
from sidecar.values.endpoints import Endpoint

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
        ports: int | None = None,
        alone: trio.CapacityLimiter | None = None,
        use_tcp: bool = False,
        make_context: MakeContext = default_context,
        looped: Callable[[], None] = lambda: None,
    ) -> None:
        self.endpoint = endpoint
        self.stream_only = use_tcp or isinstance(endpoint, TcpEndpoint | TlsEndpoint)
        """Whether it is asked over streams only, never over UDP."""
        self.health = Health()
        # A path may lose TCP alone: then queries over UDP must not avoid this upstream.
        self.pipeline = Pipeline(
            endpoint, health=self.health if self.stream_only else Health(), make_context=make_context
        )
        self._ids = random_ids()
        self.life = trio.CancelScope()
        """Cancels run()."""
        self.looping = False
        """Whether it routes queries back to this server; it is not asked then."""
        self.ports = SourcePorts(
            endpoint, ids=self._ids, health=self.health, poller=poller, batches=batches, receiver=receiver, most=ports
        )
        self._alone = alone or trio.CapacityLimiter(SOCKETS)
        self._looped = looped
        self._log = structlog.get_logger("dnsproxy.upstream")

    def __str__(self) -> str:
        return str(self.endpoint)

    @property
    def asked(self) -> bool:
        """Whether a query was ever sent to it; over TCP and TLS the loop probe is one."""
        return self.stream_only or self.ports.opened

    async def run(self, loops: LoopProbes | None) -> None:
        """Keep its streams and probe its health until cancelled; without LoopProbes it is trusted not to loop."""
        with self.life:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.pipeline.run)
                nursery.start_soon(self._watch_health)
                if not self.stream_only:
                    nursery.start_soon(self._watch_stream_health)
                if loops is not None:
                    nursery.start_soon(self._watch_loop, loops)

    async def _watch_health(self) -> None:
        """Probe a failing upstream: it gets few queries that could show that it has recovered."""
        while True:
            await trio.sleep(PROBE_EVERY)
            if self.health.failing and await self._ask_in_time(_PROBE, timeout=PROBE_EVERY) is not None:
                self.health.misses = 0

    async def _watch_stream_health(self) -> None:
        while True:
            await trio.sleep(STREAM_PROBE_EVERY)
            if self.pipeline.health.failing:
                with trio.move_on_after(STREAM_PROBE_EVERY):
                    # A reply makes it healthy.
                    await self.pipeline.ask(_PROBE)

    async def _watch_loop(self, loops: LoopProbes) -> None:
        while True:
            came_back = trio.Event()
            probe = loops.make(self.endpoint, came_back.set)
            try:
                reply = await self._ask_in_time(probe, timeout=LOOP_TIMEOUT)
            finally:
                loops.forget(probe)
            # Silence does not end a loop: the probe may be lost on its way.
            self._note_loop(came_back.is_set() or (self.looping if reply is None else shows_loop(reply)))
            await trio.sleep(LOOPING_EVERY if self.looping else LOOP_EVERY)

    def _note_loop(self, looping: bool) -> None:
        if looping and not self.looping:
            self._log.error(
                "this upstream routes queries back to dnsproxy; it is excluded while it does. In a pod, use "
                "dnsPolicy: Default, or name other servers with --upstream",
                upstream=str(self),
            )
        elif self.looping and not looping:
            self._log.info("this upstream no longer routes queries back to dnsproxy", upstream=str(self))
        if looping != self.looping:
            self.looping = looping
            self._looped()

    async def _ask_in_time(self, query: Query, *, timeout: float) -> bytes | None:
        """The reply, if one arrives."""
        with trio.move_on_after(timeout):
            ask = self.pipeline.ask if self.stream_only else self.ask_datagram
            return await ask(query)
        return None

    async def ask_datagram(self, query: Query) -> bytes | None:
        """Ask over UDP from a port of its own: the reply, still with our ID; None if the kernel refuses.

        Waits while all descriptors for such ports are in use. The caller sets the deadline.
        """
        message_id = next(self._ids)
        try:
            async with self._alone:
                return await self._exchange_datagram(query, message_id)
        except OSError:
            return None

    async def _exchange_datagram(self, query: Query, message_id: bytes) -> bytes:
        with trio.socket.socket(family_of(self.endpoint), socket.SOCK_DGRAM) as sock:
            await sock.connect(socket_address(self.endpoint))
            await sock.send(message_id + query.message[2:])
            while True:
                reply = await sock.recv(_LARGEST)
                if reply[:2] == message_id and replies.belongs(reply, query.question):
                    return reply
