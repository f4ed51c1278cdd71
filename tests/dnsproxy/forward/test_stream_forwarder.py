"""Forwarding for clients over TCP: a reply or SERVFAIL in time, within the caps that datagrams share."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, wait_all_tasks_blocked

from dnsproxy.counters import Counters
from dnsproxy.forward.admission import Admission
from dnsproxy.forward.flight import GIVE_UP
from dnsproxy.forward.loop import LoopProbes
from dnsproxy.forward.stream_forwarder import StreamForwarder
from dnsproxy.forward.upstreams import Upstreams
from dnsproxy.responder import Forward
from dnsproxy.wire import Query
from tests.dnsproxy import upstream_replies
from tests.dnsproxy.messages import TXT, opt_record, query, read_dnspython, scanned

ASKED = query("www.example.net")
ASKED_EDNS = query("www.example.net", additional=(opt_record(),))
NO_REACHABLE_AUTHORITY = 22


@pytest.fixture
def clock() -> MockClock:
    """Nobody here waits for anything but the clock."""
    return MockClock(autojump_threshold=0)


class Asked:
    """Upstreams that answer after some seconds, or fail."""

    def __init__(self, *, seconds: float = 0.0, reply: bytes | None = None, error: Exception | None = None) -> None:
        self._seconds = seconds
        self._reply = reply
        self._error = error
        self.queries: list[bytes] = []

    async def exchange(self, asked: Query) -> bytes | None:
        self.queries.append(asked.message)
        await trio.sleep(self._seconds)
        if self._error is not None:
            raise self._error
        return self._reply


class World:
    """A stream forwarder over such upstreams."""

    def __init__(self, upstreams: Asked, *, total: int = 10, per_client: int = 10) -> None:
        self.admission = Admission(total=total, per_client=per_client)
        self.loops = LoopProbes()
        self.counters = Counters()
        self.streams = StreamForwarder(
            cast("Upstreams", upstreams), admission=self.admission, loops=self.loops, counters=self.counters
        )

    async def ask(self, message: bytes = ASKED, *, shields: bool = False, client: Hashable = "client") -> bytes:
        return await self.streams.forward(Forward(scanned(message), shields), client=client)


def right(asked: bytes = ASKED) -> bytes:
    """A reply under an ID that is not the client's."""
    return b"\xff\xff" + upstream_replies.right(asked)[2:]


async def test_a_reply_passes_octet_for_octet_but_for_its_id(clock: MockClock) -> None:
    upstreams = Asked(seconds=0.3, reply=right())
    world = World(upstreams)
    assert await world.ask() == upstream_replies.right(ASKED)
    assert upstreams.queries == [ASKED]
    assert world.counters.upstream_by_rcode[0] == 1
    assert world.counters.forward_seconds.total == pytest.approx(0.3)
    assert len(world.admission) == 0


async def test_a_large_reply_passes_whole_for_a_stream_holds_it(clock: MockClock) -> None:
    large = upstream_replies.sized(ASKED, 65_535)
    assert await World(Asked(reply=large)).ask() == large


async def test_what_is_ours_shields_itself_over_tcp_too(clock: MockClock) -> None:
    nxdomain = upstream_replies.right(ASKED, rcode=upstream_replies.NXDOMAIN, answers=0)
    world = World(Asked(reply=nxdomain))
    assert await world.ask(shields=True) == upstream_replies.right(ASKED, answers=0)
    assert await world.ask() == nxdomain


@pytest.mark.parametrize(
    ("upstreams", "seconds"),
    [
        pytest.param(Asked(seconds=99.0, reply=right()), GIVE_UP, id="silence"),
        pytest.param(Asked(), 0.0, id="no answer at once"),
    ],
)
async def test_no_answer_is_servfail_with_its_reason_in_time(
    clock: MockClock, upstreams: Asked, seconds: float
) -> None:
    world = World(upstreams)
    began = trio.current_time()
    reply = await world.ask(ASKED_EDNS)
    assert trio.current_time() - began == seconds
    reading = read_dnspython(reply)
    assert (reading.rcode, reading.ident, len(reading.question)) == (upstream_replies.SERVFAIL, 0x1234, 1)
    assert reply[-6:] == b"\0\x0f\0\x02" + NO_REACHABLE_AUTHORITY.to_bytes(2, "big")
    assert (world.counters.forward_timeouts, world.counters.own_by_rcode[upstream_replies.SERVFAIL]) == (1, 1)
    assert len(world.admission) == 0


@pytest.mark.parametrize(
    ("caps", "admitted"),
    [
        pytest.param({"total": 3}, 3, id="in all"),
        pytest.param({"per_client": 2}, 2, id="per client"),
    ],
)
async def test_beyond_a_cap_a_query_is_refused_at_once_and_nobody_is_asked(
    clock: MockClock, caps: dict[str, int], admitted: int
) -> None:
    upstreams = Asked(seconds=1.0, reply=right())
    world = World(upstreams, **caps)
    replies: list[tuple[int, float]] = []
    began = trio.current_time()

    async def ask() -> None:
        reply = await world.ask()
        replies.append((upstream_replies.rcode_of(reply), trio.current_time() - began))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)
    assert replies == [(upstream_replies.REFUSED, 0.0)] * (5 - admitted) + [(0, 1.0)] * admitted
    assert len(upstreams.queries) == admitted
    assert world.counters.forward_overload == 5 - admitted
    assert len(world.admission) == 0
    assert await world.ask() == upstream_replies.right(ASKED)


async def test_an_unforeseen_exception_is_servfail_for_one_query(clock: MockClock) -> None:
    world = World(Asked(error=RuntimeError("a bug")))
    with capture_logs() as logs:
        assert upstream_replies.rcode_of(await world.ask()) == upstream_replies.SERVFAIL
    assert [line["log_level"] for line in logs] == ["error"]
    assert "www" not in str({name: value for name, value in logs[0].items() if name != "exc_info"})
    assert (world.counters.failures, len(world.admission)) == (1, 0)


async def test_a_query_whose_client_left_gives_its_place_back(clock: MockClock) -> None:
    world = World(Asked(seconds=1.0, reply=right()))
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(world.ask)
        await wait_all_tasks_blocked()
        assert len(world.admission) == 3
        nursery.cancel_scope.cancel()
    assert len(world.admission) == 0


async def test_a_probe_of_ours_that_comes_back_over_tcp_is_caught_and_not_forwarded(clock: MockClock) -> None:
    upstreams = Asked(reply=right())
    world = World(upstreams)
    caught: list[bool] = []
    probe = world.loops.make(lambda: caught.append(True))
    assert upstream_replies.rcode_of(await world.ask(probe.message)) == upstream_replies.REFUSED
    assert (caught, upstreams.queries, len(world.admission)) == ([True], [], 0)


async def test_a_forged_probe_is_a_query_like_any_other(clock: MockClock) -> None:
    forged = query("0" * 32 + ".loop-probe.switchback.invalid", TXT)
    upstreams = Asked(reply=right(forged))
    world = World(upstreams)
    world.loops.make(lambda: pytest.fail("nothing came back"))
    assert await world.ask(forged) == upstream_replies.right(forged)
    assert upstreams.queries == [forged]
