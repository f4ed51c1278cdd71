"""Which endpoints may be probed now."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest

from dnsproxy.doctor.facts.model import Port
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.operate.decide.decisions import UNKNOWN_PLANE
from dnsproxy.operate.decide.facts import Facts, Place, ServiceFacts, Subject, SubjectFacts
from dnsproxy.operate.decide.probing import (
    INTERVAL,
    MOST_AT_ONCE,
    MOST_PORTS,
    ROUNDS,
    SETTLE,
    SPREAD,
    EndpointProbe,
    LastProbe,
    due_balancers,
    due_probes,
    gap,
    note_probe,
    still_known,
    suspect,
)
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.operate.decide.cluster import (
    CLASS,
    KEY,
    PROXY,
    SERVICE,
    cluster,
    endpoints_of,
    probed,
    probes_of,
    service,
)

PODS = [f"10.0.1.{number}" for number in range(20)]


def played(facts: Facts, last: dict[Place, LastProbe], *, begin: int, seconds: int) -> list[tuple[int, Place]]:
    """The probes of so many seconds, each made when it was due, with no change."""
    made = []
    for now in range(begin, begin + seconds):
        for one in due_probes(facts, last, now=now):
            last[one.place] = LastProbe(now, one.in_turn)
            made.append((now, one.place))
    return made


def test_every_endpoint_is_probed_at_first_sight_and_then_one_of_each_port_in_a_minute() -> None:
    made = played(cluster(), {}, begin=0, seconds=1200)
    times: dict[int, list[int]] = defaultdict(list)
    for now, (_, port, _) in made:
        times[port].append(now)
    for found in times.values():
        assert found[:2] == [0, 0]
        gaps = [after - before for before, after in pairwise(found[1:])]
        assert set(gaps[1:]) == {INTERVAL}
        assert INTERVAL - SPREAD <= gaps[0] <= INTERVAL
    assert gap(f"{KEY}:80", in_turn=False) != gap(f"{KEY}:443", in_turn=False)


def test_endpoints_take_turns() -> None:
    made = played(cluster(), {}, begin=0, seconds=600)
    hosts = [place[2].host for now, place in made if place[1] == 443]
    assert set(hosts[2:4]) == {"10.0.0.1", "10.0.0.2"}
    assert abs(hosts.count("10.0.0.1") - hosts.count("10.0.0.2")) <= 1


def test_a_new_endpoint_is_probed_at_once_and_the_others_are_not() -> None:
    last: dict[Place, LastProbe] = {}
    played(cluster(), last, begin=0, seconds=1)
    more = replace(SERVICE, endpoints=endpoints_of((80, 443), ("10.0.0.1", "10.0.0.2", "10.0.0.3")))
    made = played(cluster(CLASS, more), last, begin=1, seconds=1)
    assert [(port, one.host) for _, (_, port, one) in made] == [(80, "10.0.0.3"), (443, "10.0.0.3")]


def test_many_new_endpoints_are_probed_in_parts() -> None:
    many = replace(SERVICE, endpoints=endpoints_of((443,), PODS))
    assert len(due_probes(cluster(CLASS, many), {}, now=0)) == MOST_AT_ONCE
    made = played(cluster(CLASS, many), {}, begin=0, seconds=3)
    assert len({place for _, place in made}) == len(made) == len(PODS)


def test_a_suspicion_has_all_endpoints_of_its_service_probed_at_once_and_in_the_rounds_that_follow() -> None:
    last: dict[Place, LastProbe] = {}
    played(cluster(), last, begin=0, seconds=1)
    first, second = ((KEY, 443, one) for one in (SERVICE.endpoints or {})[443])
    last[first] = LastProbe(20.0)
    assert due_at(20.0, last, {"other/backend": 20.0}) == []
    # The one whose reaction was another is not probed twice.
    assert due_at(20.0, last, {KEY: 20.0}) == [second]
    rounds = []
    for now in range(20, 65):
        due = due_at(now, last, {KEY: 20.0})
        rounds += [now] if due else []
        last |= {place: LastProbe(now, in_turn=False) for place in due}
    assert rounds == [20, *(20 + number * SETTLE for number in range(1, ROUNDS + 1))]


def test_a_round_that_is_not_through_when_the_next_begins_goes_on_with_the_oldest() -> None:
    many = replace(SERVICE, endpoints=endpoints_of((443,), PODS))
    last: dict[Place, LastProbe] = {(KEY, 443, Endpoint(pod, 8443)): LastProbe(0.0) for pod in PODS}
    met = []
    for now in (10, 20, 30):
        due = due_probes(cluster(CLASS, many), last, now=now, suspected={KEY: 10.0})
        last |= {one.place: note_probe(last[one.place], one, now=now) for one in due}
        met += [one.place for one in due]
    assert len(set(met)) == len(PODS) <= 3 * MOST_AT_ONCE


def test_a_silent_endpoint_holds_up_no_round() -> None:
    """It may have half of the places of a Service at once."""
    silent = probed(HeaderMode.SILENT)
    facts = cluster(probes={**probes_of(), **{(KEY, 443, one): silent for one in (SERVICE.endpoints or {})[443]}})
    last = dict.fromkeys(probes_of(), LastProbe(0.0))
    due = due_probes(facts, last, now=10.0, suspected={KEY: 10.0})
    assert {(one.place[1], one.in_turn) for one in due} == {(80, False), (443, True)}


def test_a_round_is_no_reason_to_probe_a_pod_less_that_comes_and_goes() -> None:
    place = next(iter(probes_of()))
    regular = note_probe(None, EndpointProbe(place, tls=True, hostnames=(), in_turn=True), now=0.0)
    again = EndpointProbe(place, tls=True, hostnames=(), in_turn=False)
    in_a_round = note_probe(regular, again, now=50.0)
    assert (in_a_round.at, in_a_round.earlier) == (50.0, regular.earlier)
    back = note_probe(replace(in_a_round, gone=True), again, now=60.0)
    assert (back.at, back.earlier) == (60.0, 50.0)


def test_a_service_comes_under_suspicion_once_a_minute() -> None:
    begun = suspect(-inf, 100.0)
    assert begun == suspect(begun, 100.0 + INTERVAL - 1) == 100.0
    # A slow probe may tell later what it has begun to see before.
    assert suspect(begun, 90.0) == 100.0
    assert suspect(begun, 100.0 + INTERVAL) == 100.0 + INTERVAL


def due_at(now: float, last: dict[Place, LastProbe], suspected: dict[str, float] | None = None) -> list[Place]:
    due = due_probes(cluster(), last, now=now, suspected=suspected or {})
    return [one.place for one in due if one.place[1] == 443]


@pytest.mark.parametrize(
    ("one", "found"),
    [
        pytest.param(replace(CLASS, hostnames=0), SERVICE, id="a subject without names"),
        pytest.param(replace(CLASS, status=()), SERVICE, id="a Service without a subject"),
        pytest.param(replace(CLASS, backend=KEY), service(type="ClusterIP"), id="no load balancer"),
        pytest.param(CLASS, service(ports=(Port(22, "ssh"),)), id="no web port"),
        pytest.param(CLASS, service(ports=(Port(8443, "https-webhook"),)), id="a port of the program itself"),
        pytest.param(CLASS, replace(SERVICE, endpoints=None), id="endpoints that were not read"),
        pytest.param(replace(CLASS, examples=()), SERVICE, id="no name to ask for"),
    ],
)
def test_nothing_else_is_ever_probed(one: SubjectFacts, found: ServiceFacts) -> None:
    assert due_probes(cluster(one, found), {}, now=0) == ()


NAMED = replace(CLASS, examples=("a.example.org", "b.example.org", "c.example.org", "*.example.org"))
SECOND_CLASS = replace(CLASS, subject=Subject("second"), examples=("shop.example.net",))


@pytest.mark.parametrize(
    ("subjects", "hostnames"),
    [
        pytest.param((CLASS,), ("app.example.org",), id="one name"),
        pytest.param((NAMED,), ("a.example.org", "b.example.org"), id="several names"),
        pytest.param((NAMED, SECOND_CLASS), ("a.example.org", "shop.example.net"), id="another subject of the Service"),
        pytest.param((NAMED, replace(NAMED, subject=Subject("x"))), ("a.example.org", "b.example.org"), id="twice"),
        pytest.param((replace(CLASS, examples=("*.example.org",)),), ("*.example.org",), id="a wildcard alone"),
        pytest.param((replace(CLASS, examples=()), SECOND_CLASS), ("shop.example.net",), id="one subject without"),
    ],
)
def test_a_probe_may_ask_for_two_names_of_the_subjects(
    subjects: tuple[SubjectFacts, ...], hostnames: tuple[str, ...]
) -> None:
    asked = {(one.place[1], one.tls, one.hostnames) for one in due_probes(cluster(subjects=subjects), {}, now=0)}
    assert asked == {(80, False, hostnames), (443, True, hostnames)}


def test_only_the_lowest_web_ports_of_a_service_are_probed_and_dialled() -> None:
    ports = tuple(Port(10000 + number, f"http-{number}") for number in reversed(range(100)))
    many = cluster(CLASS, service(ports=ports, points=PROXY), plane=UNKNOWN_PLANE)
    lowest = [10000 + number for number in range(MOST_PORTS)]
    assert sorted({one.place[1] for one in due_probes(many, {}, now=0)}) == lowest
    assert [[endpoint.port for endpoint, _ in one.ports] for one in due_balancers(many, {}, now=0)] == [lowest]


FIRST, SECOND = (Endpoint(host, 8443) for host in ("10.0.0.1", "10.0.0.2"))
PLACE = (KEY, 443, SECOND)


def tls_at(*endpoints: Endpoint, leaving: tuple[Endpoint, ...] = ()) -> Facts:
    found = service(ports=(Port(443, "https"),), endpoints={443: endpoints})
    return cluster(CLASS, replace(found, leaving={443: leaving}))


def inherited(*endpoints: Endpoint, at: float = 0.0) -> dict[Place, LastProbe]:
    return {(KEY, 443, one): LastProbe(at, inherited=True) for one in endpoints}


def asked(facts: Facts, last: dict[Place, LastProbe], *, now: float) -> list[Endpoint]:
    return [one.place[2] for one in due_probes(facts, last, now=now)]


def test_what_another_replica_may_have_probed_waits_for_its_minute_and_then_all_of_it_is_probed() -> None:
    last = inherited(FIRST, SECOND)
    assert asked(tls_at(FIRST, SECOND), last, now=INTERVAL - 1) == []
    assert asked(tls_at(FIRST, SECOND), last, now=INTERVAL) == [FIRST, SECOND]


def test_a_new_endpoint_is_probed_at_once_and_those_of_its_port_that_are_not_known_here_with_it() -> None:
    last = inherited(FIRST)
    assert asked(tls_at(FIRST, SECOND), last, now=1) == [SECOND, FIRST]
    last[PLACE] = LastProbe(1, in_turn=False)
    assert asked(tls_at(FIRST, SECOND), last, now=1.5) == [FIRST]
    last |= {(KEY, 443, FIRST): LastProbe(2, in_turn=False)}
    assert asked(tls_at(FIRST, SECOND), last, now=2.5) == []


def test_beside_a_new_endpoint_one_that_leaves_and_is_not_known_here_is_probed_too() -> None:
    last = inherited(FIRST)
    assert asked(tls_at(leaving=(FIRST,)), last, now=1) == []
    assert asked(tls_at(SECOND, leaving=(FIRST,)), last, now=1) == [SECOND, FIRST]
    assert asked(tls_at(SECOND, leaving=(FIRST,)), {}, now=1) == [SECOND]


def test_a_pod_whose_readiness_flaps_is_probed_at_most_twice_in_a_minute() -> None:
    last: dict[Place, LastProbe] = {}
    made: list[int] = []
    for now in range(600):
        facts = tls_at(FIRST, SECOND) if now // 5 % 2 == 0 else tls_at(FIRST)
        last = still_known(last, facts, now=now)
        for one in due_probes(facts, last, now=now):
            earlier = last[one.place].at if one.place in last else float("-inf")
            last[one.place] = LastProbe(now, one.in_turn, earlier=earlier)
            made += [now] if one.place == PLACE else []
    assert made[:2] == [0, 10]
    assert all(later - first >= INTERVAL for first, later in zip(made, made[2:], strict=False))


def test_a_place_that_comes_back_for_the_first_time_is_probed_at_once_as_it_may_be_another_pod() -> None:
    last = still_known({PLACE: LastProbe(100.0, earlier=40.0)}, tls_at(), now=105.0)
    assert last[PLACE].gone
    assert asked(tls_at(SECOND), last, now=106.0) == [SECOND]


@pytest.mark.parametrize(
    ("facts", "now", "stays"),
    [
        pytest.param(tls_at(SECOND), 500.0, True, id="it is there"),
        pytest.param(tls_at(leaving=(SECOND,)), 500.0, True, id="it leaves"),
        pytest.param(tls_at(), 159.0, True, id="gone, and probed within a minute"),
        pytest.param(tls_at(), 160.0, False, id="gone, and probed a minute ago"),
        pytest.param(cluster(CLASS, replace(SERVICE, endpoints=None)), 160.0, False, id="not read any more"),
    ],
)
def test_the_last_probe_of_a_place_that_is_gone_is_known_for_a_minute(facts: Facts, now: float, stays: bool) -> None:
    assert (PLACE in still_known({PLACE: LastProbe(100.0)}, facts, now=now)) is stays
