"""Which failing routes make a relay unready."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.admin.route_readiness import RouteState, judge_routes
from proxy.backends.health import Cause, Failure
from proxy.routes import Listening, Quorum, ReadyWhen
from sidecar.values.endpoints import Endpoint

REFUSED = Failure(Cause.CONNECTION_REFUSED, "Connection refused")
ANY, ALL = (Quorum.ANY,), (Quorum.ALL,)
HTTPS, GIT, MAIL = 8443, 2222, 2525


def states(**failures: bool) -> list[RouteState]:
    """`git=True`: its backend fails."""
    ports = {"https": HTTPS, "git": GIT, "mail": MAIL}
    return [
        RouteState(Endpoint("::", ports[name]), f"{name}.example.org:1", REFUSED if failing else None)
        for name, failing in failures.items()
    ]


@pytest.mark.parametrize(
    ("failing", "ready_when", "ready"),
    [
        pytest.param({"https": False, "git": False}, ANY, True, id="any, none fails"),
        pytest.param({"https": False, "git": True}, ANY, True, id="any, one of two fails"),
        pytest.param({"https": True, "git": True}, ANY, False, id="any, both fail"),
        pytest.param({"https": True}, ANY, False, id="any, the only one fails"),
        pytest.param({"https": False, "git": False}, ALL, True, id="all, none fails"),
        pytest.param({"https": False, "git": True}, ALL, False, id="all, one of two fails"),
        pytest.param({"https": False, "git": True}, (Listening(HTTPS),), True, id="another port than the one named"),
        pytest.param({"https": True, "git": False}, (Listening(HTTPS),), False, id="the port named"),
        pytest.param(
            {"https": False, "git": True, "mail": False},
            (Listening(HTTPS), Listening(GIT)),
            False,
            id="one of the two ports named",
        ),
        pytest.param(
            {"https": False, "git": False, "mail": True},
            (Listening(HTTPS), Listening(GIT)),
            True,
            id="another port than the two named",
        ),
    ],
)
def test_a_relay_is_ready_by_the_routes_that_decide(
    failing: dict[str, bool], ready_when: ReadyWhen, ready: bool
) -> None:
    assert judge_routes(states(**failing), ready_when).ready is ready


@pytest.mark.parametrize(
    ("failing", "ready_when", "reason"),
    [
        pytest.param({"https": False, "git": False}, ANY, "ready", id="all well"),
        pytest.param(
            {"https": False, "git": True},
            ANY,
            "ready, 1 of 2 routes; backend unreachable (connection-refused): git.example.org:1: Connection refused",
            id="ready without one",
        ),
        pytest.param(
            {"git": True, "https": True},
            (Listening(HTTPS),),
            "backend unreachable (connection-refused): https.example.org:1: Connection refused; "
            "backend unreachable (connection-refused): git.example.org:1: Connection refused",
            id="what decides comes first",
        ),
    ],
)
def test_every_failing_backend_is_named(failing: dict[str, bool], ready_when: ReadyWhen, reason: str) -> None:
    assert judge_routes(states(**failing), ready_when).reason == reason


def test_a_backend_of_two_routes_is_named_once() -> None:
    both = [RouteState(Endpoint("::", port), "git.example.org:22", REFUSED) for port in (22, 2222)]
    assert judge_routes(both, ANY).reason.count("git.example.org") == 1


def test_a_port_means_every_address_and_an_address_only_its_own() -> None:
    one, other = (RouteState(Endpoint(host, HTTPS), host) for host in ("192.0.2.1", "192.0.2.2"))
    failing = RouteState(Endpoint("192.0.2.3", HTTPS), "192.0.2.3", REFUSED)
    assert judge_routes([one, other, failing], (Listening(HTTPS, "192.0.2.1"),)).ready
    assert not judge_routes([one, other, failing], (Listening(HTTPS),)).ready


@given(st.lists(st.booleans(), min_size=1, max_size=5))
def test_all_is_stricter_than_a_port_and_a_port_than_any(failing: list[bool]) -> None:
    routes = [
        RouteState(Endpoint("::", port), str(port), REFUSED if one else None)
        for port, one in enumerate(failing, start=1)
    ]
    by_all, by_port, by_any = (judge_routes(routes, rule).ready for rule in (ALL, (Listening(1),), ANY))
    assert by_all <= by_port <= by_any


NOT_OPEN = "cannot listen on [::]:8443: the address is in use"


def closed(port: int) -> RouteState:
    return RouteState(Endpoint("::", port), "service:web/shop:443", problem=NOT_OPEN)


@pytest.mark.parametrize(
    ("routes", "ready_when", "ready", "reason"),
    [
        pytest.param([], ANY, True, "ready, no routes", id="any of none"),
        pytest.param([], ALL, True, "ready, no routes", id="all of none"),
        pytest.param([], (Listening(HTTPS),), False, f"no route listens on {HTTPS}", id="a port that may come"),
        pytest.param(
            [],
            (Listening(HTTPS), Listening(GIT, "192.0.2.1")),
            False,
            f"no route listens on {HTTPS}; no route listens on 192.0.2.1:{GIT}",
            id="two ports that may come",
        ),
        pytest.param(
            states(git=False),
            (Listening(HTTPS),),
            False,
            f"no route listens on {HTTPS}",
            id="only another port is there",
        ),
        pytest.param(
            [closed(HTTPS)],
            (Listening(HTTPS),),
            False,
            f"no route listens on {HTTPS}; [::]:{HTTPS} is not open: {NOT_OPEN}",
            id="a port in use",
        ),
        pytest.param([closed(HTTPS)], ANY, False, f"[::]:{HTTPS} is not open: {NOT_OPEN}", id="any, and the only one"),
        pytest.param(
            [*states(git=False), closed(HTTPS)],
            ANY,
            True,
            f"ready, 1 of 2 routes; [::]:{HTTPS} is not open: {NOT_OPEN}",
            id="any, and another one works",
        ),
        pytest.param(
            [*states(git=False), closed(HTTPS)], ALL, False, f"[::]:{HTTPS} is not open: {NOT_OPEN}", id="all but one"
        ),
        pytest.param(
            [*states(git=True), closed(HTTPS)],
            ANY,
            False,
            "backend unreachable (connection-refused): git.example.org:1: Connection refused; "
            f"[::]:{HTTPS} is not open: {NOT_OPEN}",
            id="both",
        ),
    ],
)
def test_a_port_on_which_nothing_listens_is_no_working_route(
    routes: list[RouteState], ready_when: ReadyWhen, ready: bool, reason: str
) -> None:
    judged = judge_routes(routes, ready_when)
    assert (judged.ready, judged.reason) == (ready, reason)
