"""Which names are looked up, and which ports are dialled."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from dnsproxy.doctor.collect.dial_targets import (
    MOST_GROUPS,
    MOST_LOOKUPS,
    DialTarget,
    dial_targets,
    header_targets,
    names_to_look_up,
)
from dnsproxy.doctor.facts.model import BalancerAddress, Facts, Host, Port
from dnsproxy.doctor.facts.probes import Lookup, Outcome
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.host_groups import find_groups
from dnsproxy.doctor.judge.paths import find_paths, name_to_ask
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import (
    BALANCER,
    CONTROLLER,
    HOST,
    HOSTNAME,
    RELAY,
    answering,
    bad,
    balancer_probes,
    controller_probes,
    facts,
    installed,
    service,
)


def targets_of(seen: Facts, lookups: tuple[Lookup, ...] = ()) -> tuple[DialTarget, ...]:
    return dial_targets(seen, find_groups(seen, find_paths(seen), lookups), lookups)


def at(address: str, targets: Iterable[DialTarget]) -> list[tuple[int, str]]:
    """The port and the header of each connection to an address."""
    return [(one.endpoint.port, one.header.value) for one in targets if one.endpoint.host == address]


THREE = [(80, "plain"), (80, "v1"), (80, "v2"), (443, "plain"), (443, "v1"), (443, "v2")]
BARE = [(80, "plain"), (443, "plain")]


def test_a_controller_is_dialled_three_times_and_its_load_balancer_bare() -> None:
    targets = targets_of(facts())
    assert at(CONTROLLER, targets) == THREE
    assert at(BALANCER, targets) == BARE
    assert len(targets) == 8


def test_the_relay_is_dialled_if_it_exists() -> None:
    assert at(RELAY, targets_of(installed())) == BARE


def test_every_answer_of_the_clusters_dns_is_dialled() -> None:
    answers = ("192.0.2.7", "192.0.2.8", "192.0.2.9", "2001:db8::9")
    targets = targets_of(facts(), (answering(*answers),))
    for address in (*answers, BALANCER):
        assert at(address, targets) == BARE


def test_an_answer_is_dialled_on_the_ports_of_the_service_that_has_it() -> None:
    other = service(key="x/y", ports=(Port(8080, "web"),), points=(BalancerAddress(ip="192.0.2.7"),), cluster_ips=())
    seen = facts(services=(service(), other))
    assert at("192.0.2.7", targets_of(seen, (answering("192.0.2.7"),))) == [(8080, "plain")]


def test_hosts_without_a_service_are_dialled_where_dns_leads() -> None:
    seen = facts(services=())
    assert at("192.0.2.7", targets_of(seen, (answering("192.0.2.7"),))) == BARE
    assert at(BALANCER, targets_of(seen)) == BARE


def test_no_port_is_invented_for_a_service_whose_ports_are_not_known_to_be_of_the_web() -> None:
    one = service(ports=(Port(3000, "port-3000"),))
    assert at(BALANCER, targets_of(facts(one), (answering(BALANCER),))) == []
    diagnosis = judge(facts(one, probes=()))
    assert (bad(diagnosis), diagnosis.status) == (set(), ExitStatus.UNKNOWN)


def test_hosts_with_other_answers_are_dialled_under_their_own_name() -> None:
    hosts = tuple(Host(name, "Ingress a/b", "nginx", (BALANCER,)) for name in ("a.example.org", "b.example.org"))
    lookups = (answering(BALANCER, hostname="a.example.org"), answering("192.0.2.7", hostname="b.example.org"))
    targets = targets_of(facts(hosts=hosts), lookups)
    assert {one.hostname for one in targets if one.endpoint.host == "192.0.2.7"} == {"b.example.org"}


def test_a_hostname_in_the_status_is_dialled_by_its_public_addresses() -> None:
    lookups = (
        answering("10.1.1.1", hostname="lb.example.org"),
        answering(BALANCER, hostname="lb.example.org", server="public"),
    )
    targets = targets_of(facts(service(points=HOSTNAME)), lookups)
    assert at(BALANCER, targets) == BARE
    assert at("10.1.1.1", targets) == []


@pytest.mark.parametrize("address", ["example.org", "10.0.0.1/8", "", "::g"])
def test_an_invalid_address_is_not_dialled(address: str) -> None:
    lookups = (answering(address, hostname="lb.example.org", server="public"), answering(address))
    targets = targets_of(facts(service(points=HOSTNAME)), lookups)
    assert {one.endpoint.host for one in targets} == {CONTROLLER}


@pytest.mark.parametrize(
    ("outcome", "again"),
    [
        (Outcome.CLOSED, True),
        (Outcome.RESET, True),
        (Outcome.SILENT, True),
        (Outcome.BAD_REQUEST, True),
        (Outcome.GARBAGE, True),
        (Outcome.ANSWERED, False),
        (Outcome.ALERT, False),
        (Outcome.REFUSED, False),
        (Outcome.UNREACHABLE, False),
        (Outcome.NO_ROUTE, False),
    ],
)
def test_the_header_is_tried_where_a_connection_was_opened_and_not_answered(outcome: Outcome, again: bool) -> None:
    found = header_targets(balancer_probes(outcome))
    assert at(BALANCER, found) == ([(80, "v1"), (80, "v2")] if again else [])
    assert header_targets(controller_probes((outcome,) * 3)) == ()


def wide(count: int) -> Facts:
    hosts = tuple(Host(f"h{number:04}.example.org", "Ingress a/b", "nginx", (BALANCER,)) for number in range(count))
    return facts(hosts=hosts)


def test_the_look_is_bounded_for_any_number_of_hosts() -> None:
    seen = wide(5000)
    assert len(names_to_look_up(seen, find_paths(seen))) == MOST_LOOKUPS
    assert len(targets_of(seen)) == 8
    lookups = tuple(answering(f"192.0.2.{number}", hostname=seen.hosts[number].hostname) for number in range(200))
    assert len(targets_of(seen, lookups)) == MOST_GROUPS * 10


def test_the_requested_host_comes_first_and_is_dialled() -> None:
    seen = facts(hostname=HOST)
    assert names_to_look_up(seen, find_paths(seen))[0] == HOST
    assert {target.hostname for target in targets_of(seen)} == {HOST}


def test_a_wildcard_is_queried_by_a_name_that_it_covers() -> None:
    assert name_to_ask("*.example.org") == "switchback-doctor.example.org"
    assert name_to_ask("app.example.org") == "app.example.org"
