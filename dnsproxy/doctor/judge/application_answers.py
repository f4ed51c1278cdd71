"""Application answers: a 400 or a long silence that the hosts' own server shows at its ClusterIP too.

The law: a server that answers both headers with 400 parses HTTP and takes no header. What it does with the bare request
is then its own answer, and no fault of the way; whether it serves its clients is not known. Tested in
tests/dnsproxy/doctor/judge/test_application_answers.py.
"""

from __future__ import annotations

from typing import Final

from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from dnsproxy.doctor.judge.findings import Remedy, Unseen
from dnsproxy.doctor.judge.header_mode import by_port, describe
from dnsproxy.doctor.judge.reach import AddressReach
from dnsproxy.doctor.judge.ways import Ways

_OWN: Final = frozenset([Outcome.BAD_REQUEST, Outcome.SILENT])
"""What an application may do: reject a request for `/`, or take longer than the doctor waits."""

PortOutcome = tuple[int, Outcome]


def is_of_application(ways: Ways) -> bool:
    """Whether every failure of a group is its application's own answer."""
    own = frozenset(found for one in ways.controllers for found in _own_answers(one.probes))
    return bool(own and ways.failing) and all(_failures(one, tls=ways.group.tls) <= own for one in ways.failing)


def judge_application(ways: Ways) -> Unseen:
    """What is left to find out about such a group."""
    named = ", ".join(one.address for one in ways.failing)
    why = f"{named} does with a request for / what the controller's own Service does: the answer is the application's"
    said = "; ".join(describe([probe for one in ways.failing for probe in one.bare]))
    step = Remedy("ask for a path that the application serves, from a pod")
    return Unseen(f"whether the application of {ways.group.sample} serves pods", f"{why} ({said})", (step,))


def _own_answers(probes: tuple[Probe, ...]) -> set[PortOutcome]:
    """The ports of a controller where a bare request gets such an answer, and both headers are taken for no HTTP."""
    found = set()
    for (_, port, tls, _), of_port in by_port(probes).items():
        outcomes = {probe.header: probe.outcome for probe in of_port}
        headed = {outcomes.get(header) for header in (Header.V1, Header.V2)}
        bare = outcomes.get(Header.PLAIN)
        if bare in _OWN and headed == {Outcome.BAD_REQUEST} and not tls:
            found.add((port, bare))
    return found


def _failures(one: AddressReach, *, tls: bool) -> set[PortOutcome]:
    ports = one.failing_ports(tls=tls)
    return {(probe.port, probe.outcome) for probe in one.bare if probe.port in ports}
