"""The upstreams in use, and the order in which a query asks them.

The law: failing upstreams come last and looping ones are excluded, but no query waits to find that out. The upstreams
may be replaced at any time; queries that wait for the old ones still get their replies.

Several ways to one reply race: the next way starts when the previous one has failed or is silent, and the first reply
wins. A slow way is not given up for a later one. Once there is a reply, or the caller is cancelled, nothing is left
running.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import trio

from dnsproxy.datagrams.connected import Batches
from dnsproxy.dns.wire import Query, is_truncated
from dnsproxy.forward.deadlines import GIVE_UP, PORT_CHECK, patience, stream_patience
from dnsproxy.forward.dial import default_context
from dnsproxy.forward.flight import FAILING
from dnsproxy.forward.loop import LoopProbes
from dnsproxy.forward.settings import ForwardSettings, ZoneUpstreams
from dnsproxy.forward.source_ports import SOCKETS
from dnsproxy.forward.upstream import Upstream
from dnsproxy.forward.upstream_report import UpstreamReport
from dnsproxy.forward.upstream_socket import Receiver
from sidecar.loop.poller import Poller
from sidecar.values.endpoints import Endpoint


class Answered(NamedTuple):
    """A reply, and where it came from."""

    endpoint: Endpoint
    datagram: bool
    """Whether it came over UDP."""
    message: bytes


T = TypeVar("T")
Ask = Callable[[], Awaitable[T | None]]
"""One way to ask: returns the reply, or None."""


class Upstreams:
    """Makes, keeps and closes upstreams. run() must be running for their streams and their health."""

    def __init__(self, settings: ForwardSettings, *, poller: Poller, receiver: Receiver) -> None:
        self._poller = poller
        self._receiver = receiver
        self._batches = Batches()
        self._settings = settings
        self._alone = trio.CapacityLimiter(max(1, settings.source_ports // 4))
        self._make_context = functools.cache(default_context)
        self.used: list[Upstream] = [self._make(endpoint) for endpoint in _endpoints(settings)]
        """In the order of the settings, those of all names first."""
        self._usable: list[Upstream] = []
        """For the names without a zone of their own."""
        self._in_zones: list[tuple[ZoneUpstreams, list[Upstream]]] = []
        self._refresh()
        self._replaced: list[Upstream] = []
        self._turn = 0
        self._loops: LoopProbes | None = None
        self._nursery: trio.Nursery | None = None

    @property
    def most_attempts(self) -> int:
        """How often one upstream may be asked for one query."""
        return self._settings.attempts

    def reports(self) -> list[UpstreamReport]:
        """The state of each upstream in use, in the order to ask them."""
        return [
            UpstreamReport(str(one), one.asked, one.health.failing, one.looping, one.health.misses, one.stream_only)
            for one in self.used
        ]

    async def run(self, loops: LoopProbes) -> None:
        """Keep the upstreams until cancelled."""
        async with trio.open_nursery() as nursery:
            # Kept so that the upstreams of later settings run here too; all of them end with run().
            self._nursery = nursery
            self._loops = loops if self._settings.detect_loops else None
            self._mark_upstreams()
            for upstream in self.used:
                nursery.start_soon(upstream.run, self._loops)
            nursery.start_soon(self._retire_old_ports)
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    def replace(self, settings: ForwardSettings) -> None:
        """Use other upstreams from now on; an upstream of both settings keeps its sockets, connection and health."""
        same_ways = settings.use_tcp == self._settings.use_tcp
        kept = {upstream.endpoint: upstream for upstream in self.used if same_ways}
        self._settings = settings
        # Made once for all, because the authorities take up to 0.1 s, in which no query is answered, and a megabyte;
        # anew for a change, because their file may have changed.
        self._make_context = functools.cache(default_context)
        before, self.used = (
            self.used,
            [kept.get(endpoint) or self._start(endpoint) for endpoint in _endpoints(settings)],
        )
        self._refresh()
        self._mark_upstreams()
        for upstream in self.used:
            upstream.ports.most = _ports_each(settings)
        for upstream in before:
            if upstream not in self.used:
                self._retire(upstream)

    def _mark_upstreams(self) -> None:
        if self._loops is not None:
            self._loops.set_upstreams(_endpoints(self._settings))

    def _refresh(self) -> None:
        plain = self.used[: len(self._settings.upstreams)]
        self._usable = [upstream for upstream in plain if not upstream.looping]
        usable = {upstream.endpoint: upstream for upstream in self.used if not upstream.looping}
        self._in_zones = [
            (zone, [usable[one] for one in zone.upstreams if one in usable]) for zone in self._settings.zones
        ]

    def route(self, name: bytes = b"\0") -> Sequence[Upstream]:
        """The upstreams for a query of this name (in lower-case wire form), in the order to ask them."""
        used, rotate = self._usable, self._settings.rotate
        for zone, found in self._in_zones:
            if zone.serves(name):
                used, rotate = found, zone.rotate
                break
        if rotate and len(used) > 1:
            self._turn = (self._turn + 1) % len(used)
            used = used[self._turn :] + used[: self._turn]
        for upstream in used:
            if upstream.health.misses >= FAILING:
                return sorted(used, key=lambda upstream: upstream.health.failing)
        return used

    async def exchange(self, query: Query) -> bytes | None:
        """The reply of exchange_with_source alone."""
        answered = await self.exchange_with_source(query)
        return answered.message if answered else None

    async def exchange_with_source(self, query: Query) -> Answered | None:
        """A reply for a TCP client: over TCP (RFC 5625 section 4.4.1), or over UDP if that fails.

        Upstreams whose connections fail are asked over TCP at the end.
        """
        route = self.route(query.name)
        asks: list[Ask[Answered]] = []
        asks += [partial(self._ask_stream, one, query) for one in route if not one.pipeline.health.failing]
        asks += [partial(_ask_whole, upstream, query) for upstream in route if not upstream.stream_only]
        asks += [partial(self._ask_stream, one, query) for one in route if one.pipeline.health.failing]
        return await first_answer(asks, patience=patience(len(asks)))

    async def _ask_stream(self, upstream: Upstream, query: Query) -> Answered | None:
        """Ask over a stream; without UDP, again if that fails, as for clients over UDP.

        Behind a balancer the next connection may reach a better server.
        """
        for _ in range(self.most_attempts if upstream.stream_only else 1):
            answered = await _ask_stream_once(upstream, query)
            if answered is not None:
                return answered
        return None

    async def _retire_old_ports(self) -> None:
        """Apart from the sweep over the flights, which stops while there are none."""
        while True:
            await trio.sleep(PORT_CHECK)
            for upstream in self.used:
                upstream.ports.retire_old()

    def close_retired(self) -> None:
        """Close the replaced sockets that wait for no reply."""
        for upstream in self.used:
            upstream.ports.close_retired()

    def close(self) -> None:
        """Close every socket."""
        for upstream in self.used + self._replaced:
            upstream.ports.close()

    def _make(self, endpoint: Endpoint) -> Upstream:
        return Upstream(
            endpoint,
            poller=self._poller,
            batches=self._batches,
            receiver=self._receiver,
            ports=_ports_each(self._settings),
            alone=self._alone,
            use_tcp=self._settings.use_tcp,
            make_context=self._make_context,
            looped=self._refresh,
        )

    def _start(self, endpoint: Endpoint) -> Upstream:
        upstream = self._make(endpoint)
        if self._nursery is not None:
            self._nursery.start_soon(upstream.run, self._loops)
        return upstream

    def _retire(self, upstream: Upstream) -> None:
        if self._nursery is None:
            upstream.ports.close()
        else:
            self._replaced.append(upstream)
            self._nursery.start_soon(self._end, upstream)

    async def _end(self, upstream: Upstream) -> None:
        # Every flight with this upstream on its route ends before this.
        await trio.sleep(2 * GIVE_UP)
        self._replaced.remove(upstream)
        upstream.ports.close()
        upstream.life.cancel()


def _endpoints(settings: ForwardSettings) -> list[Endpoint]:
    """Those of all names, and after them those that only zones have."""
    in_zones = dict.fromkeys(one for zone in settings.zones for one in zone.upstreams)
    return [*settings.upstreams, *(one for one in in_zones if one not in settings.upstreams)]


def _ports_each(settings: ForwardSettings) -> int:
    """Source ports in use for one upstream.

    Of all sockets, a quarter is for queries from ports of their own, and a third of the others for replaced ports.
    """
    return max(1, min(SOCKETS, settings.source_ports // (2 * max(1, len(_endpoints(settings))))))


async def ask_streams(route: Sequence[Upstream], query: Query) -> Answered | None:
    """The first reply of the upstreams of a route over a stream. The caller sets the deadline."""
    asks = [partial(_ask_stream_once, upstream, query) for upstream in route]
    return await first_answer(asks, patience=stream_patience(len(asks)))


async def first_answer(asks: Iterable[Ask[T]], *, patience: float) -> T | None:
    """The first reply, or None if every way failed; `patience` is in seconds. The caller sets the deadline."""
    answers: list[T] = []
    async with trio.open_nursery() as nursery:

        async def run(ask: Ask[T], ended: trio.Event) -> None:
            answer = await ask()
            if answer is not None:
                answers.append(answer)
                nursery.cancel_scope.cancel()
            ended.set()

        for ask in asks:
            ended = trio.Event()
            nursery.start_soon(run, ask, ended)
            with trio.move_on_after(patience):
                await ended.wait()
    return answers[0] if answers else None


async def _ask_stream_once(upstream: Upstream, query: Query) -> Answered | None:
    reply = await upstream.pipeline.ask(query)
    return None if reply is None else Answered(upstream.endpoint, datagram=False, message=reply)


async def _ask_whole(upstream: Upstream, query: Query) -> Answered | None:
    """Ask over UDP for a client that cannot use a truncated reply."""
    reply = await upstream.ask_datagram(query)
    return None if reply is None or is_truncated(reply) else Answered(upstream.endpoint, datagram=True, message=reply)
