"""Forwarding for TCP clients: a reply or SERVFAIL in time, within the limits shared with datagrams."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from typing import cast

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, wait_all_tasks_blocked

from dnsproxy.answers.answer_records import Answers, Claimed, build_answers
from dnsproxy.answers.counters import Counters
from dnsproxy.answers.decide import Forward, answer_from
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns.wire import Query
from dnsproxy.forward.admission import REMEMBER, Admission, Failures
from dnsproxy.forward.deadlines import GIVE_UP
from dnsproxy.forward.loop import LoopProbes, shows_loop
from dnsproxy.forward.stream_forwarder import StreamForwarder
from dnsproxy.forward.upstreams import Answered, Upstreams
from dnsproxy.forward.verification import Verification
from dnsproxy.replace.balancers import Balancers
from dnsproxy.tap.hub import Tap
from sidecar.values.endpoints import Endpoint
from tests.kit import upstream_replies
from tests.kit.messages import TXT, extended_error, opt_record, query, read_dnspython, scanned

ASKED = query("www.example.net")
ASKED_EDNS = query("www.example.net", additional=(opt_record(),))
UPSTREAM = Endpoint("192.0.2.53", 53)
NO_REACHABLE_AUTHORITY, CACHED_ERROR = 22, 13


@pytest.fixture
def clock() -> MockClock:
    """All tasks here wait only for the clock."""
    return MockClock(autojump_threshold=0)


class Asked:
    """Upstreams that answer after some seconds, or fail."""

    def __init__(self, *, seconds: float = 0.0, reply: bytes | None = None, error: Exception | None = None) -> None:
        self._seconds = seconds
        self.reply = reply
        self._error = error
        self.queries: list[bytes] = []

    async def exchange_with_source(self, asked: Query) -> Answered | None:
        self.queries.append(asked.message)
        await trio.sleep(self._seconds)
        if self._error is not None:
            raise self._error
        return None if self.reply is None else Answered(UPSTREAM, datagram=False, message=self.reply)

    async def exchange(self, asked: Query) -> bytes | None:
        """The other family of addresses has what the reply to ASKED has."""
        answered = await self.exchange_with_source(asked)
        return None if answered is None else asked.message[:2] + answered.message[2:]


class World:
    """A stream forwarder with these upstreams."""

    def __init__(self, upstreams: Asked, *, total: int = 10, per_client: int = 10) -> None:
        self.admission = Admission(total=total, per_client=per_client)
        self.failures = Failures()
        self.loops = LoopProbes()
        self.counters = Counters()
        asked = cast("Upstreams", upstreams)
        self.verification = Verification(asked, counters=self.counters)
        self.streams = StreamForwarder(
            asked,
            admission=self.admission,
            failures=self.failures,
            loops=self.loops,
            verification=self.verification,
            counters=self.counters,
            tap=Tap(),
        )

    async def ask(
        self, message: bytes = ASKED, *, shields: bool = False, client: str = "client", claim: Answers | None = None
    ) -> bytes:
        return await self.streams.forward(Forward(scanned(message), shields, claim), client=client)


def right(asked: bytes = ASKED) -> bytes:
    """A reply with an ID that is not the client's."""
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
    assert extended_error(reply) == NO_REACHABLE_AUTHORITY
    assert (world.counters.forward_timeouts, world.counters.own_by_rcode[upstream_replies.SERVFAIL]) == (1, 1)
    assert len(world.admission) == 0


@pytest.mark.parametrize(
    ("caps", "admitted"),
    [
        pytest.param({"total": 3}, 3, id="in all"),
        pytest.param({"per_client": 2}, 2, id="per client"),
    ],
)
async def test_beyond_a_limit_a_query_is_refused_at_once_and_no_upstream_is_asked(
    clock: MockClock, caps: dict[str, int], admitted: int
) -> None:
    upstreams = Asked(seconds=1.0, reply=right())
    world = World(upstreams, **caps)
    replies: list[tuple[int, float]] = []
    began = trio.current_time()

    async def ask(number: int) -> None:
        reply = await world.ask(query("www.example.net", flags=number << 4))
        replies.append((upstream_replies.rcode_of(reply), trio.current_time() - began))

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(ask, number)
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


