"""An upstream: how it is probed while it fails, and how a loop through it is found and ends."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import errno
import itertools
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from dnsproxy.datagrams.connected import Batches
from dnsproxy.forward.deadlines import LOOP_EVERY, LOOPING_EVERY, PROBE_EVERY
from dnsproxy.forward.loop import LoopProbes
from dnsproxy.forward.settings import TlsEndpoint
from dnsproxy.forward.upstream import Upstream
from sidecar.loop.poller import Poller
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.forward.flights import Noted
from tests.kit import messages, upstream_replies
from tests.kit.faulty_upstream import Elsewhere, Script, Step, answer, faulty_upstream, refusing_upstream, silence

ASKED = messages.scanned(messages.query("www.example.net"))


def made(endpoint: Endpoint, *, use_tcp: bool = False, looped: Callable[[], None] = lambda: None) -> Upstream:
    """An upstream that opens a port only for the queries of a test."""
    return Upstream(
        endpoint,
        poller=Poller.__new__(Poller),
        batches=Batches(),
        receiver=Noted(),
        use_tcp=use_tcp,
        looped=looped,
    )


@asynccontextmanager
async def alive(upstream: Upstream, loops: LoopProbes | None = None) -> AsyncIterator[Upstream]:
    """Run it for the time of the block."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upstream.run, loops)
        yield upstream
        nursery.cancel_scope.cancel()


def failing_upstream(endpoint: Endpoint, *, use_tcp: bool = False) -> Upstream:
    upstream = made(endpoint, use_tcp=use_tcp)
    upstream.health.misses = 100
    return upstream


@pytest.mark.parametrize(
    ("endpoint", "use_tcp", "expected"),
    [
        pytest.param(Endpoint("192.0.2.53", 53), False, False, id="plain"),
        pytest.param(Endpoint("192.0.2.53", 53), True, True, id="options use-vc"),
        pytest.param(TlsEndpoint("192.0.2.53", 853, "dns.example.org"), False, True, id="TLS"),
    ],
)
def test_what_is_never_asked_over_udp(endpoint: Endpoint, use_tcp: bool, expected: bool) -> None:
    upstream = made(endpoint, use_tcp=use_tcp)
    assert upstream.stream_only is expected
    assert str(upstream) == str(endpoint)


# --- asking over UDP -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_datagram_of_its_own_goes_out_unchanged_but_for_a_random_id(host: str) -> None:
    async with faulty_upstream(host=host) as server:
        upstream = made(server.endpoint)
        replies = [await upstream.ask_datagram(ASKED) for _ in range(20)]
        assert {reply and reply[2:] for reply in replies} == {upstream_replies.right(ASKED.message)[2:]}
        assert {asked.message[2:] for asked in server.asked_datagrams} == {ASKED.message[2:]}
        assert len({asked.message[:2] for asked in server.asked_datagrams}) > 15
        assert len({asked.source[1] for asked in server.asked_datagrams}) > 15


async def test_the_right_reply_behind_wrong_ones_is_the_one_that_counts() -> None:
    def script(asked: bytes) -> list[Step]:
        return [
            b"",
            asked[:1],
            upstream_replies.wrong_id(asked),
            upstream_replies.other_question(asked),
            upstream_replies.without_qr(asked),
            Elsewhere(upstream_replies.right(asked, rcode=upstream_replies.REFUSED)),
            upstream_replies.right(asked),
        ]

    async with faulty_upstream(script) as server:
        reply = await made(server.endpoint).ask_datagram(ASKED)
        assert reply is not None
        assert reply[2:] == upstream_replies.right(ASKED.message)[2:]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_refusal_is_no_answer(host: str) -> None:
    with refusing_upstream(host) as endpoint:
        assert await made(endpoint).ask_datagram(ASKED) is None


async def test_an_address_without_a_route_is_no_answer() -> None:
    assert await made(Endpoint("255.255.255.255", 53)).ask_datagram(ASKED) is None


async def test_a_query_that_no_datagram_holds_is_no_answer() -> None:
    async with faulty_upstream() as server:
        large = messages.scanned(upstream_replies.padded_query("www.example.net", 65_535))
        assert await made(server.endpoint).ask_datagram(large) is None


async def test_without_descriptors_there_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trio.socket, "socket", out_of_descriptors)
    assert await made(Endpoint("127.0.0.1", 53)).ask_datagram(ASKED) is None


def out_of_descriptors(*_: object) -> socket.socket:
    raise OSError(errno.EMFILE, "Too many open files")


# --- health ----------------------------------------------------------------------------------------------------------


async def test_an_upstream_that_is_back_is_well_within_a_second(clock: MockClock) -> None:
    async with faulty_upstream(silence) as server, alive(failing_upstream(server.endpoint)) as upstream:
        await server.wait_asked(datagrams=2)
        assert upstream.health.failing
        server.datagrams = answer
        back = trio.current_time()
        while upstream.health.failing:  # noqa: ASYNC110  # the clock jumps from probe to probe
            await trio.sleep(PROBE_EVERY / 10)
        assert trio.current_time() - back <= 1.0 + PROBE_EVERY / 10
        question = upstream_replies.question_of(server.asked_datagrams[0].message)
        assert question == messages.question("", messages.NS)


