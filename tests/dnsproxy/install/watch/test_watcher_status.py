"""The status of a watcher: readiness, metrics and page."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from dnsproxy.install.change.coverage import Coverage
from dnsproxy.install.watch.state_machine import Standing, WatchState
from dnsproxy.install.watch.watcher_status import WatchCollector, WatchStatus, format_page


def status(standing: Standing = Standing.INSTALLED, why: str = "", **changes: object) -> WatchStatus:
    one = WatchStatus(state=WatchState(standing, why, repairs=3, undone=2), stood=True, loaded=True)
    for name, value in changes.items():
        setattr(one, name, value)
    return one


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        pytest.param(status(), "", id="loaded"),
        pytest.param(status(Standing.REPAIRING), "", id="being repaired, and still loaded"),
        pytest.param(status(Standing.UNKNOWN, "away"), "", id="the API server is away"),
        pytest.param(status(Standing.UNKNOWN, "away", stood=False), "unknown: away", id="away from the start"),
        pytest.param(status(Standing.STARTING, stood=False), "starting", id="at the start"),
        pytest.param(status(Standing.REFUSED, "no"), "refused: no", id="refused"),
        pytest.param(status(Standing.UNDONE), "undone: 2 times so far", id="undone"),
        pytest.param(status(loaded=False, said="NXDOMAIN"), "written, but not loaded yet: NXDOMAIN", id="not"),
        pytest.param(status(loaded=None), "written, but not loaded yet: the cluster", id="not asked yet"),
        pytest.param(status(loaded=None, asks=False), "", id="not to be asked"),
    ],
)
def test_it_is_ready_once_the_stanza_is_loaded(told: WatchStatus, reason: str) -> None:
    assert told.why_not_ready().startswith(reason)
    assert bool(told.why_not_ready()) is bool(reason)


def test_metrics_count_and_name_no_name() -> None:
    registry = CollectorRegistry()
    registry.register(WatchCollector(status(Standing.UNDONE, look_time=12.5, target="secret")))
    text = generate_latest(registry).decode()
    assert "secret" not in text
    assert {
        "dnsproxy_install_repairs_total 3.0",
        "dnsproxy_install_undone_total 2.0",
        'dnsproxy_install_state{state="undone"} 1.0',
        'dnsproxy_install_state{state="installed"} 0.0',
        "dnsproxy_install_loaded 1.0",
        "dnsproxy_install_look_timestamp_seconds 12.5",
        "dnsproxy_install_names_left_out 0.0",
    } <= set(text.splitlines())


def test_the_page_escapes_what_comes_from_outside() -> None:
    page = format_page(status(Standing.REFUSED, "<script>", said="a & b"))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "a &amp; b" in page


def test_the_page_shows_names_in_place_of_zones_and_what_is_left_out() -> None:
    page = format_page(status(names="12 names, each to its Service"))
    assert "12 names, each to its Service" in page
    assert "Zones" not in page
    assert "wildcard" not in page
    full = format_page(status(names="500 names, each to its Service; 7 left out beyond 500 lines", left_out=7))
    assert "7 left out beyond 500 lines; a wildcard host is one line for all its names" in full
    registry = CollectorRegistry()
    registry.register(WatchCollector(status(left_out=7)))
    assert "dnsproxy_install_names_left_out 7.0" in generate_latest(registry).decode()


@pytest.mark.parametrize(
    ("coverage", "words"),
    [
        (Coverage(("a.example.net",), ("example.net",), "a table"), "a.example.net; add --zone example.net"),
        (Coverage(unknown="no answer"), "unknown: no answer"),
    ],
)
def test_the_page_names_the_zones_and_the_hostnames_outside_them(coverage: Coverage, words: str) -> None:
    page = format_page(status(zones="example.org", coverage=coverage))
    assert "example.org" in page
    assert words in page
    assert "outside the zones" not in format_page(status(zones="example.org"))
