"""Where pods go with and without Switchback, and who owns the addresses."""

from __future__ import annotations

import pytest

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.facts.probes import Lookup, Outcome
from dnsproxy.doctor.judge.controller import make_controller
from dnsproxy.doctor.judge.host_groups import find_groups
from dnsproxy.doctor.judge.paths import find_paths
from dnsproxy.doctor.judge.reach import Reach
from dnsproxy.doctor.judge.ways import Ways, make_all_ways, resolve
from tests.dnsproxy.doctor.making import (
    BALANCER,
    CONTROLLER,
    HOSTNAME,
    KEY,
    RELAY,
    STRANGE,
    answering,
    balancer_probes,
    facts,
    installed,
    relay_probe,
    service,
)


def ways_of(seen: Facts) -> Ways:
    paths = find_paths(seen)
    controllers = [make_controller(path, seen) for path in paths.paths]
    (ways,) = make_all_ways(find_groups(seen, paths), controllers, seen)
    return ways


def test_without_an_installation_the_answers_are_the_way() -> None:
    ways = ways_of(facts())
    assert [one.address for one in ways.answers] == [BALANCER]
    assert ways.without == ways.answers
    assert not ways.is_past


@pytest.mark.parametrize("answers", [(RELAY,), (CONTROLLER,), (RELAY, CONTROLLER)])
def test_the_relay_and_the_controllers_service_are_past_the_load_balancer(answers: tuple[str, ...]) -> None:
    ways = ways_of(installed(lookups=(answering(*answers),)))
    assert ways.is_past
    assert [one.address for one in ways.without] == [BALANCER]


def test_one_answer_of_a_stranger_is_not_past_it() -> None:
    ways = ways_of(installed(lookups=(answering(RELAY, STRANGE),)))
    assert not ways.is_past
    assert [one.address for one in ways.without] == [STRANGE]


def test_public_dns_and_the_status_say_where_pods_would_go() -> None:
    lookups = (answering(RELAY), answering(STRANGE, server="public"))
    assert {one.address for one in ways_of(installed(lookups=lookups)).others} == {BALANCER, STRANGE}


def test_the_owner_of_an_address_has_it_in_its_status_or_by_its_hostname() -> None:
    lookups = (answering(STRANGE), answering(STRANGE, hostname="lb.example.org"))
    ways = ways_of(facts(service(points=HOSTNAME), lookups=lookups))
    assert [one.key for one in ways.owners(STRANGE)] == [KEY]
    assert ways.owners(BALANCER) == ()
    assert [one.key for one in ways_of(facts()).owners(BALANCER)] == [KEY]


def test_a_hostname_of_a_status_is_resolved_by_public_dns_first() -> None:
    cluster, public = answering("10.0.0.1", hostname="LB.example.org."), Lookup("lb.example.org", "public", "x", ("b",))
    assert resolve((cluster, public)) == {"lb.example.org": ("b",)}
    assert resolve((cluster,)) == {"lb.example.org": ("10.0.0.1",)}
    assert resolve((Lookup("a", "cluster", "x", fault="SERVFAIL"),)) == {}


def test_probes_from_a_blocked_machine_show_nothing() -> None:
    assert ways_of(facts(probes=balancer_probes(Outcome.UNREACHABLE))).reach is Reach.UNKNOWN
    ways = ways_of(installed(probes=(relay_probe(Outcome.ANSWERED), *balancer_probes(Outcome.UNREACHABLE))))
    assert (ways.reach, ways.others[0].reach) == (Reach.SERVED, Reach.CLOSED)
