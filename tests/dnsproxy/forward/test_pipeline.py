"""One shared connection to upstreams that answer in every way: the reply or None, whatever happens to it."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, wait_all_tasks_blocked

from dnsproxy.forward import pipeline as pipelines
from dnsproxy.forward.deadlines import CONNECT, GIVE_UP, IDLE, SILENT
from dnsproxy.forward.dial import default_context
from dnsproxy.forward.pipeline import Pipeline
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.forward import certificates
from tests.dnsproxy.forward.certificates import NAME
from tests.dnsproxy.forward.pipelines import ASKED, RIGHT, Asking, asking, serving, several, tls
from tests.kit import upstream_replies as upstream
from tests.kit.dns_server import open_descriptors
from tests.kit.faulty_upstream import (
    Close,
    Part,
    Pause,
    Reset,
    Script,
    Step,
    Until,
    answer,
    faulty_upstream,
    refusing_upstream,
    silence,
)
from tests.kit.messages import scanned

# --- sharing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_queries_share_one_connection_each_under_a_random_id(
    clock: MockClock, secured: ssl.SSLContext | None, host: str
) -> None:
    async with serving(answer, secured, host=host) as (server, client):
        assert {await client.ask() for _ in range(20)} == {RIGHT}
        asked = several(40)
        assert await client.ask_all(*asked) == [upstream.right(message)[2:] for message in asked]
        assert server.connections == 1
        ids = [message.message[:2] for message in server.asked_streams]
        assert len(set(ids)) > 50
        came = [message.message[2:] for message in server.asked_streams]
        assert sorted(came) == sorted([ASKED[2:]] * 20 + [message[2:] for message in asked])


async def test_queries_at_once_open_one_connection(clock: MockClock, secured: ssl.SSLContext | None) -> None:
    async with serving(answer, secured) as (server, client):
        asked = several(30)
        assert await client.ask_all(*asked) == [upstream.right(message)[2:] for message in asked]
        assert server.connections == 1


async def test_replies_in_another_order_each_reach_their_query(
    clock: MockClock, secured: ssl.SSLContext | None
) -> None:
    """RFC 7766 section 7: a server answers out of order."""
    asked = several(5)

    def script(message: bytes) -> list[Step]:
        place = next(place for place, one in enumerate(asked) if one[2:] == message[2:])
        return [Pause(0.5 - place / 10), upstream.right(message)]

    async with serving(script, secured) as (server, client):
        assert await client.ask_all(*asked) == [upstream.right(message)[2:] for message in asked]
        assert server.connections == 1


async def test_a_slow_query_holds_up_no_other(clock: MockClock) -> None:
    gate = trio.Event()
    slow, fast = several(2)

    def script(message: bytes) -> list[Step]:
        return [Until(gate), upstream.right(message)] if message[2:] == slow[2:] else [upstream.right(message)]

    async with serving(script, None) as (server, client), trio.open_nursery() as nursery:
        nursery.start_soon(client.ask, slow)
        await server.wait_asked(streams=1)
        assert await client.ask(fast) == upstream.right(fast)[2:]
        gate.set()


async def test_an_id_that_still_waits_is_not_used_again(clock: MockClock) -> None:
    async with serving(answer, None) as (server, client):
        await client.ask()
        (connection,) = client.pipeline._connections
        connection._ids = iter([b"aa", b"aa", b"aa", b"bb"])
        assert await client.ask_all(*several(2)) == [upstream.right(message)[2:] for message in several(2)]
        assert [asked.message[:2] for asked in server.asked_streams[1:]] == [b"aa", b"bb"]


def in_pieces(asked: bytes) -> list[Part]:
    return [Part(octets.to_bytes(1, "big")) for octets in upstream.framed(upstream.right(asked))]


def two_in_one_segment(asked: bytes) -> list[Part]:
    return [Part(upstream.framed(upstream.wrong_id(asked)) + upstream.framed(upstream.right(asked)))]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(in_pieces, upstream.right(ASKED), id="one octet at a time"),
        pytest.param(two_in_one_segment, upstream.right(ASKED), id="behind another one in a segment"),
        pytest.param(lambda asked: [upstream.right(asked), Close()], upstream.right(ASKED), id="then FIN"),
        pytest.param(lambda asked: [upstream.right(asked)] * 2, upstream.right(ASKED), id="twice"),
        pytest.param(lambda asked: [b"", upstream.right(asked)], upstream.right(ASKED), id="behind an empty message"),
        pytest.param(
            lambda asked: [upstream.other_question(asked), upstream.right(asked)],
            upstream.right(ASKED),
            id="behind another question",
        ),
        pytest.param(lambda asked: [upstream.sized(asked, 65_535)], upstream.sized(ASKED, 65_535), id="65,535 octets"),
        pytest.param(lambda asked: [upstream.truncated(asked)], upstream.truncated(ASKED), id="TC"),
        pytest.param(
            lambda asked: [upstream.right(asked, rcode=upstream.REFUSED, answers=0)],
            upstream.right(ASKED, rcode=upstream.REFUSED, answers=0),
            id="REFUSED",
        ),
        pytest.param(
            lambda asked: [upstream.header_only(asked, upstream.NOTIMP)],
            upstream.header_only(ASKED, upstream.NOTIMP),
            id="header-only NOTIMP",
        ),
    ],
)
async def test_a_reply_is_taken_whole(
    clock: MockClock, secured: ssl.SSLContext | None, script: Script, expected: bytes
) -> None:
    async with serving(script, secured) as (_, client):
        assert await client.ask() == expected[2:]


async def test_the_largest_query_goes_out_whole(clock: MockClock, secured: ssl.SSLContext | None) -> None:
    large = upstream.padded_query("www.example.net", 65_535)
    async with serving(answer, secured) as (server, client):
        assert await client.ask(large) == upstream.right(large)[2:]
        assert server.asked_streams[0].message[2:] == large[2:]


# --- faults ----------------------------------------------------------------------------------------------------------


ENDS: list[tuple[str, Script]] = [
    ("FIN before the reply", lambda _: [Close()]),
    ("RST before the reply", lambda _: [Reset()]),
    ("FIN inside the length", lambda _: [Part(b"\0"), Close()]),
    ("FIN inside the reply", lambda asked: [Part(upstream.framed(upstream.right(asked))[:20]), Close()]),
    ("RST inside the reply", lambda asked: [Part(upstream.framed(asked)[:9]), Reset()]),
]
NO_REPLY: list[tuple[str, Script]] = [
    ("an empty message", lambda _: [b""]),
    ("one octet", lambda _: [b"x"]),
    ("a wrong ID", lambda asked: [upstream.wrong_id(asked)]),
    ("another question", lambda asked: [upstream.other_question(asked)]),
    ("QR=0", lambda asked: [upstream.without_qr(asked)]),
    ("header-only NOERROR", lambda asked: [upstream.header_only(asked, upstream.NOERROR)]),
    ("a length that is never filled", lambda asked: [Part(b"\xff\xff" + upstream.right(asked))]),
    ("silence", silence),
]
every_end = pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in ENDS])


@every_end
async def test_a_connection_that_ends_before_it_served_is_no_answer_at_once(
    clock: MockClock, secured: ssl.SSLContext | None, script: Script
) -> None:
    async with serving(script, secured) as (server, client):
        began = trio.current_time()
        assert await client.ask() is None
        assert trio.current_time() - began < CONNECT
        assert len(server.asked_streams) == 1
        server.streams = answer
        assert await client.ask() == RIGHT


@pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in NO_REPLY])
async def test_what_is_no_reply_is_waited_behind_until_the_callers_deadline(
    clock: MockClock, secured: ssl.SSLContext | None, script: Script
) -> None:
    async with serving(script, secured) as (server, client):
        assert await client.ask(timeout=1.0) is None
        assert len(server.asked_streams) == 1


@pytest.mark.parametrize("step", [pytest.param(Close(), id="FIN"), pytest.param(Reset(), id="RST")])
async def test_a_connection_that_is_closed_before_any_query_is_no_answer(clock: MockClock, step: Close | Reset) -> None:
    async with serving(answer, None) as (server, client):
        server.greeting = [step]
        assert await client.ask() is None
        server.greeting = []
        assert await client.ask() == RIGHT


@every_end
async def test_a_connection_that_served_and_then_ends_costs_no_query(
    clock: MockClock, secured: ssl.SSLContext | None, script: Script
) -> None:
    """A server may close an idle connection at any time; a query that meets this gets a new connection."""
    scripts = iter([answer, script, answer])

    def turn(asked: bytes) -> Iterable[Step]:
        return next(scripts)(asked)

    async with serving(turn, secured) as (server, client):
        assert [await client.ask() for _ in range(2)] == [RIGHT] * 2
        assert (len(server.asked_streams), server.connections) == (3, 2)


@every_end
async def test_the_fresh_connection_is_tried_once(
    clock: MockClock, secured: ssl.SSLContext | None, script: Script
) -> None:
    async with serving(answer, secured) as (server, client):
        assert await client.ask() == RIGHT
        server.streams = script
        assert await client.ask() is None
        assert (len(server.asked_streams), server.connections) == (3, 2)


async def test_a_connection_that_was_closed_while_idle_is_not_used_again(
    clock: MockClock, secured: ssl.SSLContext | None
) -> None:
    async with serving(lambda asked: [upstream.right(asked), Pause(1.0), Close()], secured) as (server, client):
        for _ in range(3):
            assert await client.ask() == RIGHT
            await trio.sleep(2.0)
        assert (len(server.asked_streams), server.connections) == (3, 3)


async def test_all_queries_on_a_connection_that_ends_get_a_fresh_one_together(clock: MockClock) -> None:
    gate = trio.Event()
    asked = several(20)
    turns = count()

    def script(message: bytes) -> list[Step]:
        turn = next(turns)
        if turn == 0 or turn > len(asked):
            return [upstream.right(message)]
        return [Until(gate), Reset()]

    async with serving(script, None) as (server, client), trio.open_nursery() as nursery:
        await client.ask()
        found: list[bytes | None] = []

        async def ask() -> None:
            found.extend(await client.ask_all(*asked))

        nursery.start_soon(ask)
        await server.wait_asked(streams=1 + len(asked))
        gate.set()
        await server.wait_asked(streams=1 + 2 * len(asked))
        await wait_all_tasks_blocked()
        assert found == [upstream.right(message)[2:] for message in asked]
        assert server.connections == 2


async def test_a_server_that_closes_again_and_again_under_load_is_no_fault_that_stays(clock: MockClock) -> None:
    turns = count(1)

    def script(asked: bytes) -> list[Step]:
        ends: list[Step] = [Close()] if next(turns) % 7 == 0 else [Reset()]
        return [upstream.right(asked)] if next(turns) % 11 else ends

    async with serving(script, None) as (server, client):
        for _ in range(20):
            await client.ask_all(*several(25))
        server.streams = answer
        assert await client.ask() == RIGHT


async def test_a_server_that_does_not_read_is_left_and_another_connection_opened(clock: MockClock) -> None:
    """Unread messages fill the buffers; a connection on which nothing arrives is closed."""
    gate = trio.Event()
    large = [upstream.padded_query(f"h{number}.example.net", 65_000) for number in range(300)]
    async with faulty_upstream() as server, asking(server.endpoint) as client:
        server.greeting = [Until(gate)]
        assert set(await client.ask_all(*large)) == {None}
        assert not server.asked_streams
        server.greeting = []
        await trio.sleep(SILENT)
        assert await client.ask() == RIGHT
        gate.set()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_refused_connection_is_no_answer_at_once(clock: MockClock, host: str) -> None:
    with refusing_upstream(host) as refusing:
        async with asking(refusing) as client:
            began = trio.current_time()
            with capture_logs() as logs:
                assert await client.ask_all(*several(5)) == [None] * 5
            assert trio.current_time() - began < 0.1
    assert len(logs) == 1
    assert "Connection refused" in logs[0]["cause"]


@contextmanager
def black_hole() -> Iterator[Endpoint]:
    """An address whose connections neither open nor fail: its queue of unaccepted connections is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        with socket.socket() as first, socket.socket() as second:
            for waiting in (first, second):
                waiting.setblocking(False)
                waiting.connect_ex(listener.getsockname())
            yield Endpoint("127.0.0.1", listener.getsockname()[1])


