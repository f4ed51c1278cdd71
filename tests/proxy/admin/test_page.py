"""The status page."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from proxy.admin.page import (
    CHARTS,
    RelayStatus,
    RouteStatus,
    ServicesStatus,
    read_counters,
    relay_facts,
    render_page,
)
from proxy.backends.health import Cause
from proxy.relay.counters import Counters
from sidecar.admin.page.history import History

EVIL = "<script>alert(1)</script>\"'&\u202e"
ROUTE = RouteStatus(listen="[::]:8080", backend="example.org:80", protocol="v2", addresses=["192.0.2.1:80"])


def status(*routes: RouteStatus, fault: str = "", limit: int = 100, **counted: Any) -> RelayStatus:
    return RelayStatus(routes, Counters(**counted), limit, History(CHARTS), fault)


def facts_of(one: RelayStatus) -> dict[str, tuple[str, str]]:
    return {fact.live: (fact.text, str(fact.level)) for fact in relay_facts(one)}


def test_the_page_shows_each_route() -> None:
    page = render_page(status(ROUTE, active=3, connections=10))
    told = (
        "[::]:8080",
        "example.org:80",
        "<td>v2</td>",
        "192.0.2.1:80",
        "no failure",
        'data-live="active">3<',
        'data-live="limit">100<',
        'data-live="connections">10<',
    )
    for text in told:
        assert text in page


def test_the_script_gets_the_values_of_the_page() -> None:
    one = status(ROUTE, active=3)
    shown = dict(re.findall(r'data-live="([^"]*)">([^<]*)<', render_page(one)))
    assert shown == {name: text for name, (text, _) in facts_of(one).items()}


@pytest.mark.parametrize(
    ("faults", "fault", "said", "level"),
    [
        (["", ""], "", "relaying", "ok"),
        (["timeout: x", ""], "", "relaying, 1 of 2 backends failing", "warn"),
        (["timeout: x", "timeout: y"], "", "no backend is reachable", "bad"),
        (["", ""], "no worker is up", "no worker is up", "bad"),
        ([], "", "relaying", "ok"),
    ],
    ids=["well", "one away", "all away", "no worker", "no route"],
)
def test_the_state_is_that_of_the_backends(faults: list[str], fault: str, said: str, level: str) -> None:
    routes = [RouteStatus("[::]:8080", "example.org:80", "v1", [], one) for one in faults]
    assert facts_of(status(*routes, fault=fault))["state"] == (said, level)


def test_a_route_that_decides_and_fails_is_worse_than_another() -> None:
    routes = [RouteStatus("[::]:8080", "example.org:80", "v1", [], one) for one in ("timeout: x", "")]
    one = replace(status(*routes), ready=False)
    assert facts_of(one)["state"] == ("not ready, 1 of 2 backends failing", "bad")


def test_a_full_or_refusing_relay_shows_it() -> None:
    told = facts_of(status(ROUTE, active=5, limit=5, refused=1, backend_errors={Cause.TIMEOUT: 2}))
    assert (told["active"][1], told["refused"][1], told["error-timeout"]) == ("bad", "warn", ("2", "warn"))


def test_rates_are_of_what_was_counted() -> None:
    counters, history = Counters(), History(CHARTS)
    history.take(0.0, read_counters(counters))
    counters.connections, counters.active, counters.octets_to_client = 10, 4, 1024 * 8
    counters.backend_errors[Cause.TIMEOUT] = 2
    history.take(2.0, read_counters(counters))
    assert history.since(0) == [(5.0, 1.0, 4.0, 0.0, 4.0)]


def test_whatever_a_route_holds_stays_text() -> None:
    page = render_page(status(RouteStatus(EVIL, EVIL, EVIL, [EVIL], EVIL), fault=EVIL))
    assert page.count("<script") == page.count('<script src="script.js" defer>') == 1
    assert "\u202e" not in page
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]  # noqa: ARG005
    parser.feed(page)
    assert "html" in tags


BY_SERVICE = replace(ROUTE, listen="[::]:20443", services=("switchback/a", "switchback/b"))


def test_a_route_says_where_it_comes_from() -> None:
    page = render_page(status(ROUTE, BY_SERVICE))
    assert "<td>--route</td>" in page
    assert "<td>switchback/a, switchback/b</td>" in page
    assert 'id="services"' not in page, "no Service is followed"


def test_the_state_of_a_route_that_may_go_never_becomes_that_of_another() -> None:
    other = replace(BY_SERVICE, listen="[::]:20444", fault="timeout: x")
    both, left = (facts_of(status(ROUTE, *routes)) for routes in ((BY_SERVICE, other), (other,)))
    assert both["service-route-[::]:20444"] == left["service-route-[::]:20444"] == ("timeout: x", "bad")
    assert "service-route-[::]:20443" not in left
    assert both["route-0"] == left["route-0"]


def test_what_is_not_relayed_is_listed_by_service() -> None:
    services = ServicesStatus("watching", False, {"switchback/a": ["it has no port"], "switchback/b": ["x", "y"]})
    one = replace(status(BY_SERVICE), services=services)
    page = render_page(one)
    for text in (
        "switchback/a",
        "it has no port",
        'data-live="services-faults">3<',
        'data-live="services-watch">watching<',
    ):
        assert text in page
    assert facts_of(one)["services-watch"] == ("watching", "ok")
    assert facts_of(one)["services-faults"] == ("3", "warn")
    lost = replace(one, services=ServicesStatus("retrying: 403: no", True, {}))
    assert facts_of(lost)["services-watch"] == ("retrying: 403: no", "warn")
    assert "Everything that they ask for is relayed." in render_page(lost)


def test_whatever_a_service_holds_stays_text() -> None:
    services = ServicesStatus(EVIL, True, {EVIL: [EVIL]})
    page = render_page(replace(status(replace(ROUTE, services=(EVIL,))), services=services))
    assert page.count("<script") == 1
    assert "\u202e" not in page
