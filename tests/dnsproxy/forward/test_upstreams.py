"""The upstreams in use: the order to ask them, replacing them, and every way to a reply for a TCP client."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from dnsproxy.forward import source_ports
from dnsproxy.forward import upstreams as forward_upstreams
from dnsproxy.forward.deadlines import GIVE_UP, PORT_CHECK
from dnsproxy.forward.loop import LoopProbes
from dnsproxy.forward.settings import ForwardSettings, TcpEndpoint, TlsEndpoint, ZoneUpstreams
from dnsproxy.forward.upstream import Upstream
from dnsproxy.forward.upstreams import Ask, Upstreams, ask_streams, first_answer
from sidecar.loop.poller import Poller
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.forward.flights import Noted, flight
from tests.kit import messages, upstream_replies
from tests.kit.dns_server import TRUSTING
from tests.kit.faulty_upstream import (
    Close,
    Pause,
    Reset,
    Script,
    Step,
    answer,
    faulty_upstream,
    refusing_upstream,
    silence,
)

ASKED = messages.scanned(messages.query("www.example.net"))
ENDPOINTS = tuple(Endpoint(f"192.0.2.{number}", 53) for number in range(1, 6))


@pytest.fixture
def poller() -> Iterator[Poller]:
    with Poller() as made:
        yield made


def made(poller: Poller, *endpoints: Endpoint, settings: ForwardSettings = TRUSTING) -> Upstreams:
    return Upstreams(replace(settings, upstreams=endpoints), poller=poller, receiver=Noted())


@asynccontextmanager
async def alive(upstreams: Upstreams, loops: LoopProbes | None = None) -> AsyncIterator[Upstreams]:
    """Run them for the time of the block."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upstreams.run, loops or LoopProbes())
        await wait_all_tasks_blocked()
        yield upstreams
        nursery.cancel_scope.cancel()
    upstreams.close()


def hosts(upstreams: Upstreams) -> list[str]:
    """The last number of each address on a route."""
    return [upstream.endpoint.host.rpartition(".")[2] for upstream in upstreams.route()]


def without_id(message: bytes | None) -> bytes | None:
    return None if message is None else message[2:]


