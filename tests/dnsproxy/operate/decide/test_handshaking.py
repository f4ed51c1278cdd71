"""Which handshakes may be made now, and what they show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from math import inf
from types import MappingProxyType

import pytest

from dnsproxy.doctor.facts.model import BalancerAddress, Port
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.operate.decide.decisions import FAILURES, decide
from dnsproxy.operate.decide.facts import Facts, Handshake, Subject, SubjectFacts
from dnsproxy.operate.decide.handshaking import (
    RETRIES,
    SETTLE,
    SUCCEEDING,
    Answered,
    HeadersSince,
    LastHandshake,
    RelayPort,
    after_handshake,
    due_handshakes,
    is_first,
    note_handshake,
    note_headers,
    still_count,
)
from dnsproxy.operate.decide.plan import Patch, plan
from dnsproxy.operate.decide.probing import INTERVAL
from tests.dnsproxy.operate.decide.cluster import (
    CLASS,
    GATEWAY,
    KEY,
    NGINX,
    SERVICE,
    SUCCEEDED,
    by_key,
    cluster,
    probed,
    probes_of,
    route_of,
    service,
)

WEB = SubjectFacts(GATEWAY, hostnames=1, examples=("web.example.org",), status=("192.0.2.10",))
LISTENING = (route_of(steered=False),)
V2 = "v1,80=v2,443=v2"
YES, NO, UNTAKEN = Answered(succeeded=True, taken=True), Answered(False, True), Answered(False, False)


def due(
    facts: Facts,
    last: dict[Subject, LastHandshake],
    now: float,
    relay_since: float = -inf,
    headers: Mapping[Subject, HeadersSince] = MappingProxyType({}),
) -> list[Subject]:
    return [
        one.subject
        for one in due_handshakes(facts, decide(facts), last, now=now, relay_since=relay_since, headers=headers)
    ]


def played(facts: Facts, answer: Answered, seconds: int) -> tuple[list[tuple[int, Subject]], Facts]:
    last: dict[Subject, LastHandshake] = {}
    made = []
    for now in range(seconds):
        for one in due_handshakes(facts, decide(facts), last, now=now):
            last = note_handshake(last, one, answer, now=now)
            before = facts.handshakes.get(one.subject, Handshake(one.relay_to, headers=one.headers))
            after = after_handshake(before, answer, untaken=last[one.subject].untaken)
            facts = replace(facts, handshakes={**facts.handshakes, one.subject: after})
            made.append((now, one.subject))
    return made, facts


def test_the_first_is_made_as_soon_as_the_relay_service_is_there() -> None:
    assert due(cluster(), {}, 0) == []
    assert due(cluster(routes=LISTENING), {}, 0) == [NGINX]


def test_then_there_is_one_every_ten_seconds() -> None:
    made, facts = played(cluster(routes=LISTENING), YES, 100)
    times = [now for now, _ in made]
    assert times[0] == 0
    assert {after - before for before, after in pairwise(times)} == {SUCCEEDING}
    assert facts.handshakes[NGINX] == SUCCEEDED


@pytest.mark.parametrize(
    ("controllers", "most"),
    [
        pytest.param(10, SUCCEEDING, id="10"),
        pytest.param(25, 25, id="25"),
        pytest.param(90, INTERVAL + 1, id="90: none waits for more than a minute"),
    ],
)
def test_many_controllers_share_one_handshake_a_second(controllers: int, most: float) -> None:
    subjects = [Subject(f"class-{number:02}") for number in range(controllers)]
    backends = [
        service(f"web/{one.name}", points=(BalancerAddress(f"192.0.2.{number}"),))
        for number, one in enumerate(subjects)
    ]
    facts = cluster(
        subjects=tuple(
            replace(CLASS, subject=one, status=(f"192.0.2.{number}",)) for number, one in enumerate(subjects)
        ),
        services=by_key(*backends),
        probes=probes_of(*backends),
        routes=tuple(route_of(one, to=f"web/{one.name}", steered=False) for one in subjects),
    )
    made, _ = played(facts, YES, 200)
    later = Counter(now for now, _ in made if now > 0)
    assert set(later.values()) == {1} or controllers > INTERVAL
    for one in subjects:
        times = [now for now, subject in made if subject == one]
        assert max(after - before for before, after in pairwise(times)) <= most + SUCCEEDING


@pytest.mark.parametrize(
    ("by_port", "ports"),
    [
        pytest.param({}, [80, 443], id="both demand it"),
        pytest.param({"p443": HeaderMode.SILENT}, [80], id="every application behind TLS hangs"),
        pytest.param({"p443": HeaderMode.UNKNOWN}, [80], id="every application behind TLS is down"),
        pytest.param({"p443": HeaderMode.DEAD}, [80], id="the controller has no listener for TLS any more"),
        pytest.param({"p80": HeaderMode.DEAD, "p443": HeaderMode.SILENT}, [], id="neither is answered"),
    ],
)
def test_a_port_that_no_probe_is_answered_at_lets_no_class_go(by_port: dict[str, HeaderMode], ports: list[int]) -> None:
    facts = cluster(routes=(route_of(),), probes=probes_of(**by_port))
    made = due_handshakes(facts, decide(facts), {}, now=0)
    assert [port.port for one in made for port in one.ports] == ports


def test_a_port_that_no_probe_reaches_is_tried_through_the_relay_all_the_same() -> None:
    """Behind a network policy, or the class would keep a relay for ever that reaches nothing either."""
    probes = {place: replace(one, reached=False) for place, one in probes_of(mode=HeaderMode.UNKNOWN).items()}
    facts = cluster(routes=(route_of(),), probes=probes)
    (made,) = due_handshakes(facts, decide(facts), {}, now=0)
    assert [port.port for port in made.ports] == [80, 443]


def test_subjects_of_one_controller_take_turns() -> None:
    routes = (route_of(), route_of(GATEWAY))
    made, _ = played(cluster(subjects=(CLASS, WEB), routes=routes), YES, 400)
    assert [now for now, _ in made[:2]] == [0, 0]
    later = made[2:]
    assert {after[0] - before[0] for before, after in pairwise(later)} == {SUCCEEDING}
    assert [subject for _, subject in later[:4]] == [NGINX, GATEWAY, NGINX, GATEWAY]


def test_a_controller_that_fails_is_asked_once_a_minute() -> None:
    """Otherwise a restart of half a minute would cost it its class."""
    made, facts = played(cluster(routes=(route_of(),)), NO, 200)
    assert [now for now, _ in made] == [0, 60, 120, 180]
    assert facts.handshakes[NGINX].failures == 4


def test_a_class_that_fails_waits_for_its_minute_and_the_others_of_its_controller_do_not() -> None:
    facts = cluster(
        subjects=(CLASS, WEB),
        routes=(route_of(), route_of(GATEWAY)),
        handshakes={NGINX: SUCCEEDED, GATEWAY: replace(SUCCEEDED, failures=1)},
    )
    last = {NGINX: LastHandshake(KEY, 90.0, headers="v1"), GATEWAY: LastHandshake(KEY, 100.0, headers="v1")}
    assert due(facts, last, 100.0 + SUCCEEDING - 1) == []
    assert due(facts, last, 100.0 + SUCCEEDING) == [NGINX]
    last[NGINX] = LastHandshake(KEY, 150.0, headers="v1")
    assert due(facts, last, 100.0 + INTERVAL) == [GATEWAY]


def test_a_controller_that_is_away_for_two_minutes_keeps_all_its_classes() -> None:
    subjects = [Subject(f"class-{number}") for number in range(6)]
    facts = cluster(
        subjects=tuple(replace(CLASS, subject=one) for one in subjects),
        routes=tuple(route_of(one) for one in subjects),
        handshakes=dict.fromkeys(subjects, SUCCEEDED),
    )
    made, after = played(facts, NO, 150)
    assert max(one.failures for one in after.handshakes.values()) < FAILURES
    # At the start each class has its first handshake; then the controller waits.
    assert [now for now, _ in made] == [0] * 6 + [60, 120]


def test_a_handshake_that_takes_long_stands_in_no_other_controllers_way() -> None:
    own = service("web/own", points=(BalancerAddress("192.0.2.30"),))
    other = replace(CLASS, subject=Subject("other"), status=("192.0.2.30",))
    facts = cluster(
        subjects=(CLASS, other),
        services=by_key(SERVICE, own),
        probes=probes_of(SERVICE, own),
        routes=(route_of(), route_of(other.subject, to="web/own")),
        handshakes={NGINX: SUCCEEDED, other.subject: replace(SUCCEEDED, relay_to="web/own")},
    )
    last = {
        NGINX: LastHandshake(KEY, 0.0, headers="v1"),
        other.subject: LastHandshake("web/own", 5.0, headers="v1"),
    }
    assert due(facts, last, 15.0) == [NGINX]
    made = due_handshakes(facts, decide(facts), last, now=15.0, under_way={KEY})
    assert [one.subject for one in made] == [other.subject]


def test_a_relay_that_takes_no_connection_is_tried_again_within_seconds_and_that_is_no_failure_for_a_minute() -> None:
    made, facts = played(cluster(routes=LISTENING), UNTAKEN, 60)
    assert [now for now, _ in made] == [0, 1, 3, 7, 15, 30]
    assert facts.handshakes[NGINX].failures == 0
    _, facts = played(cluster(routes=LISTENING), UNTAKEN, 300)
    assert facts.handshakes[NGINX].failures == 4
    assert sum(RETRIES) == 60


def test_new_pods_of_the_relay_are_tried_at_once() -> None:
    last = {NGINX: LastHandshake(KEY, 100.0, untaken=6, headers="v1")}
    assert due(cluster(routes=LISTENING), last, 105.0) == []
    assert due(cluster(routes=LISTENING), last, 105.0, relay_since=104.0) == [NGINX]


def test_there_is_none_without_a_ready_relay() -> None:
    assert due(cluster(routes=LISTENING, relay_endpoints=()), {}, 0) == []


def test_there_is_none_where_nothing_is_relayed() -> None:
    plain = probes_of(mode=HeaderMode.REJECTS)
    assert due(cluster(probes=plain, routes=(route_of(),)), {}, 0) == []
    assert due(cluster(probes={}, routes=LISTENING), {}, 0) == []
    assert due(cluster(replace(CLASS, examples=()), routes=LISTENING), {}, 0) == []
    assert due(cluster(routes=(route_of(to="other/backend"),)), {}, 0) == []


def test_a_kept_decision_is_still_looked_after() -> None:
    facts = cluster(probes={}, routes=(route_of(),))
    assert due(facts, {}, 0) == [NGINX]


def test_only_ports_that_get_a_header_are_tried() -> None:
    ssh = service(ports=(Port(22, "ssh"), Port(80, "http"), Port(443, "https")))
    facts = cluster(CLASS, ssh, probes=probes_of(ssh, p80=HeaderMode.REJECTS))
    created = plan(facts, decide(facts), now=datetime.now(UTC)).changes
    facts = replace(facts, routes=tuple(change.route for change in created))
    (made,) = due_handshakes(facts, decide(facts), {}, now=0)
    assert [(one.port, one.tls) for one in made.ports] == [(443, True)]
    assert made.hostnames == ("app.example.org",)


def test_an_earlier_backend_does_not_count() -> None:
    last = {NGINX: LastHandshake("other/backend", 0.0, untaken=3)}
    facts = cluster(routes=LISTENING, handshakes={NGINX: Handshake("other/backend", succeeded=True)})
    (made,) = due_handshakes(facts, decide(facts), last, now=0.5)
    assert is_first(made, facts)
    assert note_handshake(last, made, UNTAKEN, now=0.5)[NGINX] == LastHandshake(KEY, 0.5, untaken=1, headers="v1")


def test_another_header_is_tried_once_the_relay_has_it() -> None:
    """A handshake with the header of before shows nothing, and no minute is waited for."""
    v2 = {place: probed(HeaderMode.REQUIRES, versions=("v2",)) for place in probes_of()}
    facts = cluster(routes=LISTENING, handshakes={NGINX: SUCCEEDED})
    last = {NGINX: LastHandshake(KEY, 100.0, headers="v1")}
    known = note_headers({}, facts, now=100.0)
    changed = replace(facts, probes=v2)
    # The Service is not written yet.
    assert not decide(changed)[0].steer
    assert due(changed, last, 110.0, headers=known) == []
    written = replace(changed, routes=(route_of(steered=False, headers=V2),))
    known = note_headers(known, written, now=111.0)
    assert due(written, last, 111.5, headers=known) == []
    assert due(written, last, 111.0 + SETTLE, headers=note_headers(known, written, now=111.9)) == [NGINX]
    assert not decide(written)[0].steer


def test_one_that_is_steered_stays_so_while_another_header_is_tried() -> None:
    v2 = {place: probed(HeaderMode.REQUIRES, versions=("v2",)) for place in probes_of()}
    facts = cluster(probes=v2, routes=(route_of(headers=V2),), handshakes={NGINX: SUCCEEDED})
    (decision,) = decide(facts)
    assert decision.steer
    assert due(facts, {NGINX: LastHandshake(KEY, 100.0, headers="v1")}, 110.0) == [NGINX]


def test_a_subject_that_wants_the_relay_again_is_steered_after_another_handshake() -> None:
    plain = cluster(probes=probes_of(mode=HeaderMode.REJECTS), routes=LISTENING, handshakes={NGINX: SUCCEEDED})
    (patch,) = plan(plain, decide(plain), now=datetime.now(UTC)).changes
    assert isinstance(patch, Patch)
    assert patch.route.headers == "v1,80=none,443=none"
    kept = still_count(plain.handshakes, replace(plain, routes=(patch.route,)))
    again = replace(plain, probes=probes_of(), routes=LISTENING, handshakes=kept)
    assert not decide(again)[0].steer
    assert still_count(plain.handshakes, again) == plain.handshakes
    assert still_count(plain.handshakes, replace(again, routes=())) == {}
    assert still_count({NGINX: LastHandshake(KEY, 1.0, uid="gone", headers="v1")}, again) == {}


def test_after_a_success_or_a_restart_one_pod_of_the_relay_is_enough() -> None:
    facts = cluster(routes=LISTENING)
    (made,) = due_handshakes(facts, decide(facts), {}, now=0)
    assert is_first(made, facts)
    assert not is_first(made, replace(facts, handshakes={NGINX: SUCCEEDED}))
    assert not is_first(made, replace(facts, routes=(route_of(),)))
    assert made.ports[0] == RelayPort(80, 20080, tls=False)
