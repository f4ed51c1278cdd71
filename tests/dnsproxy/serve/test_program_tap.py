"""`--tap` of `dnsproxy serve` as a whole: what a listener sees, what explain remembers, and what never shows.

In one process and over loopback; the real API server is in tests/peers/test_tap_apiserver.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
import trio

from dnsproxy.admin.explain import Explanation, parse_explanation
from dnsproxy.serve.service import Bound
from dnsproxy.tap.event import TapEvent, parse_event
from dnsproxy.tap.mode import TapMode
from sidecar.admin import asking
from sidecar.admin.following import follow
from tests.kit.serve_inside import ask, ask_stream, get, serving, settings

HOST = "app.example.org"


async def body_of(bound: Bound, path: str) -> str:
    assert bound.admin is not None
    return (await asking.get(bound.admin, path, program="x")).body.decode()


async def explained(bound: Bound) -> Explanation:
    return parse_explanation((await body_of(bound, f"/explain?name={HOST}")).encode())


async def next_event(bound: Bound, query: str = "") -> TapEvent:
    """The first event for a listener; the name is asked for until it comes."""
    assert bound.admin is not None
    found: list[TapEvent] = []

    async def listen() -> None:
        assert bound.admin is not None
        async with aclosing(follow(bound.admin, f"/tap{query}", program="x")) as lines:
            event = parse_event(await anext(lines))
            assert isinstance(event, TapEvent)
            found.append(event)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        while True:
            await ask(bound.dns[0], HOST)  # each round waits for its reply
            await ask_stream(bound.dns[0], HOST)
    return found[0]


@asynccontextmanager
async def listened(bound: Bound) -> AsyncIterator[None]:
    """Somebody listens and has seen a query."""
    assert bound.admin is not None
    async with aclosing(follow(bound.admin, "/tap", program="x")) as lines, trio.open_nursery() as nursery:

        async def ask_again() -> None:
            while True:
                await ask(bound.dns[0], HOST)

        nursery.start_soon(ask_again)
        await anext(lines)
        yield
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "query", ["", "?client=127.0.0.0/8&type=A&name=*.org&outcome=table"], ids=["all", "with filters"]
)
async def test_a_listener_sees_the_queries_of_the_table(query: str) -> None:
    async with serving(settings()) as bound:
        event = await next_event(bound, query)
    assert (event.qname, event.qtype, event.client, event.outcome) == (HOST, "A", "127.0.0.1", "table")
    assert (event.rule, event.rcode) == (HOST, "NOERROR")
    assert event.transport in {"udp", "tcp"}
    assert event.port > 0


@pytest.mark.parametrize("mode", [TapMode.ON, TapMode.RECENT], ids=["on", "recent"])
async def test_neither_names_nor_addresses_reach_the_metrics(mode: TapMode) -> None:
    """A listener is on, and what it sees has both."""
    async with serving(settings(tap=mode)) as bound, listened(bound):
        status, text = await get(bound.admin, "/metrics")
    assert status == 200
    assert 'dnsproxy_dns_responses_total{rcode="NOERROR",source="table"}' in text
    assert HOST not in text
    assert "127.0.0.1" not in text.replace("127.0.0.1:9", "")  # the upstream is a label


async def test_a_tap_that_is_off_shows_nothing_to_anybody() -> None:
    async with serving(settings(tap=TapMode.OFF)) as bound:
        await ask(bound.dns[0], HOST)
        assert await get(bound.admin, "/tap") == (403, "the tap is off (--tap off)\n")
        assert (await explained(bound)).asked_by is None


async def test_explain_says_who_asked_if_that_is_recorded() -> None:
    async with serving(settings(tap=TapMode.RECENT)) as bound:
        await ask(bound.dns[0], HOST)
        with trio.fail_after(10):
            while not (asked := (await explained(bound)).asked_by):
                pass  # each round waits for its reply
        assert [(one.client, one.count) for one in asked] == [("127.0.0.1", 1)]
        page = await body_of(bound, f"/why?name={HOST}")
        assert "127.0.0.1, once in the last minute" in page


async def test_by_default_nothing_is_recorded() -> None:
    async with serving(settings()) as bound:
        await ask(bound.dns[0], HOST)
        assert (await explained(bound)).asked_by is None
        assert "Asked by" not in await body_of(bound, f"/why?name={HOST}")


@pytest.mark.parametrize("path", ["/tap?client=nowhere", "/tap?x=1"], ids=["a bad value", "an unknown field"])
async def test_a_bad_filter_is_400(path: str) -> None:
    async with serving(settings()) as bound:
        status, said = await get(bound.admin, path)
    assert status == 400
    assert "is not a" in said
