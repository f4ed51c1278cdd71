"""`GET /tap` of a real admin port: its lines, its filters, its bounds, and what `--tap` forbids."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final

import pytest
import trio
from prometheus_client import CollectorRegistry
from trio.testing import MockClock, wait_all_tasks_blocked

from dnsproxy.admin import tap_route
from dnsproxy.admin.tap_route import TapRoute, tap_lines
from dnsproxy.tap import hub
from dnsproxy.tap.filters import TapFilter
from dnsproxy.tap.hub import QUEUE, Tap
from dnsproxy.tap.mode import TapMode
from dnsproxy.tap.seen import Outcome
from sidecar.admin.answers import Answer
from sidecar.admin.following import follow
from sidecar.admin.server import Readiness, serve_admin
from sidecar.sockets.listeners import bound_endpoint, listen_tcp
from sidecar.values.endpoints import Endpoint
from tests.kit import messages

CLIENT: Final = (None, ("192.0.2.7", 5353))


def note(tap: Tap, name: str = "app.example.org", *, client: Any = CLIENT, outcome: Outcome = Outcome.DROPPED) -> None:
    tap.note(client, messages.query(name), b"", outcome, seconds=0.001)


def shown(answer: Answer | Any) -> Answer:
    assert isinstance(answer, Answer)
    return answer


def asked(fields: Mapping[str, str], mode: TapMode = TapMode.ON) -> Answer:
    return shown(TapRoute(Tap(), mode).routes()["/tap"](fields))


@asynccontextmanager
async def served(tap: Tap, mode: TapMode = TapMode.ON) -> AsyncIterator[Endpoint]:
    listener = listen_tcp(Endpoint("127.0.0.1", 0), flag="--admin")
    endpoint = bound_endpoint(listener)
    serve = partial(
        serve_admin,
        [listener],
        readiness=lambda: Readiness(ready=True, reason="ready"),
        registry=CollectorRegistry(),
        page=str,
        routes=TapRoute(tap, mode).routes(),
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(serve)
        yield endpoint
        nursery.cancel_scope.cancel()


@contextmanager
def changes_of(tap: Tap) -> Iterator[trio.MemoryReceiveChannel[bool]]:
    """Whether somebody listens, each time that a listener comes or goes."""
    send, receive = trio.open_memory_channel[bool](100)
    tap.on_change = lambda: send.send_nowait(tap.listening)
    with send, receive:
        yield receive


async def test_a_listener_gets_the_queries_that_it_wants_until_it_leaves() -> None:
    tap = Tap()
    events: list[dict[str, Any]] = []
    with changes_of(tap) as changes, trio.fail_after(10):
        async with served(tap) as endpoint, trio.open_nursery() as nursery:

            async def listen() -> None:
                target = "/tap?name=*.example.org&client=192.0.2.0/24"
                async with aclosing(follow(endpoint, target, program="x")) as lines:
                    events.append(json.loads(await anext(lines)))

            nursery.start_soon(listen)
            assert await changes.receive() is True
            note(tap, "app.example.com")
            note(tap, "b.example.org", client=(None, ("198.51.100.1", 1)))
            note(tap, "App.example.org")
            assert await changes.receive() is False
    (event,) = events
    assert (event["qname"], event["client"], event["outcome"]) == ("App.example.org", "192.0.2.7", "dropped")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"client": "x"}, "'x' is not an address or network; try 192.0.2.10 or 2001:db8::/32", id="client"),
        pytest.param({"type": "NOTYPE"}, "'NOTYPE' is not a query type; try A, AAAA or TYPE65", id="type"),
        pytest.param({"outcome": "ok"}, "'ok' is not an outcome; it is one of table, zone,", id="outcome"),
        pytest.param({"name": "x" * 1001}, "is not a name; try app.example.org or *.example.org", id="name"),
        pytest.param({"nme": "x"}, "'nme' is not a field; there are name, client, type, outcome", id="field"),
    ],
)
def test_a_bad_filter_is_400_with_the_reason(fields: dict[str, str], said: str) -> None:
    answer = asked(fields)
    assert (answer.status, isinstance(answer.body, bytes)) == (400, True)
    assert said in bytes(answer.body).decode()  # type: ignore[arg-type]


@pytest.mark.parametrize("fields", [{}, {"client": "x"}], ids=["everything", "a bad filter"])
def test_a_tap_that_is_off_is_403_and_says_why(fields: dict[str, str]) -> None:
    answer = asked(fields, TapMode.OFF)
    assert (answer.status, answer.body) == (403, b"the tap is off (--tap off)\n")


@pytest.mark.parametrize("mode", [TapMode.ON, TapMode.OFF], ids=["on", "off"])
async def test_without_recent_nothing_is_recorded(mode: TapMode) -> None:
    tap = Tap()
    route = TapRoute(tap, mode)
    await route.run()
    assert route.recent is None
    assert not tap.listening


async def test_recent_records_who_asked(autojump_clock: MockClock) -> None:  # noqa: ARG001
    tap = Tap()
    route = TapRoute(tap, TapMode.RECENT)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(route.run)
        await wait_all_tasks_blocked()
        for name in ("app.example.org", "APP.example.org", "other.example.org"):
            note(tap, name)
        tap.note(CLIENT, b"\0" * 12, b"", Outcome.DROPPED, seconds=0.0)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert route.recent is not None
    assert [(one.client, one.count) for one in route.recent.asked_by("app.example.org")] == [("192.0.2.7", 2)]
    assert len(route.recent) == 2
    assert not tap.listening


@pytest.fixture
def costless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listeners never rest: on a busy machine a turn that the kernel interrupts would be followed by long rests."""
    monkeypatch.setattr(hub, "perf_counter", lambda: 0.0)


async def test_a_listener_that_does_not_read_loses_queries_and_learns_how_many(
    autojump_clock: MockClock,  # noqa: ARG001
    costless: None,  # noqa: ARG001
) -> None:
    tap = Tap()
    more = 100
    async with aclosing(tap_lines(tap, TapFilter())) as lines:
        assert await anext(lines) == b"\n"
        for _ in range(QUEUE + more):
            note(tap)
        seen, dropped = 0, list[int]()
        while seen < QUEUE or not dropped:
            for line in (await anext(lines)).splitlines():
                document = json.loads(line)
                seen += "qname" in document
                dropped += [document["dropped"]] if "dropped" in document else []
    assert (seen, dropped) == (QUEUE, [more])


async def test_drops_are_noted_at_most_once_a_second(
    autojump_clock: MockClock,  # noqa: ARG001
    costless: None,  # noqa: ARG001
) -> None:
    tap = Tap()
    noted: list[float] = []
    async with aclosing(tap_lines(tap, TapFilter())) as lines:
        await anext(lines)
        begun = trio.current_time()
        with trio.move_on_after(5):
            while True:
                tap.distribute([], dropped=1)
                note(tap)
                if b'{"dropped"' in await anext(lines):
                    noted.append(trio.current_time() - begun)
                await trio.sleep(0.05)
    assert 4 <= len(noted) <= 5
    assert all(later - earlier >= tap_route.NOTE_SECONDS for earlier, later in itertools.pairwise(noted))


async def test_a_quiet_server_sends_empty_lines(autojump_clock: MockClock) -> None:  # noqa: ARG001
    async with aclosing(tap_lines(Tap(), TapFilter())) as lines:
        begun = trio.current_time()
        assert [await anext(lines) for _ in range(4)] == [b"\n"] * 4
    assert trio.current_time() - begun == pytest.approx(15, abs=1)
