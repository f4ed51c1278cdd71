"""Which names are looked up, and which ports are dialled."""

from __future__ import annotations

import pytest

from dnsproxy.doctor.collect.dial_targets import MOST_LOOKUPS, DialTarget, dial_targets, is_tls, names_to_look_up
from dnsproxy.doctor.facts.model import Facts, Host, Port
from dnsproxy.doctor.facts.probes import Header, Lookup, Role
from dnsproxy.doctor.judge.paths import find_paths, name_to_ask
from tests.dnsproxy.doctor.making import BALANCER, CONTROLLER, HOST, HOSTNAME, RELAY, facts, installed, service


def targets_of(seen: Facts, lookups: tuple[Lookup, ...] = ()) -> tuple[DialTarget, ...]:
    return dial_targets(seen, find_paths(seen), lookups)


@pytest.mark.parametrize(
    ("port", "tls"),
    [
        (Port(443), True),
        (Port(8443), True),
        (Port(9000, "https"), True),
        (Port(9000, "websecure"), True),
        (Port(9000, "x", "kubernetes.io/wss-https"), True),
        (Port(80), False),
        (Port(8080, "http-alt"), False),
        (Port(22, "ssh"), None),
        (Port(5432, "postgres"), None),
        (Port(9100), None),
    ],
)
def test_only_web_ports_are_probed(port: Port, tls: bool | None) -> None:
    assert is_tls(port) is tls


def test_a_controller_is_dialled_three_times_and_its_load_balancer_once() -> None:
    targets = targets_of(facts())
    controller = [target for target in targets if target.role is Role.CONTROLLER]
    assert [str(target.endpoint) for target in controller] == [f"{CONTROLLER}:80"] * 3 + [f"{CONTROLLER}:443"] * 3
    assert [target.header for target in controller[:3]] == [Header.PLAIN, Header.V1, Header.V2]
    balancer = [target for target in targets if target.role is Role.BALANCER]
    assert [str(target.endpoint) for target in balancer] == [f"{BALANCER}:80", f"{BALANCER}:443"]
    assert {target.header for target in balancer} == {Header.PLAIN}
    assert not [target for target in targets if target.role is Role.RELAY]


def test_the_relay_is_dialled_if_it_exists() -> None:
    relay = [target for target in targets_of(installed()) if target.role is Role.RELAY]
    assert [str(target.endpoint) for target in relay] == [f"{RELAY}:80", f"{RELAY}:443"]


def test_a_hostname_in_the_status_is_dialled_by_its_public_addresses() -> None:
    lookups = (
        Lookup("lb.example.org", "cluster", "x", ("10.1.1.1",)),
        Lookup("lb.example.org", "public", "x", (BALANCER,)),
    )
    targets = targets_of(facts(service(points=HOSTNAME)), lookups)
    assert {target.endpoint.host for target in targets if target.role is Role.BALANCER} == {BALANCER}


@pytest.mark.parametrize("address", ["example.org", "10.0.0.1/8", "", "::g"])
def test_an_invalid_address_is_not_dialled(address: str) -> None:
    lookups = (Lookup("lb.example.org", "public", "x", (address,)),)
    targets = targets_of(facts(service(points=HOSTNAME)), lookups)
    assert not [target for target in targets if target.role is Role.BALANCER]


def wide(count: int) -> Facts:
    hosts = tuple(Host(f"h{number:04}.example.org", "Ingress a/b", "nginx", (BALANCER,)) for number in range(count))
    return facts(hosts=hosts)


def test_the_look_is_bounded_for_any_number_of_hosts() -> None:
    seen = wide(5000)
    assert len(names_to_look_up(seen, find_paths(seen))) == MOST_LOOKUPS
    assert len(targets_of(seen)) == 8


def test_the_requested_host_comes_first_and_is_dialled() -> None:
    seen = facts(hostname=HOST)
    assert names_to_look_up(seen, find_paths(seen))[0] == HOST
    assert {target.hostname for target in targets_of(seen)} == {HOST}


def test_a_wildcard_is_queried_by_a_name_that_it_covers() -> None:
    assert name_to_ask("*.example.org") == "switchback-doctor.example.org"
    assert name_to_ask("app.example.org") == "app.example.org"