async def test_a_connection_that_does_not_open_is_no_answer_in_time(clock: MockClock) -> None:
    with black_hole() as endpoint, capture_logs() as logs:
        async with asking(endpoint) as client:
            began = trio.current_time()
            assert await client.ask() is None
            assert trio.current_time() - began == pytest.approx(CONNECT, abs=0.1)
    assert [line["cause"] for line in logs] == ["timeout while connecting"]


async def test_a_connection_outlives_the_query_that_had_it_opened(clock: MockClock) -> None:
    async with serving(silence, None) as (server, client):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.ask)
                await server.wait_asked(streams=1)
                scope.cancel()
        server.streams = answer
        assert await client.ask() == RIGHT
        assert server.connections == 1


async def test_a_query_that_is_given_up_leaves_the_stream_in_step(clock: MockClock) -> None:
    """Half a message on the wire would make all later messages unreadable."""
    large = upstream.padded_query("www.example.net", 65_535)
    async with serving(answer, None) as (server, client):
        for _ in range(20):
            await client.ask(large, timeout=0)
        await wait_all_tasks_blocked(0.02)
        assert await client.ask() == RIGHT
        assert {asked.message[2:] for asked in server.asked_streams} <= {large[2:], ASKED[2:]}
        assert server.connections == 1


async def test_a_reply_that_comes_too_late_is_dropped(clock: MockClock) -> None:
    async with serving(lambda asked: [Pause(1.0), upstream.right(asked)], None) as (server, client):
        assert await client.ask(timeout=0.5) is None
        await trio.sleep(1.0)
        server.streams = answer
        assert await client.ask(several(1)[0]) == upstream.right(several(1)[0])[2:]