def test_the_authorities_are_read_once_for_all_upstreams_of_a_setting(
    poller: Poller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take long enough to delay every query, and fifteen upstreams would take fifteen times as long."""
    contexts: list[ssl.SSLContext] = []

    def make() -> ssl.SSLContext:
        contexts.append(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        return contexts[-1]

    monkeypatch.setattr(forward_upstreams, "default_context", make)
    secured = [TlsEndpoint(f"192.0.2.{number}", 853, f"dns{number}.example.org") for number in range(15)]
    upstreams = made(poller, *ENDPOINTS)
    upstreams.replace(replace(TRUSTING, upstreams=ENDPOINTS))
    assert contexts == [], "without TLS, none are needed"
    upstreams.replace(replace(TRUSTING, upstreams=tuple(secured[:14])))
    assert len(contexts) == 1
    upstreams.replace(replace(TRUSTING, upstreams=tuple(secured)))
    assert len(contexts) == 2, "their file may have changed"
    upstreams.replace(replace(TRUSTING, upstreams=tuple(secured)))
    assert len(contexts) == 2
    upstreams.close()


# --- the order -------------------------------------------------------------------------------------------------------


def test_upstreams_are_asked_in_the_order_of_the_settings(poller: Poller) -> None:
    upstreams = made(poller, *ENDPOINTS)
    assert [hosts(upstreams) for _ in range(3)] == [list("12345")] * 3


def test_without_upstreams_a_route_is_empty(poller: Poller) -> None:
    assert hosts(made(poller)) == []
    assert hosts(made(poller, settings=replace(TRUSTING, rotate=True))) == []


def test_rotation_begins_with_each_as_often_and_keeps_the_order(poller: Poller) -> None:
    upstreams = made(poller, *ENDPOINTS[:3], settings=replace(TRUSTING, rotate=True))
    routes = ["".join(hosts(upstreams)) for _ in range(30)]
    assert Counter(routes) == {"123": 10, "231": 10, "312": 10}


@pytest.mark.parametrize("sick", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)], ids=str)
def test_failing_upstreams_come_last_whatever_their_place(poller: Poller, sick: tuple[int, ...]) -> None:
    upstreams = made(poller, *ENDPOINTS[:3])
    for place in sick:
        upstreams.used[place].health.misses = 3
    assert hosts(upstreams) == sorted("123", key=lambda number: int(number) - 1 in sick)
    assert [str(upstream.endpoint) for upstream in upstreams.used] == [str(endpoint) for endpoint in ENDPOINTS[:3]]


def test_if_all_upstreams_fail_the_order_is_that_of_the_settings(poller: Poller) -> None:
    upstreams = made(poller, *ENDPOINTS)
    for upstream in upstreams.used:
        upstream.health.misses = 99
    assert hosts(upstreams) == list("12345")


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), max_size=5),
    st.booleans(),
    st.integers(1, 8),
)
def test_a_route_has_each_upstream_that_does_not_loop_once_and_failing_ones_last(
    states: list[tuple[bool, bool]], rotate: bool, turns: int
) -> None:
    with Poller() as poller:
        upstreams = made(poller, *ENDPOINTS[: len(states)], settings=replace(TRUSTING, rotate=rotate))
        for upstream, (failing, looping) in zip(upstreams.used, states, strict=True):
            upstream.health.misses = 3 if failing else 0
            upstream._note_loop(looping)
        expected = {upstream for upstream in upstreams.used if not upstream.looping}
        for _ in range(turns):
            route = upstreams.route()
            assert set(route) == expected
            assert len(route) == len(expected)
            assert [upstream.health.failing for upstream in route] == sorted(
                upstream.health.failing for upstream in route
            )


def test_a_looping_upstream_is_excluded_while_it_loops(poller: Poller) -> None:
    upstreams = made(poller, *ENDPOINTS[:2])
    first, second = upstreams.used
    first._note_loop(looping=True)
    assert hosts(upstreams) == ["2"]
    second._note_loop(looping=True)
    assert hosts(upstreams) == []
    first._note_loop(looping=False)
    assert hosts(upstreams) == ["1"]


def test_a_route_that_was_given_does_not_change_with_health_or_settings(poller: Poller) -> None:
    upstreams = made(poller, *ENDPOINTS[:2])
    route = upstreams.route()
    before = list(route)
    upstreams.used[0]._note_loop(looping=True)
    upstreams.replace(replace(TRUSTING, upstreams=ENDPOINTS[3:]))
    assert list(route) == before


@pytest.mark.parametrize("attempts", [1, 2])
def test_how_often_one_may_be_asked_is_a_setting(poller: Poller, attempts: int) -> None:
    upstreams = made(poller, settings=replace(TRUSTING, attempts=attempts))
    assert upstreams.most_attempts == attempts
    upstreams.replace(replace(TRUSTING, attempts=3 - attempts))
    assert upstreams.most_attempts == 3 - attempts


# --- replacing -------------------------------------------------------------------------------------------------------


def settings(*endpoints: Endpoint, use_tcp: bool = False) -> ForwardSettings:
    return replace(TRUSTING, upstreams=endpoints, use_tcp=use_tcp)


def test_one_that_stays_keeps_its_sockets_and_its_health(poller: Poller) -> None:
    upstreams = made(poller, *ENDPOINTS[:3])
    second = upstreams.used[1]
    second.health.misses = 2
    upstreams.replace(settings(ENDPOINTS[3], ENDPOINTS[1]))
    assert [upstream.endpoint for upstream in upstreams.used] == [ENDPOINTS[3], ENDPOINTS[1]]
    assert upstreams.used[1] is second
    assert second.health.misses == 2
    assert hosts(upstreams) == ["4", "2"]


def test_a_looping_upstream_that_stays_remains_excluded(poller: Poller) -> None:
    upstreams = made(poller, *ENDPOINTS[:2])
    upstreams.used[0]._note_loop(looping=True)
    upstreams.replace(settings(*ENDPOINTS[:3]))
    assert hosts(upstreams) == ["2", "3"]


def test_the_same_address_over_another_transport_is_another_upstream(poller: Poller) -> None:
    plain = Endpoint("192.0.2.1", 853)
    upstreams = made(poller, plain)
    before = upstreams.used[0]
    for other in (
        settings(TlsEndpoint(plain.host, plain.port, "dns.example.org")),
        settings(TlsEndpoint(plain.host, plain.port, "other.example.org")),
        settings(plain, use_tcp=True),
    ):
        upstreams.replace(other)
        assert upstreams.used[0] is not before
        assert upstreams.used[0].stream_only
        before = upstreams.used[0]


def test_all_may_go_and_come_back(poller: Poller) -> None:
    upstreams = made(poller, *ENDPOINTS)
    upstreams.replace(settings())
    assert hosts(upstreams) == []
    upstreams.replace(settings(*ENDPOINTS[:2]))
    assert hosts(upstreams) == ["1", "2"]


async def test_a_reply_of_one_that_was_replaced_still_arrives_and_then_it_ends(
    clock: MockClock, poller: Poller
) -> None:
    late: Script = lambda asked: [Pause(GIVE_UP - 0.1), upstream_replies.right(asked)]  # noqa: E731
    told = Noted()
    async with faulty_upstream(late) as old, faulty_upstream() as new:
        upstreams = Upstreams(settings(old.endpoint), poller=poller, receiver=told)
        async with alive(upstreams):
            leaving = upstreams.used[0]
            leaving.ports.post(flight())
            assert leaving.ports.flush() == []
            upstreams.replace(settings(new.endpoint))
            assert [upstream.endpoint for upstream in upstreams.route()] == [new.endpoint]
            await old.wait_asked(datagrams=1)
            await trio.sleep(GIVE_UP)
            poller.dispatch()
            assert [without_id(reply) for reply in told.replies] == [without_id(upstream_replies.right(ASKED.message))]
            await trio.sleep(2 * GIVE_UP)
            assert len(poller) == 0
            assert leaving.life.cancel_called


async def test_a_stream_of_one_that_was_replaced_still_answers(clock: MockClock, poller: Poller) -> None:
    late: Script = lambda asked: [Pause(1.0), upstream_replies.right(asked)]  # noqa: E731
    async with faulty_upstream(streams=late) as old, alive(made(poller, old.endpoint)) as upstreams:
        replies: list[bytes | None] = []

        async def ask() -> None:
            replies.append(await upstreams.exchange(ASKED))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await old.wait_asked(streams=1)
            upstreams.replace(settings())
        assert [without_id(reply) for reply in replies] == [without_id(upstream_replies.right(ASKED.message))]


async def test_one_that_comes_later_is_looked_after_too(clock: MockClock, poller: Poller) -> None:
    async with faulty_upstream() as server, alive(made(poller)) as upstreams:
        upstreams.replace(settings(server.endpoint))
        (upstream,) = upstreams.used
        upstream.health.misses = 99
        await trio.sleep(2)
        assert not upstream.health.failing
        assert without_id(await upstreams.exchange(ASKED)) == without_id(upstream_replies.right(ASKED.message))
        assert (len(server.asked_streams), len(server.asked_datagrams)) == (1, 1)


async def test_one_that_comes_later_can_be_asked_over_tcp_at_once(clock: MockClock, poller: Poller) -> None:
    async with faulty_upstream() as server, alive(made(poller)) as upstreams:
        upstreams.replace(settings(server.endpoint))
        assert without_id(await upstreams.exchange(ASKED)) == without_id(upstream_replies.right(ASKED.message))
        assert (len(server.asked_streams), len(server.asked_datagrams)) == (1, 0)


@pytest.mark.parametrize("detect", [False, True], ids=["trusted", "watched"])
async def test_loops_are_looked_for_where_the_settings_say_so(clock: MockClock, poller: Poller, detect: bool) -> None:
    detecting = replace(TRUSTING, detect_loops=detect)
    async with faulty_upstream() as first, faulty_upstream() as later:
        async with alive(made(poller, first.endpoint, settings=detecting)) as upstreams:
            upstreams.replace(replace(detecting, upstreams=(first.endpoint, later.endpoint)))
            await trio.sleep(1)
        assert [len(server.asked_datagrams) for server in (first, later)] == [detect, detect]


async def test_changes_without_end_leave_nothing_behind(clock: MockClock, poller: Poller) -> None:
    async with faulty_upstream(silence, silence) as server, alive(made(poller)) as upstreams:
        other = replace(server.endpoint, host="127.0.0.2")
        for turn in range(50):
            upstreams.replace(settings((server.endpoint, other)[turn % 2]))
            (upstream,) = upstreams.used
            upstream.ports.post(flight())
            upstream.ports.flush()
        assert len(poller) == 50
        await trio.sleep(3 * GIVE_UP)
        upstreams.close_retired()
        assert len(poller) == 1
        assert not upstreams._replaced


async def test_an_idle_server_keeps_no_old_source_port(
    clock: MockClock, poller: Poller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_ports, "PORT_AGE", 0.0)
    async with faulty_upstream(silence) as server, alive(made(poller)) as upstreams:
        upstreams.replace(settings(server.endpoint))
        (upstream,) = upstreams.used
        upstream.ports.post(flight())
        upstream.ports.flush()
        for sock in upstream.ports._sockets:
            sock.waiting.clear()
        assert len(poller) == 1
        await trio.sleep(2 * PORT_CHECK)
        assert len(poller) == 0


def test_replaced_before_they_run_they_close_at_once(poller: Poller) -> None:
    upstreams = made(poller, Endpoint("127.0.0.1", 9))
    upstreams.used[0].ports.post(flight())
    assert len(poller) == 1
    upstreams.replace(settings())
    assert len(poller) == 0


async def test_the_end_closes_those_in_use_and_those_that_were_replaced(poller: Poller) -> None:
    async with faulty_upstream(silence) as server, alive(made(poller, server.endpoint)) as upstreams:
        upstreams.used[0].ports.post(flight())
        upstreams.replace(settings(replace(server.endpoint, host="127.0.0.2")))
        upstreams.used[0].ports.post(flight())
        assert len(poller) == 2
    assert len(poller) == 0


# --- for a client over TCP -------------------------------------------------------------------------------------------


@pytest.fixture
async def asked_of(clock: MockClock, poller: Poller) -> Asked:
    return Asked(poller)


class Asked:
    """One query of a TCP client, and how long the reply took."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self.seconds = 0.0

    async def __call__(self, *endpoints: Endpoint, use_tcp: bool = False) -> bytes | None:
        began = trio.current_time()
        async with alive(made(self._poller, *endpoints, settings=replace(TRUSTING, use_tcp=use_tcp))) as upstreams:
            reply = None
            with trio.move_on_after(GIVE_UP):
                reply = await upstreams.exchange(ASKED)
        self.seconds = trio.current_time() - began
        return without_id(reply)


RIGHT = without_id(upstream_replies.right(ASKED.message))


async def test_it_is_asked_over_tcp_and_not_over_udp(clock: MockClock, asked_of: Asked) -> None:
    async with faulty_upstream() as server:
        assert await asked_of(server.endpoint) == RIGHT
        assert (len(server.asked_streams), len(server.asked_datagrams)) == (1, 0)


BROKEN: list[tuple[str, Script]] = [
    ("silence", silence),
    ("FIN", lambda _: [Close()]),
    ("RST", lambda _: [Reset()]),
    ("another question", lambda asked: [upstream_replies.other_question(asked)]),
    ("a wrong ID", lambda asked: [upstream_replies.wrong_id(asked)]),
]


@pytest.mark.parametrize("streams", [pytest.param(script, id=name) for name, script in BROKEN])
async def test_where_tcp_fails_udp_answers(clock: MockClock, asked_of: Asked, streams: Script) -> None:
    """Some servers and many paths allow only UDP; a TCP client gets a reply all the same."""
    async with faulty_upstream(answer, streams) as server:
        assert await asked_of(server.endpoint) == RIGHT
        assert asked_of.seconds < GIVE_UP


async def test_where_tcp_is_refused_udp_answers_at_once(clock: MockClock, asked_of: Asked) -> None:
    async with faulty_upstream(listens=False) as server:
        assert await asked_of(server.endpoint) == RIGHT
        assert asked_of.seconds < 0.4


async def test_where_many_are_silent_over_tcp_udp_still_gets_its_turn(clock: MockClock, asked_of: Asked) -> None:
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(faulty_upstream(answer, silence)) for _ in range(8)]
        assert await asked_of(*(server.endpoint for server in servers)) == RIGHT
    assert asked_of.seconds < GIVE_UP