# --- failures that are remembered (RFC 9520) -------------------------------------------------------------------------


async def test_a_failure_is_remembered_for_a_second_and_no_upstream_is_asked(clock: MockClock) -> None:
    upstreams = Asked()
    world = World(upstreams)
    assert extended_error(await world.ask(ASKED_EDNS)) == NO_REACHABLE_AUTHORITY
    for _ in range(5):
        assert extended_error(await world.ask(ASKED_EDNS)) == CACHED_ERROR
    assert len(upstreams.queries) == 1
    assert world.counters.own_by_rcode[upstream_replies.SERVFAIL] == 6
    assert world.counters.forward_timeouts == 1
    await trio.sleep(REMEMBER)
    assert extended_error(await world.ask(ASKED_EDNS)) == NO_REACHABLE_AUTHORITY
    assert len(upstreams.queries) == 2


async def test_a_failure_of_a_query_over_udp_is_one_of_the_same_over_tcp(clock: MockClock) -> None:
    upstreams = Asked(reply=right())
    world = World(upstreams)
    world.failures.add(ASKED_EDNS[2:], trio.current_time())
    assert extended_error(await world.ask(ASKED_EDNS)) == CACHED_ERROR
    assert await world.ask(ASKED) == upstream_replies.right(ASKED)
    assert upstreams.queries == [ASKED]


async def test_failures_are_forgotten_also_without_queries_over_udp(clock: MockClock) -> None:
    world = World(Asked())
    for number in range(20):
        await world.ask(query(f"h{number}.example.net"))
        await trio.sleep(REMEMBER / 4)
        assert len(world.failures.until) <= 5


@pytest.mark.parametrize(
    "upstreams",
    [
        pytest.param(Asked(seconds=99.0), id="its client left"),
        pytest.param(Asked(error=RuntimeError("a bug")), id="a bug of ours"),
        pytest.param(Asked(reply=upstream_replies.right(ASKED, rcode=2, answers=0)), id="SERVFAIL of an upstream"),
    ],
)
async def test_what_is_no_failure_of_the_upstreams_is_not_remembered(clock: MockClock, upstreams: Asked) -> None:
    world = World(upstreams)
    with trio.move_on_after(0.5), capture_logs():
        await world.ask()
    assert not world.failures.until


# --- loops -----------------------------------------------------------------------------------------------------------


async def test_a_probe_of_ours_that_comes_back_over_tcp_is_caught_and_not_forwarded(clock: MockClock) -> None:
    upstreams = Asked(reply=right())
    world = World(upstreams)
    caught: list[bool] = []
    probe = world.loops.make(Endpoint("192.0.2.1", 53), lambda: caught.append(True))
    assert shows_loop(await world.ask(probe.message))
    assert (caught, upstreams.queries, len(world.admission)) == ([True], [], 0)


async def test_a_forged_probe_is_a_query_like_any_other(clock: MockClock) -> None:
    forged = query("0" * 32 + ".loop-probe.switchback.invalid", TXT)
    upstreams = Asked(reply=right(forged))
    world = World(upstreams)
    world.loops.make(Endpoint("192.0.2.1", 53), lambda: pytest.fail("nothing came back"))
    assert await world.ask(forged) == upstream_replies.right(forged)
    assert upstreams.queries == [forged]


# --- equal queries are asked once (RFC 5452 section 5) ---------------------------------------------------------------


async def several(world: World, messages: list[bytes], *, shields: tuple[bool, ...] = ()) -> list[tuple[bytes, float]]:
    """The replies to concurrent queries, in the order of the queries, and the time of each."""
    found: list[tuple[bytes, float]] = [(b"", 0.0)] * len(messages)

    async def ask(place: int) -> None:
        reply = await world.ask(messages[place], shields=place < len(shields) and shields[place])
        found[place] = (reply, trio.current_time())

    async with trio.open_nursery() as nursery:
        for place in range(len(messages)):
            nursery.start_soon(ask, place)
    return found


