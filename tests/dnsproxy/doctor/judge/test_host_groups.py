"""Which hosts share one judgement."""

from __future__ import annotations

import pytest

from dnsproxy.doctor.facts.model import Facts, Host
from dnsproxy.doctor.facts.probes import Lookup
from dnsproxy.doctor.judge.host_groups import HostGroup, find_groups
from dnsproxy.doctor.judge.paths import find_paths
from tests.dnsproxy.doctor.making import BALANCER, HOST, KEY, answering, facts


def host(name: str, *status: str, tls: bool = False) -> Host:
    return Host(name, f"Ingress web/{name}", "nginx", status or (BALANCER,), tls)


def groups_of(seen: Facts) -> tuple[HostGroup, ...]:
    return find_groups(seen, find_paths(seen))


def group_of(hostname: str, groups: tuple[HostGroup, ...]) -> HostGroup:
    (one,) = (one for one in groups if hostname in one.hostnames)
    return one


def seen_with(hosts: list[Host], *lookups: Lookup, hostname: str = "") -> Facts:
    return facts(hosts=tuple(hosts), lookups=lookups, hostname=hostname)


def test_hosts_with_the_same_answers_are_one_group_and_others_are_not() -> None:
    names = ["a.example.org", "b.example.org", "c.example.org"]
    lookups = [answering(BALANCER, hostname=name) for name in names[:2]] + [answering("192.0.2.9", hostname=names[2])]
    groups = groups_of(seen_with([host(name) for name in names], *lookups))
    assert [group.hostnames for group in groups] == [tuple(names[:2]), (names[2],)]
    assert groups[0].services == (KEY,)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (answering(BALANCER), Lookup(HOST, "cluster", "x", fault="SERVFAIL")),
        (answering(BALANCER), answering()),
        (answering(BALANCER, server="public"), answering("192.0.2.9", server="public")),
    ],
    ids=["a fault", "no address", "public DNS"],
)
def test_a_difference_of_the_answers_is_a_group_of_its_own(one: Lookup, other: Lookup) -> None:
    lookups = [Lookup("a.example.org", one.server, "x", one.addresses), Lookup("b.example.org", other.server, "x",
               other.addresses, fault=other.fault)]  # fmt: skip
    assert len(groups_of(seen_with([host("a.example.org"), host("b.example.org")], *lookups))) == 2


def test_hosts_with_and_without_tls_are_apart() -> None:
    hosts = [host("a.example.org", tls=True), host("b.example.org")]
    lookups = [answering(BALANCER, hostname=one.hostname) for one in hosts]
    groups = groups_of(seen_with(hosts, *lookups))
    assert {group.sample: group.tls for group in groups} == {"a.example.org": True, "b.example.org": False}


def test_two_objects_of_one_hostname_are_one_group_with_both_services() -> None:
    hosts = [host("a.example.org"), Host("a.example.org", "Ingress web/other", "other", ("192.0.2.99",))]
    (group,) = groups_of(seen_with(hosts, answering(BALANCER, hostname="a.example.org")))
    assert len(group.hosts) == 2
    assert group.services == (KEY,)


def test_hosts_that_were_not_looked_up_join_the_largest_group_and_are_counted() -> None:
    hosts = [host(f"h{number}.example.org") for number in range(10)]
    lookups = [answering(BALANCER, hostname=one.hostname) for one in hosts[:5]]
    lookups.append(answering("192.0.2.9", hostname=hosts[5].hostname))
    groups = groups_of(seen_with(hosts, *lookups))
    assert [len(group.hosts) for group in groups] == [9, 1]
    assert [group.late for group in groups] == [4, 0]
    assert sum(len(group.hosts) for group in groups) == len(hosts)


def test_without_any_look_up_a_group_was_not_asked() -> None:
    (group,) = groups_of(seen_with([host("a.example.org"), host("b.example.org")]))
    assert (group.asked, group.answers, group.late) == (False, (), 0)


def test_the_requested_hostname_is_the_only_group_even_under_a_wildcard() -> None:
    seen = seen_with([host("*.example.org")], answering(BALANCER), hostname=HOST)
    (group,) = groups_of(seen)
    assert (group.sample, group.answers) == (HOST, (BALANCER,))
    assert group.hostnames == ("*.example.org",)


def test_a_hostname_that_no_object_serves_has_no_hosts() -> None:
    (group,) = groups_of(seen_with([], answering(BALANCER), hostname=HOST))
    assert group.hosts == ()


def test_a_wildcard_is_dialled_by_a_name_under_it_and_says_nothing_of_its_neighbours() -> None:
    lookups = [answering(hostname="*.example.org"), answering(hostname="a.example.org")]
    groups = groups_of(seen_with([host("*.example.org"), host("a.example.org")], *lookups))
    assert {group.sample: group.is_wild for group in groups} == {
        "switchback-doctor.example.org": True,
        "a.example.org": False,
    }