# --- life ------------------------------------------------------------------------------------------------------------


async def test_nothing_is_opened_before_a_query_needs_it(clock: MockClock) -> None:
    async with serving(answer, None) as (server, _):
        await trio.sleep(10)
        assert server.connections == 0


async def test_an_idle_connection_is_closed_and_the_next_query_opens_another(
    clock: MockClock, secured: ssl.SSLContext | None
) -> None:
    before = open_descriptors()
    async with serving(answer, secured) as (server, client):
        idle = open_descriptors()
        assert await client.ask() == RIGHT
        await trio.sleep(IDLE - 1.0)
        assert await client.ask() == RIGHT
        assert server.connections == 1
        await trio.sleep(IDLE + 1.0)
        assert open_descriptors() == idle
        assert await client.ask() == RIGHT
        assert server.connections == 2
    assert open_descriptors() == before


async def test_a_connection_that_a_query_waits_on_is_not_idle(clock: MockClock) -> None:
    slow, fast = several(2)

    def script(message: bytes) -> list[Step]:
        return [*([Pause(IDLE * 2.5)] if message[2:] == slow[2:] else []), upstream.right(message)]

    async with serving(script, None) as (server, client), trio.open_nursery() as nursery:
        found: list[bytes | None] = []

        async def ask() -> None:
            found.append(await client.ask(slow, timeout=IDLE * 3))

        nursery.start_soon(ask)
        await server.wait_asked(streams=1)
        # Its reply shows that the server is there, and works on the other query.
        assert await client.ask(fast) == upstream.right(fast)[2:]
        await trio.sleep(IDLE * 2.6)
        assert found == [upstream.right(slow)[2:]]
        assert server.connections == 1


