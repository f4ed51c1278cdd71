"""What could not be read or asked is named, and never an absence."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dnsproxy.doctor.facts.model import ReadFailure
from dnsproxy.doctor.facts.probes import Outcome
from dnsproxy.doctor.judge.diagnose import judge
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import (
    HOST,
    PROXY_MODE,
    REQUIRES,
    balancer_probes,
    facts,
    ids,
    service,
)

FORBIDDEN = "forbidden: 403: not allowed"


@pytest.mark.parametrize(
    ("what", "status"),
    [
        ("list services", ExitStatus.UNKNOWN),
        ("list ingresses", ExitStatus.UNKNOWN),
        ("list ingressclasses", ExitStatus.DONE),
        ("list gateways", ExitStatus.UNKNOWN),
        ("list gatewayclasses", ExitStatus.DONE),
        ("list httproutes", ExitStatus.UNKNOWN),
        ("list grpcroutes", ExitStatus.UNKNOWN),
        ("list tlsroutes", ExitStatus.UNKNOWN),
        ("list listenersets", ExitStatus.UNKNOWN),
        ("list namespaces", ExitStatus.UNKNOWN),
        ("dial the ports", ExitStatus.UNKNOWN),
        ("look up the names", ExitStatus.UNKNOWN),
        ("list nodes", ExitStatus.DONE),
    ],
)
def test_what_could_not_be_read_is_named_and_never_an_absence(what: str, status: int) -> None:
    refusals = (ReadFailure(what, FORBIDDEN),)
    served = facts(service(points=PROXY_MODE), probes=balancer_probes(Outcome.ANSWERED), refusals=refusals)
    diagnosis = judge(served)
    assert diagnosis.status == status
    assert what in {one.what for one in diagnosis.unseen}
    assert "not-needed" not in ids(diagnosis)


@pytest.mark.parametrize("what", ["list services", "list ingresses"])
@pytest.mark.parametrize("hostname", [HOST, ""], ids=["one host", "all hosts"])
def test_an_unreadable_list_gives_no_finding_of_absence(what: str, hostname: str) -> None:
    hosts = facts().hosts if what == "list services" else ()
    seen = facts(hosts=hosts, hostname=hostname, refusals=(ReadFailure(what, FORBIDDEN),), probes=(), lookups=())
    seen = replace(seen, services=() if what == "list services" else seen.services)
    diagnosis = judge(seen)
    assert not ids(diagnosis) & {"host-unknown", "no-hosts", "no-road"}
    assert diagnosis.status == ExitStatus.UNKNOWN


def test_without_the_classes_a_host_that_no_status_names_is_not_known() -> None:
    lone = tuple(replace(one, status=()) for one in facts().hosts)
    seen = facts(hosts=lone, probes=balancer_probes(Outcome.ANSWERED))
    assert "no-road" in ids(judge(seen))
    diagnosis = judge(replace(seen, refusals=(ReadFailure("list ingressclasses", FORBIDDEN),)))
    assert "no-road" not in ids(diagnosis)
    assert diagnosis.status == ExitStatus.UNKNOWN


def test_what_a_pod_gets_is_told_of_a_host_that_could_not_be_read() -> None:
    refusals = (ReadFailure("list ingresses", FORBIDDEN),)
    failing = facts(hosts=(), hostname=HOST, refusals=refusals, probes=balancer_probes(*REQUIRES))
    assert judge(failing).status == ExitStatus.NO
    assert {"header-lost"} == ids(judge(failing))
    served = replace(failing, probes=balancer_probes(Outcome.ANSWERED))
    assert "reached" in ids(judge(served))
    assert judge(served).status == ExitStatus.UNKNOWN