async def test_tcp_that_is_slow_is_waited_for_while_udp_is_tried_beside_it(clock: MockClock, asked_of: Asked) -> None:
    slow: Script = lambda asked: [Pause(1.0), upstream_replies.right(asked)]  # noqa: E731
    async with faulty_upstream(silence, slow) as server:
        assert await asked_of(server.endpoint) == RIGHT
        assert (len(server.asked_streams), len(server.asked_datagrams)) == (1, 1)


async def test_a_cut_reply_over_udp_does_not_count(clock: MockClock, asked_of: Asked) -> None:
    cut: Script = lambda asked: [upstream_replies.truncated(asked)]  # noqa: E731
    slow: Script = lambda asked: [Pause(1.0), upstream_replies.right(asked)]  # noqa: E731
    async with faulty_upstream(cut, slow) as server:
        assert await asked_of(server.endpoint) == RIGHT
        assert len(server.asked_datagrams) == 1


async def test_a_cut_reply_over_udp_alone_is_no_answer(clock: MockClock, asked_of: Asked) -> None:
    async with faulty_upstream(lambda asked: [upstream_replies.truncated(asked)], lambda _: [Close()]) as server:
        assert await asked_of(server.endpoint) is None


async def test_the_next_upstream_is_asked_over_tcp_before_the_first_over_udp(clock: MockClock, asked_of: Asked) -> None:
    async with faulty_upstream(answer, silence) as first, faulty_upstream(silence, answer) as second:
        assert await asked_of(first.endpoint, second.endpoint) == RIGHT
        assert (len(first.asked_streams), len(first.asked_datagrams), len(second.asked_streams)) == (1, 0, 1)