async def test_a_query_that_is_there_before_the_pipeline_runs_waits_for_it(clock: MockClock) -> None:
    """A starting server finds queries in its sockets, and upstreams may be replaced at any time."""
    async with faulty_upstream() as server, trio.open_nursery() as nursery:
        client = Asking(Pipeline(server.endpoint))
        found: list[bytes | None] = []

        async def ask() -> None:
            found.append(await client.ask())

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        assert not server.asked_streams
        nursery.start_soon(client.pipeline.run)
        await server.wait_asked(streams=1)
        await wait_all_tasks_blocked(0.02)
        assert found == [RIGHT]
        nursery.cancel_scope.cancel()


async def test_a_pipeline_that_never_runs_keeps_to_the_callers_deadline(clock: MockClock) -> None:
    assert await Asking(Pipeline(Endpoint("127.0.0.1", 53))).ask(timeout=1.0) is None


async def test_the_end_of_a_pipeline_wakes_the_queries_and_leaves_no_descriptor(
    clock: MockClock, secured: ssl.SSLContext | None
) -> None:
    before = open_descriptors()
    found: list[bytes | None] = []
    async with faulty_upstream(streams=silence, secured=secured) as server, trio.open_nursery() as nursery:

        async def ask() -> None:
            found.append(await client.ask())

        async with asking(tls(server.endpoint) if secured else server.endpoint) as client:
            for _ in range(3):
                nursery.start_soon(ask)
            await server.wait_asked(streams=3)
        await wait_all_tasks_blocked()
        assert found == [None] * 3
        assert await client.ask() is None
    assert open_descriptors() == before


