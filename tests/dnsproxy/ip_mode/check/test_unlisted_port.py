"""What a connection to a port shows that a Service does not have."""

from __future__ import annotations

import pytest

from dnsproxy.doctor.facts.model import Port
from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from dnsproxy.doctor.judge.short_circuit import Answer
from dnsproxy.ip_mode.check.unlisted_port import read_probe, unlisted_port
from tests.dnsproxy.doctor.making import BALANCER, service

CASES = [
    pytest.param(Outcome.REFUSED, "kube-proxy", "iptables", Answer.YES, id="refused"),
    pytest.param(Outcome.RESET, "kube-proxy", "nftables", Answer.YES, id="reset"),
    pytest.param(Outcome.ANSWERED, "kube-proxy", "", Answer.YES, id="answered"),
    pytest.param(Outcome.SILENT, "kube-proxy", "", Answer.YES, id="connected, and silent then"),
    pytest.param(Outcome.UNREACHABLE, "kube-proxy", "iptables", Answer.UNKNOWN, id="no answer"),
    pytest.param(Outcome.NO_ROUTE, "kube-proxy", "iptables", Answer.UNKNOWN, id="no route of that family"),
    pytest.param(Outcome.REFUSED, "kube-proxy", "ipvs", Answer.UNKNOWN, id="ipvs has the address on the node"),
    pytest.param(Outcome.REFUSED, "Cilium 1.18.4 instead of kube-proxy", "", Answer.UNKNOWN, id="Cilium may refuse"),
]


@pytest.mark.parametrize(("outcome", "plane", "mode", "answer"), CASES)
def test_only_an_answer_that_the_data_plane_cannot_have_given_shows_a_way(
    outcome: Outcome, plane: str, mode: str, answer: Answer
) -> None:
    probe = Probe(BALANCER, 64999, "", tls=False, header=Header.PLAIN, outcome=outcome)
    way = read_probe(probe, plane=plane, mode=mode)
    assert way.answer is answer
    assert f"{BALANCER}:64999" in way.why


def test_the_port_is_one_that_the_service_does_not_have() -> None:
    assert unlisted_port(service(ports=(Port(64999), Port(64998), Port(80)))) == 64997
