from __future__ import annotations

import pytest

from tests.bench.dns.configs import format_hosts
from tests.bench.dns.prober import read_queries
from tests.bench.dns.workloads import (
    BEHIND_FORWARD,
    WILDCARD_SUFFIX,
    WORKLOADS,
    Workload,
    format_queries,
    make_questions,
    make_zone,
)
from tests.kit.messages import scanned
from tests.kit.stepping import parse_hosts

ALL = pytest.mark.parametrize("workload", [*WORKLOADS, BEHIND_FORWARD], ids=lambda workload: workload.name)


@ALL
def test_every_question_has_the_address_that_the_zone_gives_its_name(workload: Workload) -> None:
    zone = make_zone(workload.zone)
    known = dict(zone.hosts)
    questions = make_questions(workload, zone)
    assert len(questions) == len(zone.hosts)
    for question in questions:
        if zone.wildcard:
            assert question.name.endswith(f".{WILDCARD_SUFFIX}")
            assert question.address == zone.wildcard[1]
        else:
            assert known[question.name.lower()] == question.address


@ALL
def test_no_name_is_asked_twice_and_two_runs_ask_the_same(workload: Workload) -> None:
    zone = make_zone(workload.zone)
    questions = make_questions(workload, zone)
    assert len({question.name.lower() for question in questions}) == len(questions)
    assert questions == make_questions(workload, zone)


@ALL
def test_queries_are_those_of_the_workload(workload: Workload) -> None:
    questions = make_questions(workload, make_zone(workload.zone))[:50]
    queries = list(read_queries(format_queries(questions, edns=workload.edns)))
    assert queries == [question.message(edns=workload.edns) for question in questions]
    found = [scanned(query) for query in queries]
    assert {query.edns and (query.edns.udp_size, query.edns.do) for query in found} == {
        (1232, True) if workload.edns else None
    }
    assert any(query.name != query.message[12 : 12 + len(query.name)] for query in found) == workload.mixed_case


def test_a_zone_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(ValueError, match="no zone 7k"):
        make_zone("7k")


def test_our_hosts_file_says_what_the_zone_says() -> None:
    zone = make_zone("wildcard")
    claims, rejections, _ = parse_hosts(format_hosts(zone, wildcard=True))
    assert not rejections
    assert {claim.hostname: claim.terms.addresses for claim in claims.values()} == {
        **{name: (address,) for name, address in zone.hosts},
        f"*.{WILDCARD_SUFFIX}": ("192.0.2.255",),
    }