async def test_cancelled_while_it_connects_it_leaves_no_descriptor(clock: MockClock) -> None:
    with black_hole() as endpoint:
        before = open_descriptors()
        async with trio.open_nursery() as nursery:
            pipeline = Pipeline(endpoint)
            nursery.start_soon(pipeline.run)
            await wait_all_tasks_blocked()
            for _ in range(5):
                nursery.start_soon(pipeline.ask, scanned(ASKED))
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert open_descriptors() == before


# --- TLS -------------------------------------------------------------------------------------------------------------


async def test_a_server_gets_the_expected_name(clock: MockClock) -> None:
    names: list[str | None] = []
    context = certificates.good()
    context.sni_callback = lambda _, name, __: names.append(name)
    async with serving(answer, context) as (_, client):
        assert await client.ask() == RIGHT
    assert names == [NAME]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_server_may_be_known_by_its_address(clock: MockClock, host: str) -> None:
    """RFC 8310 section 8.1 only has names; public resolvers also have certificates for addresses."""
    async with faulty_upstream(host=host, secured=certificates.good(host)) as server:
        async with asking(tls(server.endpoint, host)) as client:
            assert await client.ask() == RIGHT
        async with asking(tls(server.endpoint, "192.0.2.1")) as client:
            assert await client.ask() is None


@pytest.mark.parametrize(
    ("make", "cause"), [pytest.param(make, cause, id=name) for name, make, cause in certificates.BAD]
)
async def test_an_invalid_certificate_is_no_answer_and_logged_once(
    clock: MockClock, make: Callable[[], ssl.SSLContext], cause: str
) -> None:
    with capture_logs() as logs:
        async with serving(answer, make()) as (server, client):
            for _ in range(3):
                began = trio.current_time()
                assert await client.ask() is None
                assert trio.current_time() - began < CONNECT
            assert not server.asked_streams
    assert len(logs) == 1
    assert logs[0]["log_level"] == "warning"
    assert logs[0]["upstream"] == f"tls://{server.endpoint}#{NAME}"
    assert cause in logs[0]["cause"]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(answer, id="DNS"),
        pytest.param(silence, id="silence"),
        pytest.param(lambda _: [Close()], id="FIN"),
        pytest.param(lambda _: [Reset()], id="RST"),
        pytest.param(lambda _: [Part(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Close()], id="HTTP"),
    ],
)
async def test_a_plain_server_where_tls_is_expected_is_no_answer_in_time(clock: MockClock, script: Script) -> None:
    """It reads the first octets of the handshake as a length of 5,635 octets and waits for them."""
    with capture_logs() as logs:
        async with faulty_upstream(streams=script) as server, asking(tls(server.endpoint)) as client:
            for _ in range(3):
                began = trio.current_time()
                assert await client.ask() is None
                assert trio.current_time() - began <= GIVE_UP
    assert [line["log_level"] for line in logs] == ["warning"]


@pytest.mark.parametrize(
    "greeting",
    [
        pytest.param([Part(b"\0" * 50)], id="zeros"),
        pytest.param([Part(b"\x15\x03\x03\0\x02\x02\x28")], id="an alert"),
        pytest.param([Part(b"220 mail.example.org ESMTP\r\n")], id="another protocol"),
        pytest.param([Close()], id="FIN"),
        pytest.param([Reset()], id="RST"),
    ],
)
async def test_what_is_no_handshake_is_no_answer_and_leaves_no_descriptor(
    clock: MockClock, greeting: list[Step]
) -> None:
    async with faulty_upstream() as server, asking(tls(server.endpoint)) as client:
        server.greeting = greeting
        before = open_descriptors()
        assert await client.ask() is None
        assert await client.ask() is None
        await wait_all_tasks_blocked(0.02)
        assert open_descriptors() == before


