"""The overview, and the counters of its charts (rates.py)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dnsproxy.admin.pages.overview import Overview, UpstreamState, format_age, format_overview, overview_facts
from dnsproxy.admin.pages.rates import CHARTS, read_counters
from dnsproxy.answers.counters import Counters
from sidecar.admin.page.document import Fact, Level
from sidecar.admin.page.history import History
from sidecar.kubernetes.errors import Forbidden, ServerTrouble
from sidecar.kubernetes.follower_status import FollowerState, FollowerStatus

EVIL = "<script>alert(1)</script>\u202e"


def overview(**changes: Any) -> Overview:
    plain = Overview(
        state=Fact("State", "ready, 3 names", Level.OK, "state"),
        names=3,
        waiting=0,
        excluded=0,
        elsewhere=0,
        rejected=0,
        swapped=3.4,
        waiting_for=(),
        sources=[FollowerStatus("Ingress", FollowerState.WATCHING, synced=True, objects=1_234, contact=95.0)],
        now=100.0,
        outstanding=0,
        upstreams=[
            UpstreamState("192.0.2.53:53", asked=True, failing=False, looping=False, misses=0, stream_only=False)
        ],
        counters=Counters(),
        history=History(CHARTS),
    )
    return replace(plain, **changes)


def levels_of(one: Overview) -> dict[str, tuple[str, str]]:
    return {fact.live: (fact.text, str(fact.level)) for fact in overview_facts(one)}


def test_the_script_gets_what_the_page_shows() -> None:
    """All but the state, which is in the frame."""
    one = overview()
    page = format_overview(one)
    shown = dict(re.findall(r'data-live="([^"]*)">([^<]*)<', page))
    assert shown == {name: text for name, (text, _) in levels_of(one).items() if name != "state"}
    assert set(shown) >= {"names", "lost", "source-0", "upstream-0"}


@pytest.mark.parametrize(
    ("changes", "name", "text", "level"),
    [
        pytest.param({}, "names", "3", "", id="names"),
        pytest.param({"names": 100_000}, "names", "100,000", "", id="many names"),
        pytest.param({"excluded": 2}, "lost", "2", "warn", id="excluded"),
        pytest.param({"waiting": 1}, "without-address", "1", "bad", id="without an address"),
        pytest.param(
            {"waiting_for": ["Ingress", "x"]}, "waiting-for", "waiting for Ingress, x", "bad", id="not synced"
        ),
        pytest.param({}, "waiting-for", "all", "ok", id="synced"),
        pytest.param({}, "swapped", "3 s ago", "", id="age"),
        pytest.param({"swapped": None}, "swapped", "never", "", id="no table yet"),
        pytest.param({}, "source-0-heard", "5 s ago", "", id="source heard from"),
        pytest.param({}, "source-0", "watching", "ok", id="source watching"),
    ],
)
def test_each_fact_has_its_words_and_its_level(changes: dict[str, Any], name: str, text: str, level: str) -> None:
    assert levels_of(overview(**changes))[name] == (text, level)


@pytest.mark.parametrize(
    ("make", "level"),
    [
        pytest.param(lambda: FollowerStatus("x"), "warn", id="the first list"),
        pytest.param(
            lambda: FollowerStatus("x", FollowerState.RETRYING, error=ServerTrouble("503")), "bad", id="retrying"
        ),
        pytest.param(
            lambda: FollowerStatus("x", FollowerState.RETRYING, error=Forbidden("403")), "warn", id="not there for us"
        ),
        pytest.param(lambda: FollowerStatus("x", FollowerState.WATCHING, doubted=True), "bad", id="doubted"),
    ],
)
def test_a_source_in_trouble_shows(make: Callable[[], FollowerStatus], level: str) -> None:
    assert levels_of(overview(sources=[make()]))["source-0"][1] == level


@pytest.mark.parametrize(
    ("failing", "looping", "said"),
    [(False, False, "healthy"), (True, False, "asked after the others"), (True, True, "loops back")],
)
def test_an_upstream_shows_its_health(failing: bool, looping: bool, said: str) -> None:
    upstream = UpstreamState(EVIL, asked=True, failing=failing, looping=looping, misses=7, stream_only=True)
    one = overview(upstreams=[upstream])
    assert said in levels_of(one)["upstream-0"][0]
    assert "<script>alert" not in format_overview(one)


def test_an_upstream_without_a_query_is_neither_healthy_nor_failing() -> None:
    upstream = UpstreamState("192.0.2.53:53", asked=False, failing=False, looping=False, misses=0, stream_only=False)
    assert levels_of(overview(upstreams=[upstream]))["upstream-0"] == ("not asked yet", "")


def test_a_server_without_queries_shows_it_once_it_can_know() -> None:
    counters, history = Counters(), History(CHARTS)
    one = overview(counters=counters, history=history)
    assert levels_of(one)["recent"] == ("about 0", "")
    for second in (0.0, 2.0):
        history.take(second, read_counters(counters, outstanding=0))
    assert levels_of(one)["recent"][1] == "warn"
    counters.table_by_rcode[0] += 100
    history.take(4.0, read_counters(counters, outstanding=3))
    assert levels_of(one)["recent"] == ("about 100", "")
    assert (history.line("table")[-1], history.line("outstanding")[-1]) == (50.0, 3)


def test_notes_stand_first_and_stay_text() -> None:
    page = format_overview(overview(notes=[EVIL]))
    assert page.startswith('<ul class="notes">')
    assert "<script>alert" not in page


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "never"),
        (0, "0 s ago"),
        (119, "119 s ago"),
        (121, "2 min ago"),
        (7_300, "2 h ago"),
        (900_000, "10 d ago"),
    ],
)
def test_an_age_is_shown_in_its_largest_unit(seconds: float | None, text: str) -> None:
    assert format_age(seconds) == text