async def test_an_upstream_that_is_well_is_not_probed(clock: MockClock) -> None:
    async with faulty_upstream() as server, alive(made(server.endpoint)) as upstream:
        upstream.health.misses = 2
        await trio.sleep(20 * PROBE_EVERY)
        assert not server.asked_datagrams


@pytest.mark.parametrize(
    ("script", "well"),
    [
        pytest.param(answer, True, id="an answer"),
        pytest.param(lambda asked: [upstream_replies.header_only(asked, 2)], True, id="SERVFAIL"),
        pytest.param(lambda asked: [upstream_replies.header_only(asked, 5)], True, id="REFUSED"),
        pytest.param(lambda asked: [upstream_replies.wrong_id(asked), upstream_replies.right(asked)], True, id="both"),
        pytest.param(lambda asked: [upstream_replies.wrong_id(asked)], False, id="a forged ID"),
        pytest.param(lambda asked: [upstream_replies.other_question(asked)], False, id="another question"),
        pytest.param(lambda asked: [Elsewhere(upstream_replies.right(asked))], False, id="a stranger"),
        pytest.param(lambda _: [b""], False, id="an empty datagram"),
        pytest.param(silence, False, id="silence"),
    ],
)
async def test_what_shows_an_upstream_well(clock: MockClock, script: Script, well: bool) -> None:
    async with faulty_upstream(script) as server, alive(failing_upstream(server.endpoint)) as upstream:
        await server.wait_asked(datagrams=1)
        await trio.sleep(2 * PROBE_EVERY)
        assert upstream.health.failing is not well


async def test_a_refusal_does_not_show_an_upstream_well(clock: MockClock) -> None:
    with refusing_upstream() as endpoint:
        async with alive(failing_upstream(endpoint)) as upstream:
            await trio.sleep(10 * PROBE_EVERY)
            assert upstream.health.failing


async def test_an_upstream_that_is_asked_over_tcp_alone_is_probed_so(clock: MockClock) -> None:
    async with (
        faulty_upstream(silence, answer) as server,
        alive(failing_upstream(server.endpoint, use_tcp=True)) as upstream,
    ):
        await trio.sleep(2 * PROBE_EVERY)
        assert not upstream.health.failing
        assert (len(server.asked_datagrams), len(server.asked_streams)) == (0, 1)


# --- loops -----------------------------------------------------------------------------------------------------------