async def test_an_upstream_that_is_asked_over_tcp_alone_is_never_asked_over_udp(
    clock: MockClock, asked_of: Asked
) -> None:
    async with faulty_upstream(answer, silence) as server:
        assert await asked_of(server.endpoint, use_tcp=True) is None
        assert not server.asked_datagrams
        assert asked_of.seconds == pytest.approx(GIVE_UP, abs=0.1)


async def test_silence_everywhere_is_no_answer_in_time(clock: MockClock, asked_of: Asked) -> None:
    async with faulty_upstream(silence, silence) as server:
        assert await asked_of(server.endpoint) is None
        assert (len(server.asked_streams), len(server.asked_datagrams)) == (1, 1)


async def test_refusals_everywhere_are_no_answer_at_once(clock: MockClock, asked_of: Asked) -> None:
    with refusing_upstream() as first, refusing_upstream("::1") as second:
        assert await asked_of(first, second) is None
        assert asked_of.seconds < 0.4


async def test_without_upstreams_there_is_no_answer(clock: MockClock, asked_of: Asked) -> None:
    assert await asked_of() is None
    assert asked_of.seconds == 0


async def test_streams_alone_are_asked_one_after_another_and_then_side_by_side(
    clock: MockClock, poller: Poller
) -> None:
    """For a query over UDP without a reply; the flight itself still waits for UDP."""
    async with faulty_upstream(answer, silence) as first, faulty_upstream(answer, answer) as second:
        async with alive(made(poller, first.endpoint, second.endpoint)) as upstreams:
            route: list[Upstream] = list(upstreams.route())
            answered = await ask_streams(route, ASKED)
            assert answered is not None
            assert (answered.endpoint, answered.datagram) == (second.endpoint, False)
            assert without_id(answered.message) == RIGHT
            assert await ask_streams([], ASKED) is None
        assert [len(server.asked_streams) for server in (first, second)] == [1, 1]
        assert not first.asked_datagrams + second.asked_datagrams