def under(ident: int, message: bytes = ASKED) -> bytes:
    return ident.to_bytes(2, "big") + message[2:]


async def test_equal_queries_are_asked_once_and_each_is_answered_under_its_id(clock: MockClock) -> None:
    upstreams = Asked(seconds=0.5, reply=right())
    world = World(upstreams, total=50, per_client=50)
    replies = await several(world, [under(ident) for ident in range(20)])
    assert [reply for reply, _ in replies] == [upstream_replies.right(under(ident)) for ident in range(20)]
    assert len(upstreams.queries) == 1
    assert world.counters.upstream_by_rcode[0] == 20
    assert (len(world.admission), world.streams._under_way) == (0, {})


async def test_queries_that_differ_in_an_octet_are_asked_each(clock: MockClock) -> None:
    upstreams = Asked(seconds=0.5, reply=right())
    differing = [
        ASKED,
        ASKED_EDNS,
        query("WWW.example.net"),
        query("www.example.net", TXT),
        query("www.example.net", flags=0),
    ]
    await several(World(upstreams), differing)
    assert sorted(upstreams.queries) == sorted(differing)


async def test_a_query_that_comes_after_the_reply_is_asked_anew(clock: MockClock) -> None:
    upstreams = Asked(seconds=0.5, reply=right())
    world = World(upstreams)
    for _ in range(3):
        assert await world.ask() == upstream_replies.right(ASKED)
    assert len(upstreams.queries) == 3


async def test_those_who_share_a_reply_are_shielded_each_for_himself(clock: MockClock) -> None:
    """The table may have changed between the two queries."""
    nxdomain = upstream_replies.right(ASKED, rcode=upstream_replies.NXDOMAIN, answers=0)
    world = World(Asked(seconds=0.5, reply=nxdomain))
    replies = await several(world, [ASKED, ASKED], shields=(True, False))
    assert [upstream_replies.rcode_of(reply) for reply, _ in replies] == [0, upstream_replies.NXDOMAIN]


async def test_those_who_share_a_query_share_its_silence(clock: MockClock) -> None:
    """Also late ones: a query that a loop brings back must not start again when the first one ends."""
    upstreams = Asked(seconds=99.0)
    world = World(upstreams)
    began = trio.current_time()
    ended: list[float] = []

    async def ask(later: float) -> None:
        await trio.sleep(later)
        assert upstream_replies.rcode_of(await world.ask()) == upstream_replies.SERVFAIL
        ended.append(trio.current_time() - began)

    async with trio.open_nursery() as nursery:
        for later in (0.0, 0.1, 1.6):
            nursery.start_soon(ask, later)
    assert ended == pytest.approx([GIVE_UP] * 3)
    assert len(upstreams.queries) == 1


async def test_where_the_client_who_asked_first_leaves_another_asks_in_its_place(clock: MockClock) -> None:
    upstreams = Asked(seconds=0.5, reply=right())
    world = World(upstreams)
    replies: list[tuple[bytes, float]] = []
    began = trio.current_time()

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as first:
            async with trio.open_nursery() as leaving:
                leaving.start_soon(world.ask)
                await wait_all_tasks_blocked()

                async def stay() -> None:
                    replies.extend(await several(world, [under(7), under(8)]))

                nursery.start_soon(stay)
                await trio.sleep(0.2)
                first.cancel()
    assert [reply for reply, _ in replies] == [upstream_replies.right(under(7)), upstream_replies.right(under(8))]
    assert [at - began for _, at in replies] == pytest.approx([0.7, 0.7])
    assert len(upstreams.queries) == 2
    assert (len(world.admission), world.streams._under_way) == (0, {})


async def test_a_client_who_leaves_takes_nothing_from_those_who_stay(clock: MockClock) -> None:
    upstreams = Asked(seconds=0.5, reply=right())
    world = World(upstreams)
    replies: list[bytes] = []

    async def ask() -> None:
        replies.append(await world.ask())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        with trio.move_on_after(0.2):
            await world.ask()
    assert replies == [upstream_replies.right(ASKED)]
    assert len(upstreams.queries) == 1


