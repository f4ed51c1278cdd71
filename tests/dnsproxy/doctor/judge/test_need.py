"""Whether pods need Switchback: only an answered connection without it shows that they do not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dnsproxy.doctor.facts.model import Admin, BalancerAddress, Host
from dnsproxy.doctor.facts.probes import Outcome
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import Severity
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import (
    ACCEPTS,
    BALANCER,
    HOST,
    HOSTNAME,
    OLD_IP,
    PROXY_MODE,
    RELAY,
    REQUIRES,
    answering,
    bad,
    balancer_probes,
    controller_probes,
    facts,
    ids,
    installed,
    lines,
    named,
    relay_probe,
    service,
)


@pytest.mark.parametrize(
    ("points", "told"), [(PROXY_MODE, True), (HOSTNAME, True), (OLD_IP, False)], ids=["ipMode", "hostname", "needed"]
)
def test_an_installation_that_is_no_longer_needed_is_a_finding(points: tuple[BalancerAddress, ...], told: bool) -> None:
    reached = balancer_probes(*(ACCEPTS if told else REQUIRES))
    own = (*controller_probes(REQUIRES), relay_probe(Outcome.ANSWERED), *reached)
    public = (answering(BALANCER, server="public"), answering(BALANCER, hostname="lb.example.org"))
    seen = installed(service(points=points), probes=own, lookups=(answering(RELAY), *public))
    diagnosis = judge(seen)
    assert ("no-longer-needed" in ids(diagnosis)) is told
    if told:
        finding = named(diagnosis, "no-longer-needed")
        assert finding.severity is Severity.INFO
        assert lines(finding) == ["deploy/remove.sh my-cluster"]
        assert diagnosis.status == ExitStatus.DONE


def test_an_installation_counts_as_needed_while_something_is_unknown() -> None:
    own = (*controller_probes(REQUIRES), relay_probe(Outcome.ANSWERED), *balancer_probes(Outcome.ANSWERED))
    seen = installed(service(points=PROXY_MODE), probes=own)
    assert "no-longer-needed" in ids(judge(seen))
    assert "no-longer-needed" not in ids(judge(replace(seen, hostname=HOST)))
    assert "no-longer-needed" not in ids(judge(replace(seen, probes=own[:-1])))
    lost = Host("lost.example.org", "Ingress web/lost", "other")
    assert "no-longer-needed" not in ids(judge(replace(seen, hosts=(*seen.hosts, lost))))
    aws = replace(
        seen, services=(service({"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"}, points=HOSTNAME),)
    )
    assert "no-longer-needed" not in ids(judge(aws))


def test_a_cluster_without_need_gets_that_verdict() -> None:
    diagnosis = judge(facts(service(points=HOSTNAME), probes=balancer_probes(Outcome.ANSWERED)))
    assert diagnosis.status == ExitStatus.DONE
    assert diagnosis.verdict == "this cluster: no host of this cluster needs Switchback"


def test_nothing_is_said_of_the_need_beside_a_fault() -> None:
    served = facts(service(points=PROXY_MODE), probes=balancer_probes(Outcome.ANSWERED))
    assert "not-needed" in ids(judge(served))
    stale = replace(served, dns=None, admin=(Admin("dnsproxy", "pod a/b", False, "waiting for Ingress"),))
    assert bad(judge(stale)) == {"dnsproxy-not-ready"}
    assert "not-needed" not in ids(judge(stale))