# --- the race ---

PATIENCE = 1.0


class Ways:
    """Ways that answer or fail after some seconds, and what happened to each."""

    def __init__(self, *ways: tuple[float, bytes | None]) -> None:
        self._ways = ways
        self.asked_at: list[float] = []
        self.cancelled: list[int] = []
        self._began = trio.current_time()

    def __iter__(self) -> Iterator[Ask[bytes]]:
        for number, way in enumerate(self._ways):
            yield self._make(number, *way)

    def _make(self, number: int, seconds: float, outcome: bytes | None) -> Ask[bytes]:
        async def ask() -> bytes | None:
            self.asked_at.append(trio.current_time() - self._began)
            try:
                await trio.sleep(seconds)
            except trio.Cancelled:
                self.cancelled.append(number)
                raise
            return outcome

        return ask


async def test_the_first_way_is_enough_where_it_answers_in_time(autojump_clock: MockClock) -> None:
    ways = Ways((0.9, b"a"), (0, b"b"))
    assert await first_answer(ways, patience=PATIENCE) == b"a"
    assert ways.asked_at == [0]


async def test_a_way_that_fails_gives_way_to_the_next_at_once(autojump_clock: MockClock) -> None:
    ways = Ways((0.1, None), (0.2, None), (0.3, b"c"))
    assert await first_answer(ways, patience=PATIENCE) == b"c"
    assert ways.asked_at == pytest.approx([0, 0.1, 0.3])