async def test_a_server_of_tls_1_2_is_good_enough_and_one_that_ends_without_a_word_is_too(clock: MockClock) -> None:
    """RFC 7858 needs no closing handshake: each message has a length."""
    context = certificates.good()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serving(lambda asked: [upstream.right(asked), Pause(0.1), Reset()], context) as (server, client):
        for _ in range(3):
            assert await client.ask() == RIGHT
            await trio.sleep(1.0)
        assert server.connections == 3


def test_what_it_takes_by_itself_checks_all_there_is_to_check() -> None:
    context = default_context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


async def test_the_systems_authorities_are_trusted_and_can_be_named(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authorities = tmp_path / "authorities.pem"
    authorities.write_bytes(certificates.CA.cert_pem.bytes())
    async with faulty_upstream(secured=certificates.good()) as server:
        async with asking(tls(server.endpoint), default_context) as client:
            assert await client.ask() is None
        monkeypatch.setenv("SSL_CERT_FILE", str(authorities))
        async with asking(tls(server.endpoint), default_context) as client:
            assert await client.ask() == RIGHT


# --- what is told ----------------------------------------------------------------------------------------------------


async def test_a_fault_is_logged_once_and_its_end_once(clock: MockClock) -> None:
    context = certificates.good()
    with capture_logs() as logs:
        async with faulty_upstream(secured=context) as server, asking(tls(server.endpoint)) as client:
            server.secured = certificates.expired()
            assert {await client.ask() for _ in range(3)} == {None}
            server.secured = None
            server.greeting = [Reset()]
            assert {await client.ask() for _ in range(3)} == {None}
            server.secured, server.greeting = context, []
            assert {await client.ask() for _ in range(3)} == {RIGHT}
    assert [line["log_level"] for line in logs] == ["warning", "warning", "info"]
    assert logs[-1]["event"] == "upstream is reachable again"


async def test_a_good_connection_is_not_worth_a_word(clock: MockClock, secured: ssl.SSLContext | None) -> None:
    with capture_logs() as logs:
        async with serving(lambda asked: [upstream.right(asked), Close()], secured) as (_, client):
            for _ in range(5):
                assert await client.ask() == RIGHT
    assert logs == []


class Turns:
    """A greeting that ends every second connection: behind a balancer one of two servers is dead."""

    def __init__(self) -> None:
        self._ends = cycle([True, False])

    def __iter__(self) -> Iterator[Step]:
        return iter([Close()] if next(self._ends) else [])


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> float:
    """A time between two reports that fits into the deadline of a test."""
    monkeypatch.setattr(pipelines, "REPORT_EVERY", 10.0)
    return 10.0


async def test_a_fault_that_comes_and_goes_is_logged_once_in_a_while(clock: MockClock, quiet: float) -> None:
    def script(asked: bytes) -> list[Step]:
        return [upstream.right(asked), Close()]

    with capture_logs() as logs:
        async with serving(script, certificates.good()) as (server, client):
            server.greeting = Turns()
            for _ in range(30):
                await client.ask()
            causes = {line["cause"] for line in logs if line["log_level"] == "warning"}
            assert server.connections >= 30
            assert len(logs) == 2 * len(causes), "each with its end"
            await trio.sleep(quiet)
            before = len(logs)
            for _ in range(4):
                await client.ask()
            assert len(logs) > before


async def test_faults_that_take_turns_are_logged_once_each_in_a_while(clock: MockClock, quiet: float) -> None:
    with capture_logs() as logs:
        async with faulty_upstream(secured=certificates.good()) as server, asking(tls(server.endpoint)) as client:
            contexts = [certificates.expired(), certificates.of_another_name()]
            for turn in range(10):
                server.secured = contexts[turn % 2]
                assert await client.ask() is None
            assert len(logs) == 2
            await trio.sleep(quiet)
            server.secured = contexts[0]
            assert await client.ask() is None
            assert len(logs) == 3, "a fault that is back after that time is logged again"
