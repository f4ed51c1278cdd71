"""The loopback of an AWS NLB: it returns a connection to the node that it came from, which drops it.

The law: one answered connection does not refute it, for it happens only if the NLB chooses the pod's own node. Tested
in tests/dnsproxy/doctor/judge/test_providers.py.
"""

from __future__ import annotations

from typing import Final

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.judge.controller import Controller
from dnsproxy.doctor.judge.cures import past_the_balancer
from dnsproxy.doctor.judge.failing_ways import evidence_of
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity
from dnsproxy.doctor.judge.nlb import ATTRIBUTES
from dnsproxy.doctor.judge.remedies import annotate
from dnsproxy.doctor.judge.ways import Ways

_TEXT: Final = (
    "an AWS NLB that preserves the client's address drops a pod's connection whenever it chooses the node of that "
    "pod: occasional time-outs, with or without the PROXY header"
)
_PRESERVE: Final = "preserve_client_ip"


def loopback(ways: Ways, facts: Facts, *, answered: bool) -> Finding:
    """The finding; `answered`: the cluster's DNS gives pods an address past the NLB."""
    one = next(controller for controller in ways.controllers if controller.loops_back)
    about, evidence, hosts = one.about, evidence_of(ways), ways.group.hostnames
    if answered:
        text = f"{_TEXT}; the cluster's DNS gives pods an address that works"
        return Finding("nlb-loopback-answered", Severity.OK, text, about, evidence, (), hosts)
    steps = (_at_the_balancer(one), *past_the_balancer(ways.group, one, facts))
    return Finding("nlb-loopback", Severity.WARNING, _TEXT, about, evidence, steps, hosts)


def _at_the_balancer(controller: Controller) -> Remedy:
    service = controller.path.service
    old, needs = service.annotations.get(ATTRIBUTES, ""), controller.provider.needs_of(ATTRIBUTES, service)
    others = [part.strip() for part in old.split(",") if part.strip() and not part.strip().startswith(_PRESERVE)]
    line = annotate(service, ATTRIBUTES, ",".join([f"{_PRESERVE}.enabled=false", *others]))
    text = "turn client address preservation off at the NLB; with PROXY v2 the controller still learns the address"
    return Remedy(f"{text}; needs {needs}" if needs else text, (line,))