async def test_a_silent_way_is_not_given_up_for_the_next(autojump_clock: MockClock) -> None:
    ways = Ways((1.5, b"a"), (99, b"b"))
    assert await first_answer(ways, patience=PATIENCE) == b"a"
    assert (ways.asked_at, ways.cancelled) == ([0, 1.0], [1])


async def test_the_next_way_answers_while_the_first_is_silent_and_nothing_is_left_running(
    autojump_clock: MockClock,
) -> None:
    ways = Ways((99, b"a"), (99, b"b"), (0.5, b"c"))
    assert await first_answer(ways, patience=PATIENCE) == b"c"
    assert ways.asked_at == [0, 1.0, 2.0]
    assert sorted(ways.cancelled) == [0, 1]


async def test_an_early_failure_of_a_way_beside_another_does_not_end_the_race(autojump_clock: MockClock) -> None:
    ways = Ways((2.5, b"a"), (0.1, None), (0.1, None))
    assert await first_answer(ways, patience=PATIENCE) == b"a"
    assert ways.asked_at == pytest.approx([0, 1.0, 1.1])


async def test_when_the_last_way_was_tried_all_are_waited_for(autojump_clock: MockClock) -> None:
    ways = Ways((5, None), (6, b"b"), (0.1, None))
    assert await first_answer(ways, patience=PATIENCE) == b"b"


async def test_no_way_left_is_no_answer(autojump_clock: MockClock) -> None:
    assert await first_answer(Ways((0.1, None), (5, None), (0, None)), patience=PATIENCE) is None


async def test_no_way_at_all_is_no_answer(autojump_clock: MockClock) -> None:
    assert await first_answer(Ways(), patience=PATIENCE) is None


async def test_an_empty_answer_is_an_answer(autojump_clock: MockClock) -> None:
    assert await first_answer(Ways((0, b""), (0, b"b")), patience=PATIENCE) == b""


async def test_two_answers_at_one_moment_are_one(autojump_clock: MockClock) -> None:
    assert await first_answer(Ways((2.0, b"a"), (1.0, b"b")), patience=PATIENCE) in (b"a", b"b")


