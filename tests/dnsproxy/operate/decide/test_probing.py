from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from dnsproxy.operate.decide.facts import ControllerService, SubjectFacts
from dnsproxy.operate.decide.probing import Port, Probed, due_ports
from tests.dnsproxy.operate.decide.cluster import CLASS, NAME, SERVICE, cluster

PORTS = ((NAME, 80), (NAME, 443))


def test_ports_are_probed_at_first_sight_and_then_at_most_once_a_minute() -> None:
    """Over ten minutes, each second asked."""
    last: dict[Port, Probed] = {}
    times: dict[int, list[int]] = {80: [], 443: []}
    for now in range(600):
        for name, port in due_ports(cluster(), last, now=now):
            last[name, port] = Probed(now, "")
            times[port].append(now)
    for found in times.values():
        assert found[0] == 0
        assert len(found) >= 9
        assert min(b - a for a, b in pairwise(found)) >= 60
    assert times[80][1] != times[443][1]


def test_a_change_is_probed_at_once() -> None:
    """The fingerprint has the Service, its pods and their settings."""
    last = {port: Probed(0, "") for port in PORTS}
    assert due_ports(cluster(), last, now=1) == ()
    assert due_ports(cluster(service=replace(SERVICE, fingerprint="new")), last, now=1) == PORTS


def test_nothing_else_is_ever_probed() -> None:
    """A subject without names, a Service without a subject, one that is no load balancer."""

    def due(one: SubjectFacts, service: ControllerService) -> object:
        return due_ports(cluster(one, service), {}, now=0)

    assert due(replace(CLASS, hostnames=0), SERVICE) == ()
    assert due(replace(CLASS, points=()), SERVICE) == ()
    assert due(replace(CLASS, backend=str(NAME)), replace(SERVICE, type="ClusterIP")) == ()
    assert due(CLASS, SERVICE) == PORTS
