"""What the replica that led before may have done, and what is new."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from dnsproxy.operate.decide.facts import Facts, Route
from dnsproxy.operate.decide.handshaking import HeadersSince, LastHandshake
from dnsproxy.operate.decide.inheritance import (
    FirstSights,
    inherited_balancers,
    inherited_handshakes,
    inherited_probes,
    note_places,
)
from dnsproxy.operate.decide.probing import INTERVAL, LastProbe
from tests.dnsproxy.operate.decide.cluster import (
    CLASS,
    GATEWAY,
    KEY,
    NGINX,
    SERVICE,
    by_key,
    cluster,
    endpoints_of,
    route_of,
    service,
)

UNTIL = 100.0
TAKEN = 101.0
UNREAD = replace(SERVICE, endpoints=None)
MORE = replace(SERVICE, endpoints=endpoints_of((80, 443), ("10.0.0.1", "10.0.0.2", "10.0.0.3")))
OTHER = replace(CLASS, subject=GATEWAY, status=("192.0.2.99",))
OTHERS = service("web/other", points=(), endpoints=endpoints_of((80,), ["10.0.5.1"]))
BOTH = cluster(subjects=(CLASS, replace(OTHER, backend="web/other")), services=by_key(SERVICE, OTHERS))


def inherited(*readings: tuple[float, Facts], until: float = UNTIL) -> set[str]:
    """The hosts of the endpoints that another replica may have probed, after these readings."""
    seen = FirstSights()
    for now, facts in readings:
        seen = note_places(seen, facts, now=now)
    return {endpoint.host for _, _, endpoint in inherited_probes(seen, until=until)}


OLD = {"10.0.0.1", "10.0.0.2"}


@pytest.mark.parametrize(
    ("readings", "hosts"),
    [
        pytest.param([(TAKEN, cluster())], OLD, id="the first reading of a new process"),
        pytest.param([(TAKEN, cluster()), (102, cluster(CLASS, MORE))], OLD, id="and a pod that came after it"),
        pytest.param(
            [(TAKEN, cluster(CLASS, UNREAD)), (103, cluster()), (104, cluster(CLASS, MORE))],
            OLD,
            id="endpoints that are read a moment later",
        ),
        pytest.param(
            [(TAKEN, cluster(complete=False)), (102, cluster(CLASS, MORE)), (103, BOTH)],
            OLD,
            id="a reading that is not complete",
        ),
        pytest.param(
            [(TAKEN, cluster(subjects=())), (105, cluster(CLASS, UNREAD)), (106, cluster())],
            set(),
            id="a class whose first hostname came later",
        ),
        pytest.param([(TAKEN, cluster()), (105, BOTH)], OLD, id="a second class that came later"),
        pytest.param(
            [(TAKEN, cluster()), (105, cluster(CLASS, replace(SERVICE, endpoints={}))), (107, cluster())],
            set(),
            id="endpoints that were gone meanwhile",
        ),
        pytest.param(
            [(0, cluster()), (99, cluster(CLASS, MORE))],
            {*OLD, "10.0.0.3"},
            id="a pod that came while the other replica led",
        ),
        pytest.param(
            [(0, cluster()), (104, cluster(CLASS, MORE))],
            OLD,
            id="a pod that came while no replica led",
        ),
    ],
)
def test_what_was_there_while_another_replica_led_is_inherited(
    readings: list[tuple[float, Facts]], hosts: set[str]
) -> None:
    assert inherited(*readings) == hosts


def test_without_another_replica_all_is_due_at_once() -> None:
    found = inherited_probes(note_places(FirstSights(), cluster(), now=0), until=-inf)
    assert {one.at for one in found.values()} == {-inf}


def test_a_load_balancer_waits_as_long_as_nothing_of_its_service_is_probed_here() -> None:
    last = inherited_probes(note_places(FirstSights(), cluster(), now=TAKEN), until=UNTIL)
    assert inherited_balancers(last) == {KEY: UNTIL}
    new = (KEY, 80, endpoints_of((80,), ["10.0.0.3"])[80][0])
    assert inherited_balancers({**last, new: LastProbe(TAKEN)}) == {}


SAME = HeadersSince("v1", -inf)


@pytest.mark.parametrize(
    ("route", "headers", "now", "waits"),
    [
        pytest.param(route_of(), SAME, TAKEN, True, id="a class that is steered"),
        pytest.param(route_of(), HeadersSince("v1", 90), TAKEN, True, id="its header changed before"),
        pytest.param(route_of(), HeadersSince("v1", 102), 103, False, id="its header has changed since"),
        pytest.param(route_of(steered=False), SAME, TAKEN, False, id="a relay Service that is new"),
        pytest.param(replace(route_of(), ours=False), SAME, TAKEN, False, id="a Service of a person"),
        pytest.param(route_of(), SAME, UNTIL + INTERVAL, False, id="a minute later"),
    ],
)
def test_a_handshake_waits_only_if_it_may_have_been_made(
    route: Route, headers: HeadersSince, now: float, waits: bool
) -> None:
    facts = cluster(routes=(replace(route, uid="u"),))
    found = inherited_handshakes(facts, {NGINX: headers}, until=UNTIL, now=now)
    assert found == ({NGINX: LastHandshake(KEY, UNTIL, uid="u", headers="v1")} if waits else {})