async def test_a_deadline_of_the_caller_ends_every_way(autojump_clock: MockClock) -> None:
    ways = Ways((99, b"a"), (99, b"b"))
    with trio.move_on_after(1.5) as waiting:
        await first_answer(ways, patience=PATIENCE)
    assert waiting.cancelled_caught
    assert sorted(ways.cancelled) == [0, 1]


# --- zones -----------------------------------------------------------------------------------------------------------


async def test_names_of_a_zone_go_to_its_own_upstreams_and_all_others_do_not_notice(poller: Poller) -> None:
    every, corp, both = (Endpoint(f"192.0.2.{number}", 53) for number in (1, 2, 3))
    lab = ZoneUpstreams(b"\3lab\4corp\4test\0", (every,))
    zone = ZoneUpstreams(b"\4corp\4test\0", (corp, both), excepted=(b"\3old\4corp\4test\0",))
    upstreams = Upstreams(replace(settings(every, both), zones=(lab, zone)), poller=poller, receiver=Noted())

    def at(name: str) -> list[str]:
        found = upstreams.route(messages.question(name)[:-4].lower())
        return [upstream.endpoint.host.rpartition(".")[2] for upstream in found]

    assert [str(upstream) for upstream in upstreams.used] == ["192.0.2.1:53", "192.0.2.3:53", "192.0.2.2:53"]
    assert {name: at(name) for name in ("www.example.org", "corp.test", "a.corp.test", "a.old.corp.test")} == {
        "www.example.org": ["1", "3"],
        "corp.test": ["2", "3"],
        "a.corp.test": ["2", "3"],
        "a.old.corp.test": ["1", "3"],
    }
    assert at("x.lab.corp.test") == ["1"]
    upstreams.replace(settings(every))
    assert at("a.corp.test") == ["1"]
    upstreams.close()


@pytest.mark.parametrize("rotates", [False, True])
async def test_the_order_of_a_zone_is_its_own(poller: Poller, rotates: bool) -> None:
    servers = tuple(Endpoint(f"192.0.2.{number}", 53) for number in (1, 2))
    zone = ZoneUpstreams(b"\4corp\4test\0", servers, rotate=rotates)
    wanted = replace(settings(*servers), zones=(zone,), rotate=not rotates)
    upstreams = Upstreams(wanted, poller=poller, receiver=Noted())
    firsts = {name: {upstreams.route(name)[0].endpoint.host for _ in range(4)} for name in (b"\0", b"\4corp\4test\0")}
    assert [len(found) for found in firsts.values()] == ([2, 1] if not rotates else [1, 2])
    upstreams.close()


@pytest.mark.parametrize("step", [pytest.param(Close(), id="FIN"), pytest.param(Reset(), id="RST")])
async def test_a_connection_that_fails_is_followed_by_another_if_there_is_no_other_way(
    clock: MockClock, poller: Poller, step: Close | Reset
) -> None:
    """A balancer has chosen a dead server, and the next time a living one."""
    async with faulty_upstream() as server:

        def once(asked: bytes) -> list[Step]:
            return [step] if server.connections == 1 else answer(asked)

        server.streams = once
        async with alive(made(poller, TcpEndpoint(server.endpoint.host, server.endpoint.port))) as upstreams:
            with trio.fail_after(GIVE_UP):
                reply = await upstreams.exchange(ASKED)
            assert without_id(reply) == upstream_replies.right(ASKED.message)[2:]
            assert (server.connections, server.asked_datagrams) == (2, [])


async def test_connections_that_all_fail_are_opened_as_often_as_the_settings_say(
    clock: MockClock, poller: Poller
) -> None:
    async with faulty_upstream(streams=lambda _: [Reset()]) as server:
        endpoint = TcpEndpoint(server.endpoint.host, server.endpoint.port)
        async with alive(made(poller, endpoint, settings=replace(TRUSTING, attempts=2))) as upstreams:
            assert await upstreams.exchange(ASKED) is None
            assert server.connections == 2
