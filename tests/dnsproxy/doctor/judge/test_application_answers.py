"""Applications that answer with 400, or later than the doctor waits."""

from __future__ import annotations

import pytest

from dnsproxy.doctor.facts.probes import Outcome
from dnsproxy.doctor.judge.diagnose import judge
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import (
    BALANCER,
    CLOSED,
    PROXY_MODE,
    REJECTS,
    REQUIRES,
    SILENT,
    bad,
    balancer_probes,
    controller_probes,
    facts,
    probes_at,
    service,
)

BAD = (Outcome.BAD_REQUEST,) * 3
SLOW = (Outcome.SILENT, Outcome.BAD_REQUEST, Outcome.BAD_REQUEST)


@pytest.mark.parametrize("outcomes", [BAD, SLOW], ids=["400", "slow"])
def test_the_applications_own_answer_is_no_fault_of_the_way_and_no_proof_of_service(
    outcomes: tuple[Outcome, ...],
) -> None:
    probes = (*controller_probes(outcomes), *balancer_probes(*outcomes))
    diagnosis = judge(facts(service(points=PROXY_MODE), probes=probes))
    assert (bad(diagnosis), diagnosis.status) == (set(), ExitStatus.UNKNOWN)
    assert BALANCER in diagnosis.unseen[0].why
    assert not any(step.lines for one in diagnosis.unseen for step in one.steps)


@pytest.mark.parametrize(
    ("controller", "balancer"),
    [
        (REJECTS, BAD), (REJECTS, SLOW), (BAD, CLOSED), (SLOW, CLOSED), (SILENT, SILENT), (REQUIRES, BAD),
        (CLOSED, BAD), (BAD, SLOW), (SLOW, BAD),
    ],
    ids=["the balancer adds the header", "silent at the balancer only", "closed", "closed before a slow one",
         "a controller that hangs", "a controller that requires the header", "a controller that closes",
         "silent at the balancer, 400 behind", "400 at the balancer, silent behind"],
)  # fmt: skip
def test_a_failure_that_the_controller_does_not_show_stays_a_fault(
    controller: tuple[Outcome, ...], balancer: tuple[Outcome, ...]
) -> None:
    probes = (*controller_probes(controller), *balancer_probes(*balancer))
    assert judge(facts(service(points=PROXY_MODE), probes=probes)).status == ExitStatus.NO


def test_one_port_that_fails_otherwise_is_a_fault_beside_the_applications_answer() -> None:
    probes = (*controller_probes(BAD), *balancer_probes(*BAD), *probes_at(BALANCER, CLOSED, port=8080))
    assert judge(facts(service(points=PROXY_MODE), probes=probes)).status == ExitStatus.NO