async def test_a_query_never_waits_longer_than_its_own_time_however_many_leave_before_it(clock: MockClock) -> None:
    world = World(Asked(seconds=99.0))
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for leaves in (0.4, 0.8, 1.2):

            async def leave(after: float) -> None:
                with trio.move_on_after(after):
                    await world.ask()

            nursery.start_soon(leave, leaves)
            await wait_all_tasks_blocked()
        assert upstream_replies.rcode_of(await world.ask()) == upstream_replies.SERVFAIL
        assert trio.current_time() - began == pytest.approx(GIVE_UP)
    assert len(world.admission) == 0


async def test_a_bug_met_by_one_is_met_by_each_and_ends(clock: MockClock) -> None:
    world = World(Asked(seconds=0.1, error=RuntimeError("a bug")))
    with capture_logs():
        replies = await several(world, [under(ident) for ident in range(5)])
    assert {upstream_replies.rcode_of(reply) for reply, _ in replies} == {upstream_replies.SERVFAIL}
    assert (world.counters.failures, len(world.admission), world.streams._under_way) == (5, 0, {})


# --- names that objects claim ----------------------------------------------------------------------------------------

BALANCER, RELAY = "198.51.100.7", "10.96.7.7"
"""The address of every reply of an upstream here, and what pods are to use."""
NXDOMAIN = upstream_replies.right(ASKED, rcode=upstream_replies.NXDOMAIN, answers=0)


def claimed_world(upstreams: Asked, *, leads: bool) -> World:
    world = World(upstreams)
    writer = TableWriter(ttl=3600)
    writer.lead(Balancers({BALANCER if leads else "203.0.113.10": (RELAY,)}))
    world.verification.use(writer.publish())
    return world


@pytest.mark.parametrize(
    ("upstreams", "leads", "answering"),
    [
        pytest.param(Asked(reply=right()), True, {Claimed.VERIFIED, Claimed.ENFORCED}, id="it leads here"),
        pytest.param(Asked(reply=right()), False, set(), id="it leads elsewhere"),
        pytest.param(Asked(reply=NXDOMAIN), True, {Claimed.VERIFIED}, id="there is no such name"),
        pytest.param(Asked(seconds=99.0), True, {Claimed.VERIFIED}, id="silence"),
        pytest.param(Asked(), True, {Claimed.VERIFIED}, id="no upstream"),
        pytest.param(
            Asked(reply=upstream_replies.right(ASKED, rcode=2, answers=0)), True, {Claimed.VERIFIED}, id="SERVFAIL"
        ),
        pytest.param(
            Asked(reply=upstream_replies.right(ASKED, answers=0)), True, {Claimed.VERIFIED}, id="of neither family"
        ),
    ],
)
@pytest.mark.parametrize("claimed", [Claimed.VERIFIED, Claimed.ENFORCED])
async def test_a_claimed_name_is_answered_over_tcp_where_it_leads_here_or_nobody_else_has_it(
    clock: MockClock, upstreams: Asked, leads: bool, answering: set[Claimed], claimed: Claimed
) -> None:
    world = claimed_world(upstreams, leads=leads)
    row = build_answers((RELAY,), ttl=5, claimed=claimed)
    began = trio.current_time()
    reply = await world.ask(claim=row)
    assert trio.current_time() - began <= GIVE_UP
    if claimed in answering:
        assert reply == answer_from(row, scanned(ASKED), stream=True)
    elif upstreams.reply is not None:
        assert reply == ASKED[:2] + upstreams.reply[2:]
    else:
        assert upstream_replies.rcode_of(reply) == upstream_replies.SERVFAIL
    assert sum(world.counters.table_by_rcode) == (claimed in answering)
    assert len(world.admission) == 0


async def test_what_leads_to_a_replaced_load_balancer_is_replaced_over_tcp_whatever_the_name(clock: MockClock) -> None:
    world = claimed_world(Asked(reply=right()), leads=True)
    reply = await world.ask()
    assert reply == upstream_replies.right(ASKED).replace(bytes([198, 51, 100, 7]), bytes([10, 96, 7, 7]))
    assert (world.counters.forward_replaced, world.counters.upstream_by_rcode[0]) == (1, 1)