def test_a_loop_costs_half_a_minute_at_most_and_no_more_than_a_few_probes() -> None:
    assert (LOOP_EVERY, LOOPING_EVERY) == (30.0, 5.0)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loop probes at a pace at which a test sees several of them."""
    monkeypatch.setattr("dnsproxy.forward.upstream.LOOP_EVERY", 6.0)
    monkeypatch.setattr("dnsproxy.forward.upstream.LOOPING_EVERY", 1.0)


class Turns:
    """Whether an upstream routes queries back to dnsproxy, and when it was noted."""

    def __init__(self, loops: LoopProbes, *, leads_back: bool, passes_on: bool = True) -> None:
        self.loops = loops
        self.leads_back = leads_back
        self.passes_on = passes_on
        self.noted = 0

    def script(self, asked: bytes) -> list[Step]:
        """A server that forwards to this one: the query comes back before it replies."""
        looped = self.loops.answer(messages.scanned(asked)) if self.leads_back else None
        if not self.passes_on:
            return []
        return [looped or upstream_replies.header_only(asked, upstream_replies.SERVFAIL)]

    def note(self) -> None:
        self.noted += 1


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # the clock jumps; a test has a deadline
        await trio.sleep(0.5)


@pytest.mark.parametrize("use_tcp", [False, True], ids=["UDP", "TCP"])
@pytest.mark.parametrize("passes_on", [False, True], ids=["without a reply", "with a reply"])
async def test_a_loop_is_found_and_logged_once_and_its_end_too(
    clock: MockClock, often: None, use_tcp: bool, passes_on: bool
) -> None:
    loops = LoopProbes()
    turns = Turns(loops, leads_back=True, passes_on=passes_on)
    with capture_logs() as logs:
        async with (
            faulty_upstream(turns.script, turns.script) as server,
            alive(made(server.endpoint, use_tcp=use_tcp, looped=turns.note), loops) as upstream,
        ):
            asked = server.asked_streams if use_tcp else server.asked_datagrams
            await until(lambda: upstream.looping)
            await until(lambda: len(asked) >= 4)
            assert (upstream.looping, turns.noted) == (True, 1)
            turns.leads_back, turns.passes_on = False, True
            await until(lambda: not upstream.looping)
            assert turns.noted == 2
            await until(lambda: len(asked) >= 8)
            assert (upstream.looping, turns.noted) == (False, 2)
    told = [line for line in logs if "queries back" in line["event"]]
    assert [line["log_level"] for line in told] == ["error", "info"]
    assert {line["upstream"] for line in told} == {str(server.endpoint)}
    assert "dnsPolicy: Default" in told[0]["event"]
    assert "--upstream" in told[0]["event"]


async def test_silence_does_not_end_a_loop(clock: MockClock, often: None) -> None:
    """A probe may be lost on its way; any other reply shows that the loop has ended."""
    loops = LoopProbes()
    turns = Turns(loops, leads_back=True)
    async with faulty_upstream(turns.script) as server, alive(made(server.endpoint), loops) as upstream:
        await until(lambda: upstream.looping)
        turns.leads_back = turns.passes_on = False
        asked = len(server.asked_datagrams)
        await until(lambda: len(server.asked_datagrams) >= asked + 3)
        assert upstream.looping
        turns.passes_on = True
        await until(lambda: not upstream.looping)


async def test_probes_are_rare_and_more_frequent_while_there_is_a_loop(clock: MockClock, often: None) -> None:
    loops = LoopProbes()
    turns = Turns(loops, leads_back=False)
    async with faulty_upstream(turns.script) as server, alive(made(server.endpoint), loops):
        await server.wait_asked(datagrams=3)
        turns.leads_back = True
        await server.wait_asked(datagrams=6)
        times = [asked.at for asked in server.asked_datagrams]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert gaps == pytest.approx([6.0] * 3 + [1.0] * 2, abs=0.1)


async def test_each_probe_has_another_name_and_none_stays_outstanding(clock: MockClock, often: None) -> None:
    loops = LoopProbes()
    turns = Turns(loops, leads_back=True)
    async with faulty_upstream(turns.script) as server, alive(made(server.endpoint), loops):
        await server.wait_asked(datagrams=5)
        await trio.sleep(0.5)
        assert not loops.out
    names = {upstream_replies.question_of(asked.message) for asked in server.asked_datagrams}
    assert len(names) == len(server.asked_datagrams)


async def test_a_loop_that_only_another_server_sees_is_one(clock: MockClock, often: None) -> None:
    """Two pods behind one Service, which both have for an upstream: a probe seldom comes to the pod that sent it."""
    pod, service = LoopProbes(), Endpoint("10.96.0.53", 53)
    other = LoopProbes()
    other.set_upstreams([service])

    def script(asked: bytes) -> list[Step]:
        # As if it had been sent to the Service.
        message = messages.scanned(asked)
        probe = pod.make(service, lambda: None)
        pod.forget(probe)
        looped = other.answer(probe)
        assert looped is not None
        return [message.message[:2] + looped[2:12] + message.question + looped[12 + len(probe.question) :]]

    async with faulty_upstream(script) as server, alive(made(server.endpoint), pod) as upstream:
        await until(lambda: upstream.looping)
        other.set_upstreams([])
        assert other.answer(pod.make(service, lambda: None)) is None


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(answer, id="an answer"),
        pytest.param(silence, id="silence"),
        pytest.param(lambda asked: [upstream_replies.right(asked, rcode=3, answers=0)], id="NXDOMAIN"),
        pytest.param(lambda asked: [asked], id="an echo"),
    ],
)
async def test_whatever_an_upstream_says_it_does_not_loop_unless_we_are_asked(
    clock: MockClock, often: None, script: Script
) -> None:
    loops = LoopProbes()
    async with faulty_upstream(script) as server, alive(made(server.endpoint), loops) as upstream:
        await server.wait_asked(datagrams=3)
        assert not upstream.looping


async def test_a_forged_probe_takes_no_upstream_away(clock: MockClock, often: None) -> None:
    loops = LoopProbes()
    turns = Turns(loops, leads_back=False)
    async with faulty_upstream(turns.script) as server, alive(made(server.endpoint), loops) as upstream:
        await server.wait_asked(datagrams=1)
        await trio.sleep(0.5)
        forged = messages.query("0" * 32 + ".loop-probe.switchback.invalid", messages.TXT)
        overheard = server.asked_datagrams[0].message
        assert [loops.answer(messages.scanned(message)) for message in (forged, overheard)] == [None, None]
        await server.wait_asked(datagrams=2)
        assert not upstream.looping


async def test_an_upstream_that_is_trusted_is_not_probed_for_loops(clock: MockClock, often: None) -> None:
    async with faulty_upstream() as server, alive(made(server.endpoint), None):
        await trio.sleep(30)
        assert not server.asked_datagrams


async def test_an_upstream_whose_life_ends_leaves_nothing_running(clock: MockClock, often: None) -> None:
    async with faulty_upstream(silence) as server:
        upstream = made(server.endpoint)
        with trio.move_on_after(60) as waiting:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(upstream.run, LoopProbes()))
                await server.wait_asked(datagrams=1)
                upstream.life.cancel()
        assert not waiting.cancelled_caught
